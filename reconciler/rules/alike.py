"""Resources and objects of the same content, found without comparing each with each.

A plan can create thousands of objects beside thousands that it does not declare. A declared
resource may say fewer fields than an object holds, so the fields that are said are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from reconciler.state import ObservedObject, Resource

_Content: TypeAlias = tuple[object, str]


def alike(
    made: Iterable[Resource], held: Sequence[ObservedObject]
) -> Iterator[tuple[Resource, Iterator[ObservedObject]]]:
    """Yield resources, each with the objects of its kind and owner that hold what it declares.

    A resource whose owner holds no object of its kind is left out. Those that declare the same
    share one iterator: an object that was taken from it is not there for the next one. It may be
    there for a resource that says other fields.
    """
    places = {each.ref.key[:3] for each in held}
    compared = [resource for resource in made if resource.ref.key[:3] in places]
    places = {resource.ref.key[:3] for resource in compared}
    beside = [each for each in held if each.ref.key[:3] in places]
    known: dict[tuple[str, ...], Mapping[_Content, Iterator[ObservedObject]]] = {}
    for resource in compared:
        names = tuple(sorted(resource.spec))
        if names not in known:
            known[names] = _by_content(beside, names)
        yield resource, known[names].get(_content(resource, names), iter(()))


def _by_content(
    held: Iterable[ObservedObject], names: Sequence[str]
) -> Mapping[_Content, Iterator[ObservedObject]]:
    """Return the objects that hold some fields, in their order, by the values of these."""
    found: dict[_Content, list[ObservedObject]] = {}
    for each in held:
        if each.spec.keys() >= set(names):
            found.setdefault(_content(each, names), []).append(each)
    return {content: iter(objects) for content, objects in found.items()}


def _content(one: Resource | ObservedObject, names: Sequence[str]) -> _Content:
    """Return kind and owner, and a text that is equal exactly where the values of fields are."""
    return one.ref.key[:3], json.dumps([one.spec[name] for name in names], sort_keys=True)
