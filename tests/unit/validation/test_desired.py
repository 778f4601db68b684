"""Documents that become resources, those that are no manifest, and what holds between them."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.manifest import Manifest, kind_of
from reconciler.resources.nearest import MOST_HINTS
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, project_ref
from reconciler.validation.desired import (
    resource_of,
    undeclared,
)
from tests.builders import ACME, GREET, SHOP, WEB, is_valid
from tests.rows import each_row
from tests.unit.conftest import Judge
from tests.unit.validation.documents import (
    ACTION,
    ACTION_FLOW,
    APPLICATION,
    IDP,
    ORGANIZATION,
    PROJECT,
    text_of,
    with_metadata,
    with_spec,
    without,
)

UNREAD: Any = None  # the file of a manifest whose places are not asked for


@each_row(
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


@each_row(
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
    assert not is_valid(judged)
    assert judged.desired.resources == {}


def test_a_misspelt_kind_is_told_the_nearest_one(judge_text: Judge) -> None:
    (found,) = judge_text(text_of({**ACTION, "kind": "Acton"})).diagnostics

    assert found.remedy.startswith("Did you mean Action? ")


def test_the_scope_is_the_organizations_that_are_named(judge_text: Judge) -> None:
    judged = judge_text(text_of(ACTION), text_of(with_metadata(ORGANIZATION, name="globex")))

    assert is_valid(judged)
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


@each_row(
    ("first", "again"),
    [
        pytest.param(PROJECT, PROJECT, id="the same twice"),
        pytest.param(PROJECT, with_metadata(PROJECT, name="SHOP"), id="names that differ in case"),
        pytest.param(
            with_metadata(PROJECT, name="straße"),
            with_metadata(PROJECT, name="STRASSE"),
            id="names that differ in the case of one letter that becomes two",
        ),
        pytest.param(
            PROJECT, with_metadata(PROJECT, organization="Acme"), id="owners that differ in case"
        ),
        pytest.param(
            APPLICATION,
            with_metadata(APPLICATION, project="Shop"),
            id="projects that differ in case",
        ),
        pytest.param(ORGANIZATION, with_metadata(ORGANIZATION, name="ACME"), id="organizations"),
    ],
)
def test_a_resource_is_declared_once(
    judge_text: Judge, first: dict[str, object], again: dict[str, object]
) -> None:
    judgement = judge_text(text_of(first), text_of(again))

    [finding] = judgement.diagnostics
    assert (finding.code, finding.is_error) == ("REF-DUPLICATE", True)
    assert finding.location is not None
    assert finding.location.file.endswith("1.yaml")
    assert "0.yaml:1:" in finding.remedy
    assert len(judgement.desired.resources) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(with_metadata(APPLICATION, project="support"), id="another project"),
        pytest.param(with_metadata(APPLICATION, organization="globex"), id="another organization"),
        pytest.param(with_metadata(ACTION, name="storefront"), id="another kind"),
    ],
)
def test_the_same_name_elsewhere_is_another_resource(
    judge_text: Judge, other: dict[str, object]
) -> None:
    judgement = judge_text(text_of(APPLICATION), text_of(other))

    assert "REF-DUPLICATE" not in {finding.code for finding in judgement.diagnostics}
    assert len(judgement.desired.resources) == 2


def test_an_id_is_pinned_once(judge_text: Judge) -> None:
    judgement = judge_text(
        text_of(with_metadata(APPLICATION, id="42")), text_of(with_metadata(IDP, id="42"))
    )

    [finding] = judgement.diagnostics
    assert (finding.code, finding.is_error) == ("REF-DUPLICATE-ID", True)
    assert "OidcApplication acme/shop/storefront" in finding.remedy


def test_owners_that_nobody_declares_are_told_once_each(judge_text: Judge) -> None:
    judgement = judge_text(
        text_of(APPLICATION), text_of(with_metadata(APPLICATION, name="b")), text_of(ACTION)
    )

    found = list(undeclared(judgement.desired))

    assert [finding.summary for finding in found] == [
        "Project acme/shop is declared nowhere",
        "Organization acme is declared nowhere",
    ]
    assert not any(finding.is_error for finding in found)
    assert judgement.diagnostics == ()


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (with_metadata(APPLICATION, project="shpo"), "Did you mean shop? Otherwise the service"),
        (with_metadata(APPLICATION, project="billing"), "The service must hold it already"),
        (
            with_metadata(APPLICATION, organization="globex", project="shpo"),
            "The service must hold it already",
        ),
        (with_metadata(ACTION, organization="acne"), "Did you mean acme? Otherwise the service"),
    ],
)
def test_a_misspelt_owner_is_told_with_the_declared_name(
    judge_text: Judge, document: dict[str, object], hint: str
) -> None:
    """The hint is part of a warning: the service may hold what no manifest declares."""
    judgement = judge_text(text_of(document), text_of(PROJECT), text_of(ORGANIZATION))

    [finding, *_] = undeclared(judgement.desired)
    assert (finding.code, finding.is_error) == ("REF-UNDECLARED", False)
    assert finding.remedy.startswith(hint)


@pytest.mark.parametrize("name", ["acme", "ACME"])
def test_owners_that_are_declared_are_not_told(judge_text: Judge, name: str) -> None:
    judgement = judge_text(
        text_of(APPLICATION), text_of(PROJECT), text_of(with_metadata(ORGANIZATION, name=name))
    )

    assert list(undeclared(judgement.desired)) == []


def test_the_scope_is_every_organization_in_its_first_spelling(judge_text: Judge) -> None:
    judgement = judge_text(
        text_of(with_metadata(PROJECT, organization="Zeta")),
        text_of(with_metadata(PROJECT, organization="ZETA", name="b")),
        text_of(ORGANIZATION),
        text_of(with_metadata(ACTION, organization="globex")),
    )

    assert judgement.desired.organizations == ("Zeta", "acme", "globex")


def test_what_is_desired_is_complete_and_knows_what_was_written(judge_text: Judge) -> None:
    document = with_metadata(with_spec(ACTION, timeout="5.0s"), id="7", preventDelete=True)

    desired = judge_text(text_of(document)).desired

    ref = ResourceRef(Kind.ACTION, "acme", "", "greet")
    [(key, resource)] = desired.resources.items()
    assert (key, resource.ref) == (ref.key, ref)
    assert resource.spec == {
        "script": "function greet(ctx, api) {}",
        "timeout": "5s",
        "allowedToFail": False,
    }
    assert resource.written == {"script", "timeout"}
    assert (resource.pinned_id, resource.prevent_delete) == ("7", True)
    assert desired.whole


def test_owners_own_themselves_and_their_projects(judge_text: Judge) -> None:
    desired = judge_text(text_of(ORGANIZATION), text_of({**PROJECT, "spec": {}})).desired

    assert set(desired.resources) == {organization_ref("acme"), project_ref("acme", "shop")}


def test_all_findings_come_in_one_run_in_the_order_of_their_places(judge_text: Judge) -> None:
    """Of reading and of judging, of every file."""
    judgement = judge_text(
        text_of(with_spec(APPLICATION, devMode="yes")) + "\n---\na: 1\na: 2\n",
        text_of(with_spec(APPLICATION, redirectUris=["x"])),
        "a: [\n",
        text_of(ACTION),
    )

    assert [finding.code for finding in judgement.diagnostics] == [
        *("SCHEMA-TYPE", "YAML-DUPLICATE-KEY", "REF-DUPLICATE", "URI-SCHEME", "YAML-SYNTAX"),
    ]
    assert [ref.kind for ref in judgement.desired.resources] == [Kind.ACTION]
    assert not is_valid(judgement)
    assert not judgement.desired.whole


def test_actions_of_flows_that_no_manifest_declares_are_told_once_each(judge_text: Judge) -> None:
    flow = with_spec(
        ACTION_FLOW, PRE_USERINFO_CREATION=["Greet", "greets"], PRE_ACCESS_TOKEN_CREATION=["greets"]
    )
    judgement = judge_text(text_of(flow), text_of(ACTION), text_of(ORGANIZATION))

    (found,) = undeclared(judgement.desired)

    assert (found.code, found.is_error) == ("REF-UNDECLARED", False)
    assert found.summary == "Action acme/greets is declared nowhere"
    assert found.remedy.startswith("Did you mean greet? Otherwise the service must hold it")


def test_not_every_undeclared_action_is_compared_with_all_that_are_declared(
    judge_text: Judge,
) -> None:
    """A tree can have thousands of both; the first get a hint."""
    names = [f"greet{at}" for at in range(100)]
    flow = with_spec(
        ACTION_FLOW,
        PRE_USERINFO_CREATION=names,
        PRE_ACCESS_TOKEN_CREATION=[f"{name}x" for name in names],
    )
    judgement = judge_text(text_of(flow), text_of(ACTION), text_of(ORGANIZATION))

    found = [each.remedy.startswith("Did you") for each in undeclared(judgement.desired)]

    assert found == [True] * MOST_HINTS + [False] * (200 - MOST_HINTS)
