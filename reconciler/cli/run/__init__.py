"""``reconciler run``: the loop without a person, put together of Git, the loop and a service."""
