"""Documents that become resources, and those that say no known kind."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.manifest import Manifest
from reconciler.resources.ref import Kind
from reconciler.validation.desired import kind_of, resource_of
from tests.builders import ACME, GREET, SHOP, WEB
from tests.unit.validation.conftest import Judge
from tests.unit.validation.documents import (
    ACTION,
    APPLICATION,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
    without,
)

UNREAD: Any = None  # the file of a manifest whose places are not asked for


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (ACTION, Kind.ACTION),
        ({"kind": "Project"}, Kind.PROJECT),
        ({"kind": "project"}, None),
        ({"kind": ["Action"]}, None),
        ({}, None),
        (["Action"], None),
        (None, None),
    ],
)
def test_a_document_says_its_kind_exactly(document: object, kind: Kind | None) -> None:
    assert kind_of(document) is kind


@pytest.mark.parametrize(
    ("document", "ref"),
    [(APPLICATION, WEB), (ACTION, GREET), (PROJECT, SHOP), (ORGANIZATION, ACME)],
)
def test_a_resource_has_the_names_of_its_metadata(document: dict[str, Any], ref: object) -> None:
    made = resource_of(Kind(document["kind"]), Manifest(document, UNREAD))

    assert made.ref == ref
    assert made.written == set(document.get("spec", {}))
    assert (made.pinned_id, made.prevent_delete, made.critical) == ("", False, False)


def test_a_resource_has_the_marks_of_its_metadata() -> None:
    marked = with_metadata(ACTION, id="7", preventDelete=True, critical=True)

    made = resource_of(Kind.ACTION, Manifest(marked, UNREAD))

    assert (made.pinned_id, made.prevent_delete, made.critical) == ("7", True, True)
    assert made.spec["timeout"] == "20s", "a default that is left unsaid"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("- a\n", ["MANIFEST-SHAPE"]),
        ("kind: Action\n", ["SCHEMA-MISSING-FIELD"] * 3),
        (text_of(without(ACTION, "kind")), ["MANIFEST-KIND"]),
        (text_of({**ACTION, "kind": "Akction"}), ["MANIFEST-KIND"]),
        (text_of({**ACTION, "kind": ""}), ["MANIFEST-KIND"]),
        ("a: 1\n", ["MANIFEST-API-VERSION", "MANIFEST-KIND"]),
        (text_of({**ACTION, "kind": "x", "apiVersion": "v2"}),
         ["MANIFEST-API-VERSION", "MANIFEST-KIND"]),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_told_and_declares_nothing(
    judge_text: Judge, text: str, codes: list[str]
) -> None:
    judged = judge_text(text)

    assert [found.code for found in judged.diagnostics] == codes
    assert not judged.is_valid
    assert judged.desired.resources == {}


def test_a_misspelt_kind_is_told_the_nearest_one(judge_text: Judge) -> None:
    (found,) = judge_text(text_of({**ACTION, "kind": "Acton"})).diagnostics

    assert found.remedy.startswith("Did you mean Action? ")


def test_the_scope_is_the_organizations_that_are_named(judge_text: Judge) -> None:
    judged = judge_text(text_of(ACTION), text_of(with_metadata(ORGANIZATION, name="globex")))

    assert judged.is_valid
    assert judged.desired.organizations == ("acme", "globex")


def test_what_is_wrong_in_defaults_is_told_once_and_there(judge_text: Judge) -> None:
    """However many manifests take it, and whichever fields they write themselves."""
    defaults = """\
apiVersion: reconciler/v1
kind: Defaults
spec:
  OidcAplication: {}
  OidcApplication: {clockSkew: 1m, appTyp: WEB}
"""
    judged = judge_text(
        defaults,
        text_of(with_metadata(APPLICATION, name="one")),
        text_of(with_spec(with_metadata(APPLICATION, name="two"), appType="WEB")),
    )

    assert [(*each.location[1:3], each.remedy) for each in judged.diagnostics if each.location] == [
        (4, 3, "Did you mean OidcApplication?"),
        (5, 32, "Write at most 5s."),
        (5, 36, "Did you mean appType?"),
    ]
