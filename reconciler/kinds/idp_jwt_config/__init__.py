"""JWT identity providers."""
