"""The repository of the manifests, read with the ``git`` program and never with its settings."""
