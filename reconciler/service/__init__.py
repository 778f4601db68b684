"""The identity service: an append-only log, what it adds up to, and the operations on it."""
