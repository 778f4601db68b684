"""The flags of projects: all kept, all off for a new project."""

from __future__ import annotations

from reconciler.resources.normal import normal_form, stored_form
from reconciler.resources.projects import PROJECT_FLAGS
from reconciler.resources.ref import Kind

OFF = {
    "projectRoleAssertion": False,
    "projectRoleCheck": False,
    "hasProjectCheck": False,
    "privateLabelingSetting": "PRIVATE_LABELING_SETTING_UNSPECIFIED",
}


def test_every_flag_is_kept_and_off_by_default() -> None:
    assert {each.name: each.default for each in PROJECT_FLAGS} == OFF
    assert all(each.left_as_held for each in PROJECT_FLAGS)


def test_the_normal_form_has_what_is_said_and_the_store_what_is_not_off() -> None:
    said = {"projectRoleCheck": False, "privateLabelingSetting": "UNSPECIFIED"}

    assert normal_form(Kind.PROJECT, {}) == {}
    assert normal_form(Kind.PROJECT, said) == {name: OFF[name] for name in said}
    assert stored_form(Kind.PROJECT, OFF) == {}
    assert stored_form(Kind.PROJECT, {**OFF, "hasProjectCheck": True}) == {"hasProjectCheck": True}
