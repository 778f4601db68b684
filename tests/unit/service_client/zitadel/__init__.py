"""Unit tests of the client for a ZITADEL."""
