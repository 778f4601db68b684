"""Two bodies of manifests compared: values count, and nothing that belongs to a service does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.plan.comparison import compare
from reconciler.plan.diff import field_changes
from reconciler.plan.model import Plan, ref_of, word
from reconciler.state import Resource
from tests.builders import ACME, GREET, SHOP, WEB, an_action, declared, desired

NAMES = ("staging", "production")


def compared(one: list[Resource], other: list[Resource]) -> Plan:
    return compare(desired(*one), desired(*other), NAMES)


def test_what_only_one_declares_is_told_as_a_create_or_a_delete() -> None:
    """Organizations and projects too, which a plan never deletes."""
    plan = compared(
        [declared(ACME), declared(SHOP)], [declared(ACME), declared(GREET, an_action())]
    )

    assert [(word(change), ref_of(change)) for change in plan.changes] == [
        ("create", GREET),
        ("delete", SHOP),
    ]
    assert (plan.in_step, plan.compared_with, plan.scope.environment) == ((ACME,), *NAMES)


def test_a_difference_has_both_values_and_no_reset() -> None:
    """That a manifest does not say a field is nothing that a full update takes back here."""
    plan = compared([declared(WEB, {"devMode": True})], [declared(WEB, {"appType": "WEB"})])

    (field,) = field_changes(plan.changes[0])
    assert (field.name, field.before, field.after, field.reset) == ("devMode", True, False, False)


def test_a_kept_field_that_only_one_says_is_a_difference() -> None:
    """Neither body is a service, which has a value of the other one's."""
    whole = declared(GREET, an_action())
    part = replace(whole, spec={**an_action(), "timeout": whole.spec["timeout"]})

    for one, other, values in ((whole, part, (False, None)), (part, whole, (None, False))):
        (change,) = compared([one], [other]).changes
        (field,) = field_changes(change)
        assert (field.name, field.before, field.after) == ("allowedToFail", *values)
        assert not field.reset


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"said": {"appType": "WEB"}}, {"said": {"appType": "OIDC_APP_TYPE_WEB"}}),
        ({"said": {"devMode": False}}, {"said": {}}),
        ({"pinned_id": "7"}, {"pinned_id": "8"}),
    ],
)
def test_what_means_the_same_is_no_difference(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Each service has ids of its own."""
    plan = compared([declared(WEB, **one)], [declared(WEB, **other)])

    assert plan.changes == ()
    assert plan.in_step == (WEB,)


def test_a_mark_and_the_case_of_a_name_are_differences() -> None:
    other = declared(WEB._replace(name="Storefront"), critical=True)
    (change,) = compared([declared(WEB)], [other]).changes

    assert [(each.name, each.after) for each in field_changes(change)] == [
        ("metadata.name", "Storefront"),
        ("metadata.critical", True),
    ]


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (None, False, (True, False)),
        (False, None, (False, True)),
        (None, True, ()),
        (True, None, ()),
        (False, False, ()),
    ],
)
def test_a_new_object_is_active_unless_a_manifest_says_otherwise(
    values: tuple[bool, ...], *, one: bool | None, other: bool | None
) -> None:
    """There is no service whose state could be left as it is."""
    changes = compared(
        [replace(declared(WEB), active=one)], [replace(declared(WEB), active=other)]
    ).changes

    fields = [field for change in changes for field in field_changes(change)]
    assert [(field.name, field.before, field.after) for field in fields] == (
        [("metadata.active", *values)] if values else []
    )
