"""Exit codes of drift, and variables of outputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.cli import observe
from reconciler.errors import UsageError
from reconciler.plan.drift import Drift
from reconciler.report.layout import BARE
from reconciler.resources.ref import ResourceRef
from tests.builders import WEB, a_ref, held, observed


@pytest.mark.parametrize(
    ("ref", "name"),
    [
        (WEB, "ACME_SHOP_STOREFRONT"),
        (a_ref(name="web-2 (new)"), "ACME_SHOP_WEB_2_NEW_"),
        (WEB._replace(organization="1st"), "_1ST_SHOP_STOREFRONT"),
    ],
)
def test_the_variable_of_an_application_is_its_names(ref: ResourceRef, name: str) -> None:
    assert observe._variable_name(ref) == name


def test_variables_are_quoted_for_a_shell() -> None:
    found = replace(held(WEB, object_id="7"), client_id="7@my shop")

    assert observe._as_env(observe.Outputs([(WEB, found)], ""), BARE).splitlines() == [
        "ACME_SHOP_STOREFRONT_ID=7",
        "ACME_SHOP_STOREFRONT_CLIENT_ID='7@my shop'",
    ]


def test_two_applications_never_share_a_variable() -> None:
    twin = a_ref(name="web_")
    twins = [(twin._replace(name="a b"), None), (twin._replace(name="a-b"), None)]

    with pytest.raises(UsageError, match="would share the variable ACME_SHOP_A_B"):
        observe._as_env(observe.Outputs(twins, ""), BARE)


@pytest.mark.parametrize(
    ("drift", "incomplete", "code"),
    [
        (Drift(()), (), 0),
        (Drift((), untold=(WEB,)), (), 2),
        (Drift((), untold=(WEB,)), ("a page is missing",), 3),
    ],
)
def test_half_a_listing_tells_nothing(drift: Drift, incomplete: tuple[str, ...], code: int) -> None:
    assert observe.exit_code(drift, observed(incomplete=incomplete)) == code
