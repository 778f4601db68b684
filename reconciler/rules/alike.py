"""Resources and objects of the same content, found without comparing each with each.

A plan can create thousands of objects beside thousands that it does not declare. A declared
resource may say fewer fields than an object holds, so the fields that are said are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from reconciler.resources.fields import Spec
from reconciler.resources.ref import owner_of
from reconciler.state import ObservedObject, Resource


class HeldAlike:
    """Objects of one kind and owner, each found once by a resource that declares the same."""

    def __init__(self) -> None:
        self._held: list[ObservedObject] = []
        self._by_content: dict[tuple[str, ...], dict[str, list[ObservedObject]]] = {}
        self._taken: set[int] = set()

    def add(self, held: ObservedObject) -> None:
        """Take one more object, before any is looked for."""
        self._held.append(held)

    def take(self, resource: Resource) -> ObservedObject | None:
        """Return the first object of the same content that was not taken yet, or None."""
        names = _names(resource)
        if names not in self._by_content:
            self._by_content[names] = self._those_with(names)
        alike = self._by_content[names].get(_content(resource.spec, names))
        while alike:
            held = alike.pop()
            if id(held) not in self._taken:  # by other fields
                self._taken.add(id(held))
                return held
        return None

    def _those_with(self, names: tuple[str, ...]) -> dict[str, list[ObservedObject]]:
        """Return the objects that hold some fields by their values, the first one last."""
        found: dict[str, list[ObservedObject]] = {}
        for held in reversed(self._held):
            if held.spec.keys() >= set(names):
                found.setdefault(_content(held.spec, names), []).append(held)
        return found


class MadeAlike:
    """Resources of one kind, found by an object of the same owner that holds what they declare."""

    def __init__(self, made: Iterable[Resource]) -> None:
        self._made = list(made)
        self._names = {_names(resource) for resource in self._made}
        self._first: dict[object, int] = {}
        for index, resource in enumerate(self._made):
            names = _names(resource)
            key = (owner_of(resource.ref.key), names, _content(resource.spec, names))
            self._first.setdefault(key, index)

    def of(self, held: ObservedObject) -> Resource | None:
        """Return the first resource that declares what an object holds, or None."""
        owner = owner_of(held.ref.key)
        found = [
            index
            for names in self._names
            if held.spec.keys() >= set(names)
            and (index := self._first.get((owner, names, _content(held.spec, names)))) is not None
        ]
        return self._made[min(found)] if found else None


def _names(resource: Resource) -> tuple[str, ...]:
    return tuple(sorted(resource.spec))


def _content(spec: Spec, names: Sequence[str]) -> str:
    """Return a text that is equal exactly where the values of some fields are."""
    return json.dumps([spec[name] for name in names], sort_keys=True)
