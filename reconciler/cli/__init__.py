"""The command line: the composition root. It alone sees the reconciler and the service."""
