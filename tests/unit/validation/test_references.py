"""What holds between manifests, and what a whole judgement is."""

from __future__ import annotations

import pytest

from reconciler.resources.ref import Kind, ResourceRef, organization_ref, project_ref
from reconciler.validation.references import undeclared_actions, undeclared_owners
from tests.unit.validation.conftest import Judge
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
)


@pytest.mark.parametrize(
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

    found = list(undeclared_owners(judgement.desired))

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

    [finding, *_] = undeclared_owners(judgement.desired)
    assert (finding.code, finding.is_error) == ("REF-UNDECLARED", False)
    assert finding.remedy.startswith(hint)


@pytest.mark.parametrize("name", ["acme", "ACME"])
def test_owners_that_are_declared_are_not_told(judge_text: Judge, name: str) -> None:
    judgement = judge_text(
        text_of(APPLICATION), text_of(PROJECT), text_of(with_metadata(ORGANIZATION, name=name))
    )

    assert list(undeclared_owners(judgement.desired)) == []


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
        *("SCHEMA-TYPE", "YAML-DUPLICATE-KEY", "URI-SCHEME", "YAML-SYNTAX"),
    ]
    assert [ref.kind for ref in judgement.desired.resources] == [Kind.ACTION]
    assert not judgement.is_valid
    assert not judgement.desired.whole


def test_actions_of_flows_that_no_manifest_declares_are_told_once_each(judge_text: Judge) -> None:
    flow = with_spec(
        ACTION_FLOW, PRE_USERINFO_CREATION=["Greet", "greets"], PRE_ACCESS_TOKEN_CREATION=["greets"]
    )
    judgement = judge_text(text_of(flow), text_of(ACTION))

    (found,) = undeclared_actions(judgement.desired)

    assert (found.code, found.is_error) == ("REF-UNDECLARED", False)
    assert found.summary == "Action acme/greets is declared nowhere"
    assert found.remedy.startswith("Did you mean greet? Otherwise the service must hold it")
