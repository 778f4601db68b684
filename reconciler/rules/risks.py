"""Rules of risks: the changes of a field that may weaken, redirect or stop something.

Each asks a pure question about a field before and after. Their names are part of the interface:
policies and labels rely on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from reconciler.resources.origin import is_loopback_host

# Browsers take a backslash for a slash, so the authority ends at either.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/\\?#]*))?")
_PORT = re.compile(r":[0-9]*$")


def authority_of(uri: str) -> str:
    """Return what decides where a URI leads: scheme, and user, host and port as they stand.

    It tells apart more than it must. A default port written out, or a user before the host, is
    another authority: where reading is a matter of opinion, it is news.
    """
    found = _URI.match(uri)
    if found is None:
        return uri
    scheme, authority = found.group(1).lower(), found.group(2)
    return f"{scheme}://{authority.lower()}" if authority else f"{scheme}:"


def is_plain_http(uri: str) -> bool:
    """Return whether a URI goes over the network unencrypted. The machine itself is no network."""
    found = _URI.match(uri)
    if found is None or found.group(1).lower() != "http":
        return False
    return not is_loopback_host(_PORT.sub("", (found.group(2) or "").lower()))


Value: TypeAlias = str | bool | list[str] | None
Test: TypeAlias = Callable[[Value, Value], bool]


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


class Rule(NamedTuple):
    """The condition under which a change of a field is a risk.

    Attributes:
        name: Of the class of risks.
        danger: From 1 to 999; each class has one of its own, with room for others between two. From
            ``SEVERE`` on it loses something, weakens a protection or switches an object; below, it
            changes or stops what is deployed.
        fields: Each is asked for itself.
        test: Asked with the field's value before and after.
        also_new: Whether it is asked of a create, too, against the kind's defaults.
    """

    name: str
    danger: int
    fields: Sequence[str]
    test: Test
    sentence: str
    also_new: bool = False


class Removal(NamedTuple):
    """The risk of deleting an object of a kind."""

    name: str
    danger: int
    sentence: str


SEVERE = 500


def plain_http(*fields: str) -> Rule:
    """Return the rule of URIs that are sent unencrypted."""
    sentence = "it is sent unencrypted, to be read and changed by anyone on the way"
    return Rule("plain-http", 780, fields, gains_plain_http, sentence, also_new=True)


def role_assertion_off(*fields: str) -> Rule:
    """Return the rule of roles that are taken out of tokens."""
    sentence = "the roles of users are no longer in the token: what relies on them refuses access"
    return Rule("role-assertion-off", 420, fields, turned_off, sentence)
