"""Remedies for a missing role name the role and where it is given."""

from __future__ import annotations

import pytest

from reconciler.errors import (
    AccessDeniedError,
    ObjectNotFoundError,
    ServiceError,
    UnauthenticatedError,
)
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, SecretOrder, UpdateOrder
from reconciler.service_client.zitadel.roles import (
    denied,
    missing_role,
    no_organization,
    role_that_reads,
    role_that_writes,
)
from tests.builders import GREET, SHOP, WEB, a_ref, declared, held
from tests.rows import each_row

DENIED = AccessDeniedError("the service refused: no", remedy="Ask.")
OWNER = "ORG_OWNER of the organization acme"


@each_row(
    ("order", "role", "place"),
    [
        (CreateOrder(declared(a_ref(Kind.ORGANIZATION))), "IAM_ORG_MANAGER", "the instance"),
        (CreateOrder(declared(SHOP)), OWNER, "the organization"),
        (
            SecretOrder(
                held(WEB, object_id="1", organization_id="2", project_id="3", client_id="4")
            ),
            OWNER,
            "the organization",
        ),
        (UpdateOrder(declared(WEB), held(WEB)), OWNER, "the organization"),
        (DeleteOrder(held(GREET)), OWNER, "the organization"),
        (DeleteOrder(held(WEB)), "PROJECT_OWNER of the project shop", "the project"),
    ],
)
def test_a_refused_write_names_role_and_place(order: Order, role: str, place: str) -> None:
    """Which one depends on what was to be written."""
    told = denied(DENIED, role_that_writes(order))

    assert told.problem == DENIED.problem
    assert role in told.remedy
    assert place in told.remedy


@pytest.mark.parametrize(
    "other", [ObjectNotFoundError("gone", remedy="-"), UnauthenticatedError("who?", remedy="-")]
)
def test_a_refusal_for_another_reason_stays_as_it_is(other: ServiceError) -> None:
    """An invalid token is not mended by a role."""
    assert denied(other, role_that_reads("organization acme")) is other
    assert denied(other, role_that_writes(DeleteOrder(held(GREET)))) is other


def test_the_roles_that_the_user_has_are_told() -> None:
    """So that it shows which user the token belongs to."""
    mine = "PROJECT_OWNER of the project shop"
    told = missing_role("acme", [mine], is_held=True)
    assert mine in told
    assert OWNER in told
    assert "A role of a project is not enough" in told
    assert "To create" not in told
    assert "To create organizations it takes" in missing_role("acme", [OWNER], is_held=False)
    assert "no role" in no_organization([]).remedy
    assert "does not report the roles of its user" in no_organization(None).remedy
    many = no_organization([f"ORG_OWNER of the organization o{each}" for each in range(22)]).remedy
    assert "organization o19 and 2 more." in many
    assert OWNER in denied(DENIED, role_that_reads("organization acme")).remedy
