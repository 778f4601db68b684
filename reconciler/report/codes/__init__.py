"""The codes of findings, and what each one means."""
