"""Specs as a service answers them, against what this version knows; lists to their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import Call
from reconciler.resources.ref import Kind
from reconciler.service_client.answers import (
    MOST_PAGES,
    ReadSpec,
    cursor_pages,
    read_spec,
)
from reconciler.service_client.wire import Answer
from tests.builders import a_ref, held
from tests.rows import each_row
from tests.unit.service_client.fake_wire import FakeWire

SPECS = {kind: held(a_ref(kind)).spec for kind in Kind}


@each_row("kind", list(Kind))
def test_a_complete_spec_is_read_as_it_is(kind: Kind) -> None:
    """A field that is not known would be carried instead of managed."""
    assert read_spec(kind, SPECS[kind]) == ReadSpec(SPECS[kind], {}, ())


SENT_IN_PARTS = {Kind.ORGANIZATION, Kind.ACTION_FLOW}


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in SENT_IN_PARTS])
def test_unknown_fields_are_carried(kind: Kind) -> None:
    """An update is full: what is not sent back is reset."""
    unknown = {"newer": {"deep": [1]}, "other": False}

    assert read_spec(kind, {**SPECS[kind], **unknown}) == ReadSpec(SPECS[kind], unknown, ())


def test_unknown_fields_of_what_has_no_update_cannot_be_carried() -> None:
    """No call would send them."""
    assert read_spec(Kind.ORGANIZATION, {"newer": 1}) == ReadSpec({}, {}, ("newer",))


def test_a_trigger_that_is_not_known_cannot_be_carried() -> None:
    """An update of a flow sets the triggers that differ, and a delete clears all."""
    spec = SPECS[Kind.ACTION_FLOW]

    read = read_spec(Kind.ACTION_FLOW, {**spec, "PRE_LOGOUT": ["greet"]})

    assert read == ReadSpec(spec, {}, ("PRE_LOGOUT",))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appType", "OIDC_APP_TYPE_TOASTER", "appType OIDC_APP_TYPE_TOASTER"),
        ("grantTypes", ["OIDC_GRANT_TYPE_NEW", "X"], "grantTypes OIDC_GRANT_TYPE_NEW, X"),
        ("version", "OIDC_VERSION_2_0", "version OIDC_VERSION_2_0"),
    ],
)
def test_values_that_no_manifest_can_say_are_told(name: str, value: Any, told: str) -> None:
    """An update would overwrite them with something that can be said."""
    read = read_spec(Kind.OIDC_APPLICATION, {**SPECS[Kind.OIDC_APPLICATION], name: value})

    assert read.uncarried == (told,)


@each_row(
    ("kind", "name", "value"),
    [
        (Kind.OIDC_APPLICATION, "devMode", "true"),
        (Kind.OIDC_APPLICATION, "devMode", 1),
        (Kind.OIDC_APPLICATION, "redirectUris", "https://a"),
        (Kind.OIDC_APPLICATION, "redirectUris", [1]),
        (Kind.OIDC_APPLICATION, "redirectUris", None),
        (Kind.OIDC_APPLICATION, "clockSkew", "1m"),
        (Kind.OIDC_APPLICATION, "appType", 0),
        (Kind.ACTION, "script", None),
        (Kind.ACTION, "timeout", "-1s"),
        (Kind.IDP_JWT_CONFIG, "issuer", 7),
    ],
)
def test_a_field_of_a_wrong_type_is_an_error(kind: Kind, name: str, value: Any) -> None:
    """What cannot be read cannot be compared, let alone written over."""
    with pytest.raises(ValueError, match=name if str(value) not in {"1m", "-1s"} else "seconds"):
        read_spec(kind, {**SPECS[kind], name: value})


@each_row("kind", list(Kind))
def test_a_missing_field_is_an_error(kind: Kind) -> None:
    """Half an object is not an object with defaults."""
    for name in SPECS[kind]:
        with pytest.raises(ValueError, match=name):
            read_spec(kind, {key: value for key, value in SPECS[kind].items() if key != name})


def paged(pages: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return the lists and cursors that are asked for, where each list answers these cursors."""
    asked: list[tuple[str, str]] = []

    def page(call: Call) -> Answer:
        name = str(call.fields["list"])
        turn = sum(name == known for known, _ in asked)
        asked.append((name, str(call.fields["cursor"])))
        return Answer({"next": pages[name][turn]})

    calls = {name: Call("L", {"list": name, "cursor": ""}) for name in pages}
    names = [name for name, _ in cursor_pages(FakeWire(L=page), calls, "cursor")]
    assert names == [name for name, _ in asked]
    return asked


def test_lists_are_read_together_to_their_ends() -> None:
    """A page of each at a time; one that answers a cursor again has ended."""
    asked = paged({"a": ["1", "2", ""], "b": [""], "c": ["1", "1"]})

    assert asked == [("a", ""), ("b", ""), ("c", ""), ("a", "1"), ("c", "1"), ("a", "2")]


def test_a_list_without_an_end_is_an_error() -> None:
    """The run is told, and does not read for ever."""
    with pytest.raises(ServiceError, match="do not end"):
        paged({"a": [str(number) for number in range(1, MOST_PAGES + 1)]})


def test_a_list_of_the_most_pages_is_read() -> None:
    """Only a page that follows them is too many."""
    pages = [*map(str, range(1, MOST_PAGES)), ""]

    assert len(paged({"a": pages})) == MOST_PAGES
