"""Events of each kind of object, and the state they lead to. Pure."""
