"""Action flows."""
