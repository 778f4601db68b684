"""The bridge: the identity service as the reconciler sees it, over any wire."""
