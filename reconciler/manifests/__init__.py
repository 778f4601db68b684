"""Stage 1, read: files become manifests, every value with its place. Nothing is judged here."""
