"""The log and all that is kept with it: one port, several stores. Knows no domain."""
