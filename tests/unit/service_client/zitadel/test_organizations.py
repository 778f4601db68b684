"""Organizations of a ZITADEL that is asked in the old ways."""

from __future__ import annotations

import pytest

from reconciler.errors import AccessDeniedError
from reconciler.resources.call import Call
from reconciler.service_client.wire import Answer, refusal_in
from reconciler.service_client.zitadel.objects import PAGE, TOO_LARGE_A_PAGE
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


def test_the_present_list_is_read_in_pages_that_an_operator_may_have_lowered() -> None:
    """A refused limit is halved, and the list begins with that of every other list."""

    def page(call: Call) -> Reply:
        query = call.fields["query"]
        if query["limit"] > 125:
            return refusal_in({"code": 3, "message": "no", "details": [{"id": TOO_LARGE_A_PAGE}]})
        items = [{"name": f"o{n}"} for n in range(query["offset"], query["offset"] + 100)]
        return Answer({"details": {"totalResult": "200"}, "result": items})

    wire = FakeWire(ListOrganizations=page)

    assert len(OrganizationCalls(wire).visible()) == 200
    queries = [call.fields["query"] for calls in wire.sent for call in calls]
    places = [(query["offset"], query["limit"]) for query in queries]
    assert places == [(0, PAGE), (0, 250), (0, 125), (125, 125)]


def test_roles_that_the_service_does_not_tell_are_not_said_to_be_none() -> None:
    wire = FakeWire(
        ListOrganizations=UNKNOWN, ListOrgs=DENIED, GetMyOrg=DENIED, ListMyMemberships=DENIED
    )

    with pytest.raises(AccessDeniedError) as told:
        OrganizationCalls(wire).visible()

    assert told.value.remedy.startswith("The service does not report the roles of its user.")
