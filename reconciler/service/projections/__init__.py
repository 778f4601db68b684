"""Objects as they are now, made from the events."""
