"""Tests of one field of a spec, before and after a change: what the rules of risks ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from reconciler.plan.authority import authority_of, is_plain_http

Value: TypeAlias = str | bool | list[str] | None
Test: TypeAlias = Callable[[Value, Value], bool]

_STRENGTH: Mapping[object, int] = {
    "OIDC_AUTH_METHOD_TYPE_NONE": 0,
    "OIDC_AUTH_METHOD_TYPE_POST": 1,
    "OIDC_AUTH_METHOD_TYPE_BASIC": 2,
    "OIDC_AUTH_METHOD_TYPE_PRIVATE_KEY_JWT": 3,
}


def is_weaker(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a weaker method."""
    return _STRENGTH.get(after, 0) < _STRENGTH.get(before, 0)


def is_stronger(before: Value, after: Value) -> bool:
    """Return whether an application proves its identity by a stronger method."""
    return _STRENGTH.get(after, 0) > _STRENGTH.get(before, 0)


def differs(before: Value, after: Value) -> bool:
    """Return whether the value changes."""
    return bool(before != after)


def turned_on(before: Value, after: Value) -> bool:
    """Return whether something is set that was not."""
    return bool(after) and not before


def turned_off(before: Value, after: Value) -> bool:
    """Return whether something is no longer set."""
    return bool(before) and not after


def gains(value: str) -> Test:
    """Return the test whether a list gains a value."""

    def test(before: Value, after: Value) -> bool:
        return value in _items(after) and value not in _items(before)

    return test


def loses_any(before: Value, after: Value) -> bool:
    """Return whether a list loses a value; the order does not count."""
    return not set(_items(before)) <= set(_items(after))


def keeps_some(before: Value, after: Value) -> bool:
    """Return whether a list loses a value and keeps or gains others."""
    return bool(_items(after)) and loses_any(before, after)


def moves(before: Value, after: Value) -> bool:
    """Return whether a list has the same values in another order."""
    return before != after and sorted(_items(before)) == sorted(_items(after))


def gains_any(before: Value, after: Value) -> bool:
    """Return whether a list gains a value; the order does not count."""
    return not set(_items(after)) <= set(_items(before))


def gains_authority(before: Value, after: Value) -> bool:
    """Return whether a list of URIs gains one that leads to a place of its own."""
    known = {authority_of(uri) for uri in _items(before)}
    return any(authority_of(uri) not in known for uri in _items(after))


def gains_plain_http(before: Value, after: Value) -> bool:
    """Return whether a list of URIs, or one URI, gains one that is sent unencrypted."""
    return any(is_plain_http(uri) for uri in _items(after) if uri not in _items(before))


def _items(value: Value) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, list) else ()
