"""The operations on organizations."""

from __future__ import annotations

from reconciler.resources.ref import Kind
from reconciler.service.domain.events import Added
from reconciler.service.domain.refusal import not_allowed
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, details_read, named
from reconciler.service.operations.callers import Role
from reconciler.service.operations.form import NAME, Asked, Form
from reconciler.service.operations.lists import BY_ID, BY_NAME, Listing, by_constant, listed
from reconciler.service.operations.operation import (
    ADMIN,
    MANAGEMENT,
    Effect,
    Operation,
    operation,
)
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading, Writing


def organization_view(row: ObjectRow) -> Answer:
    """Return an organization as it is answered."""
    return {**named(row, "ORG_STATE"), "primaryDomain": ""}


def add_org(call: Writing, asked: Asked) -> Answer:
    """Make an organization, which only a caller that would see it may."""
    if call.caller.organizations is not None:
        raise not_allowed("org.create", Role.ADMIN, " for all organizations")
    row = call.create("", Added(Kind.ORGANIZATION, asked["name"]))
    return {"id": row.id, "details": details_read(row)}


def get_my_org(call: Reading, fields: Fields) -> Answer:
    """Answer the organization of the call."""
    fields.end()
    return {"org": organization_view(call.organization())}


_LISTING = Listing(
    Kind.ORGANIZATION,
    organization_view,
    {
        "nameQuery": BY_NAME,
        "idQuery": BY_ID,
        "stateQuery": by_constant(
            "state",
            "ORG_STATE_ACTIVE",
            *("ORG_STATE_UNSPECIFIED", "ORG_STATE_ACTIVE"),
            *("ORG_STATE_INACTIVE", "ORG_STATE_REMOVED"),
        ),
    },
    ("ORG_FIELD_NAME_UNSPECIFIED", "ORG_FIELD_NAME_NAME"),
)
ROWS = (
    operation("AddOrg", "org.create", Effect.CREATES, add_org, Form(None, (NAME,))),
    listed(
        "ListOrgs",
        "org.read",
        _LISTING,
        service=ADMIN,
        about="List the organizations that the caller may see.",
    ),
    Operation("GetMyOrg", "org.read", Effect.READS, get_my_org, grpc=(f"{MANAGEMENT}/GetMyOrg",)),
)
