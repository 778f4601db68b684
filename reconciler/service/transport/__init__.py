"""Calls from outside: decode, look up, call, encode. Decides nothing."""
