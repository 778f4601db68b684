"""The configuration of a repository: ``reconciler.yaml``, its environments and variables."""
