"""What the events add up to: the objects as they are now."""
