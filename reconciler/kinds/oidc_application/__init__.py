"""OIDC applications."""
