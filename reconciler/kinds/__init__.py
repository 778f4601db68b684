"""A room for each kind: all that differs from kind to kind, and nothing else does.

A file of a room belongs to a layer by its name, and the module of that name beside the rooms is
the layer's registry: what the layer may ask of a kind, and the kinds that answer. A registry loads
the files of its own layer only.

- ``fields`` (pure, for both sides): fields with defaults and references, what holds of them, and
  where operations on objects of the kind are called.
- ``rules`` (pure): judging manifests and plans.
- ``calls``, ``zitadel``: the client's calls at this project's service, and at a ZITADEL.
- ``events``, ``operations``: the service's.
"""
