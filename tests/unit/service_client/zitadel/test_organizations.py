"""Organizations of a ZITADEL that is asked in the old ways."""

from __future__ import annotations

import pytest

from reconciler.errors import AccessDeniedError
from reconciler.resources.call import Call
from reconciler.service_client.wire import Answer, refusal_in
from reconciler.service_client.zitadel.organizations import OrganizationCalls
from tests.unit.service_client.fake_wire import FakeWire, Reply

UNKNOWN = refusal_in({"code": 5, "message": "Not Found"})
DENIED = refusal_in({"code": 7, "message": "no", "details": [{"id": "AUTH-5mWD2"}]})
COUNT = 230


def memberships(call: Call) -> Reply:
    """Answer a page of the memberships of a user with a role in many organizations."""
    offset, limit = call.fields["query"].get("offset", 0), call.fields["query"]["limit"]
    numbers = range(offset, min(offset + limit, COUNT))
    items = [{"orgId": f"{n}", "displayName": f"o{n}", "roles": ["ORG_OWNER"]} for n in numbers]
    return Answer({"details": {"totalResult": str(COUNT)}, "result": items})


def own(call: Call) -> Reply:
    if not call.organization:
        return DENIED
    details = {"sequence": "1", "resourceOwner": call.organization}
    return Answer(
        {"org": {"id": call.organization, "name": f"o{call.organization}", "details": details}}
    )


def test_every_organization_of_a_role_is_found_however_many_there_are() -> None:
    """An export of what the user may read would lack the others without a word."""
    wire = FakeWire(
        ListOrganizations=UNKNOWN, ListOrgs=DENIED, GetMyOrg=own, ListMyMemberships=memberships
    )

    assert len(OrganizationCalls(wire).visible()) == COUNT


def test_roles_that_the_service_does_not_tell_are_not_said_to_be_none() -> None:
    wire = FakeWire(
        ListOrganizations=UNKNOWN, ListOrgs=DENIED, GetMyOrg=DENIED, ListMyMemberships=DENIED
    )

    with pytest.raises(AccessDeniedError) as told:
        OrganizationCalls(wire).visible()

    assert told.value.remedy.startswith("The service does not tell the roles of its user.")
