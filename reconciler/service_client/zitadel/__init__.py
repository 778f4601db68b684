"""The client for a ZITADEL, which has none of the addresses that are ours alone."""
