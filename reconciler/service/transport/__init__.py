"""How calls come in from outside: decode, look up, call, encode. Decides nothing."""
