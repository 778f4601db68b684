"""Documents against the schema of their kind: one library accepts, the other explains."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.ref import Kind
from reconciler.validation.schema import MAX_FAULTS, accepts, faults, faults_in, schema_of
from tests.rows import each_row
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    DOCUMENTS,
)


@each_row("kind", Kind)
def test_a_sound_document_is_accepted_by_both(kind: Kind) -> None:
    assert accepts(kind, DOCUMENTS[kind])
    assert faults(kind, DOCUMENTS[kind]) == ()


@pytest.mark.parametrize(
    ("spec", "keyword", "path"),
    [
        ({"script": 7}, "type", ("spec", "script")),
        ({"script": "x", "timeout": "5s\n"}, "pattern", ("spec", "timeout")),
        ({"script": "x", "tiemout": "5s"}, "additionalProperties", ("spec",)),
    ],
)
def test_a_document_that_does_not_fit_is_refused_by_both(
    spec: dict[str, Any], keyword: str, path: tuple[str, ...]
) -> None:
    """The end of a pattern is the end of the text to both."""
    document = {**ACTION, "spec": spec}

    assert not accepts(Kind.ACTION, document)
    assert (keyword, path) in [
        (fault.keyword, fault.path) for fault in faults(Kind.ACTION, document)
    ]


@pytest.mark.parametrize("value", [{1: "x"}, {"x"}, 10**400])
def test_what_is_not_json_is_refused(value: object) -> None:
    assert not accepts(Kind.ACTION, value)


def test_so_many_faults_are_told_and_no_more() -> None:
    document = {**APPLICATION, "spec": {"redirectUris": [7] * (MAX_FAULTS + 9)}}

    assert len(faults_in(schema_of(Kind.OIDC_APPLICATION), document)) == MAX_FAULTS
