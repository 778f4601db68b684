"""What may happen to each kind of object, and what it makes of it. Pure."""
