"""The seal of a saved file: one byte that is not as it was written is noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.plan.integrity import (
    Document,
    SavedFileError,
    as_json,
    check_spec,
    seal_of,
    sealed,
    unsealed,
)
from reconciler.resources.ref import Kind
from tests.builders import WEB, an_application, declared
from tests.rows import each_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Document):
    """A document with a value of each form that needs help to become JSON."""

    text: str
    some: frozenset[str] = frozenset()
    lines: tuple[str, ...] = ()


NOTE = Note(text="a", some=frozenset({"b", "a"}), lines=("x", "y"))
CONTENT = sealed("note", "1.0", NOTE)


def test_a_document_is_written_in_the_order_of_its_fields() -> None:
    """Items of a list have a line each, so that a change of one is a change of one line."""
    head = ' "format": "note",\n "format_version": "1.0",\n "integrity": "sha256:'

    assert CONTENT.decode().startswith("{\n" + head)
    assert CONTENT.decode().endswith(
        '",\n "text": "a",\n "some": [\n  "a",\n  "b"\n ],\n "lines": [\n  "x",\n  "y"\n ]\n}\n'
    )
    assert as_json(NOTE).endswith('"text": "a", "some": ["a", "b"], "lines": ["x", "y"]}')


def test_what_was_sealed_is_read_back() -> None:
    """With the fields that every file begins with."""
    note = unsealed(CONTENT, "note", "1.0", Note)

    assert (note.text, note.some, note.lines) == (NOTE.text, NOTE.some, NOTE.lines)
    assert (note.format, note.integrity) == ("note", seal_of(CONTENT))


@each_row(
    ("content", "kind", "version", "why"),
    [
        (CONTENT, "other", "1.0", "is not a other file"),
        (CONTENT, "note", "2.0", "is of format '1.0', and 2.0 is read here"),
        (CONTENT.replace(b'"x"', b'"z"'), "note", "1.0", "its integrity digest is wrong"),
        (CONTENT[:-1], "note", "1.0", "its integrity digest is wrong"),
        (sealed("note", "1.0", {"text": 1}), "note", "1.0", "has a field text that is not a text"),
        (sealed("note", "1.0", {"text": "", "x": 1}), "note", "1.0", "has a field x that is not"),
        (sealed("note", "1.0", {}), "note", "1.0", "has no field text"),
    ],
)
def test_another_content_is_refused_with_the_reason(
    content: bytes, kind: str, version: str, why: str
) -> None:
    """The seal is checked before what stands in the file."""
    with pytest.raises(SavedFileError, match=why):
        unsealed(content, kind, version, Note)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"surprise": ""}, "does not fit OidcApplication"),
        ({"devMode": "yes"}, "whose devMode is of a wrong type"),
        ({"redirectUris": [1]}, "whose redirectUris is of a wrong type"),
    ],
)
def test_a_spec_that_is_not_of_its_kind_is_refused(change: dict[str, Any], why: str) -> None:
    """Reports rely on the fields and on their types."""
    spec = declared(WEB, an_application()).spec
    check_spec(Kind.OIDC_APPLICATION, spec, whole=True)
    check_spec(Kind.OIDC_APPLICATION, {}, whole=False)

    with pytest.raises(SavedFileError, match=why):
        check_spec(Kind.OIDC_APPLICATION, {**spec, **change}, whole=False)
    with pytest.raises(SavedFileError, match="does not fit"):
        check_spec(Kind.OIDC_APPLICATION, {}, whole=True)
