"""What each role may do and see, over every store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.table import operations
from tests.contract.right_requests import NOTHING, Tenant, right_requests, tenant_of
from tests.unit.service.asking import Asking

OF_ADMINS = {"ListTokens", "ListTrust", "GetTrust", "GrantTrust", "RevokeTrust"}
ADMINS = {"AddOrg", *OF_ADMINS}
ROLES = {
    Role.VIEWER: {row.name for row in operations().values() if not row.writes} - OF_ADMINS,
    Role.EDITOR: operations().keys() - ADMINS,
    Role.ADMIN: operations().keys(),
}
OF_NO_TENANT = {
    *("AddOrg", "ListOrgs", "ListTokens"),
    *("ListOwedSecrets", "ClaimSecrets", "AcknowledgeSecrets"),
}


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_what_it_is_for(ask: Asking, role: Role) -> None:
    """Permission is asked before anything else is looked at."""
    may = set()
    for operation in operations():
        refused = ask.service.call_many(
            [ask.request(operation, {"by": Caller("x", role), "odd": 1, "organization": "\n"})]
        )[0]
        assert isinstance(refused, Refusal)
        if refused.code != 7:
            may.add(operation)

    assert may == ROLES[role]


def everything_about(ask: Asking, *, foreign: bool) -> dict[str, dict[str, Any]]:
    """Return a call of every operation that addresses something, of others or of nobody."""
    owner = ask("AddOrg", name="globex")["id"]
    tenant = NOTHING
    if foreign:
        tenant = tenant_of(owner, lambda name, fields: ask(name, organization=owner, **fields))
    lease = {"named": "globex" if foreign else "nobody"}
    return {
        **{
            operation: fields if names_an_object(fields) else {**fields, **of(tenant)}
            for operation, fields in right_requests(tenant, "x").items()
            if operation not in OF_NO_TENANT
        },
        "GetMyOrg": of(tenant),
        **{
            operation: {**fields, "expected_sequence": 1}
            for operation, fields in right_requests(tenant, "x").items()
            if operation.startswith("Update")
        },
        "AcquireLease": {**lease, "holder": "x", "seconds": 1},
        "RenewLease": {**lease, "lease": "x", "seconds": 1},
        "ReleaseLease": {**lease, "lease": "x"},
        "PauseTree": {**lease, "tree": "x", "reason": "x", "seconds": 1},
        "ResumeTree": {**lease, "tree": "x"},
        "RecordCommit": {**lease, "tree": "x", "commit": 40 * "a", "lease": "x"},
    }


def of(tenant: Tenant) -> dict[str, Any]:
    """Return the organization that a call is made for."""
    return {"organization": tenant.organization}


def names_an_object(fields: Mapping[str, Any]) -> bool:
    return bool(fields.keys() & {"id", "idpId", "appId", "projectId", "organizationId"})


@pytest.mark.parametrize("own_header", [False, True])
def test_what_belongs_to_others_looks_exactly_like_what_is_missing(
    ask: Asking, *, own_header: bool
) -> None:
    """Code, message, details: a caller learns nothing of another organization."""
    limited = Caller("limited", Role.ADMIN, frozenset({ask.organization}))
    missing = everything_about(ask, foreign=False)
    foreign = everything_about_again(ask)
    before = ask.event_count()
    assert foreign.keys() == missing.keys()

    for operation in missing:
        told = []
        for fields in (missing[operation], foreign[operation]):
            own = {"organization": ask.organization} if own_header else {}
            refusal = ask.refused(operation, **{**own, **fields}, by=limited)
            told.append((refusal.code, refusal.message, refusal.reason, dict(refusal.details)))
        assert told[0] == told[1], operation
        assert told[0][0] == 5, operation
    assert ask.event_count() == before


def everything_about_again(ask: Asking) -> dict[str, dict[str, Any]]:
    """Return calls about the organization that is there already."""
    (found,) = [org for org in ask("ListOrgs")["result"] if org["name"] == "globex"]
    original = Asking.__call__
    made = {"AddOrg": {"id": found["id"]}}

    class Known(Asking):
        def __call__(self, operation: str, /, **fields: Any) -> dict[str, Any]:
            return made.get(operation) or original(self, operation, **fields)

    return everything_about(
        Known(ask.service, ask.clock, ask.organization, ask.project), foreign=True
    )


def test_a_limited_caller_lists_what_it_may_see(ask: Asking) -> None:
    """And does not learn how many others there are."""
    second = ask("AddOrg", name="globex")["id"]
    ask("AddOrg", name="initech")
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization, second}))

    answer = ask("ListOrgs", by=limited)

    assert [org["name"] for org in answer["result"]] == ["acme", "globex"]
    assert answer["details"]["totalResult"] == "2"
    query = {"nameQuery": {"name": "initech"}}
    assert ask("ListOrgs", by=limited, queries=[query])["result"] == []


def test_only_a_token_for_all_makes_organizations(ask: Asking) -> None:
    """Whoever could not see it afterwards does not make it."""
    limited = Caller("limited", Role.ADMIN, frozenset({ask.organization}))

    assert ask.refused("AddOrg", name="globex", by=limited).code == 7


def test_without_a_header_the_only_organization_of_the_token_is_meant(ask: Asking) -> None:
    """Source 5: by default the organization of the requesting user is used."""
    one = Caller("one", Role.EDITOR, frozenset({ask.organization}))

    made = ask("CreateAction", name="a", script="x", by=one)

    assert made["details"]["resourceOwner"] == ask.organization
    assert ask("GetMyOrg", by=one)["org"]["name"] == "acme"


@pytest.mark.parametrize("organizations", [None, frozenset({"1", "2"}), frozenset[str]()])
def test_a_token_for_several_must_say_which(
    ask: Asking, organizations: frozenset[str] | None
) -> None:
    """Guessing would write into the wrong organization."""
    caller = Caller("several", Role.EDITOR, organizations)

    refusal = ask.refused("CreateAction", name="a", script="x", by=caller)

    assert (refusal.code, refusal.message.split(":")[0]) == (9, "x-service-orgid")


def test_an_object_is_found_by_its_id_without_a_header(ask: Asking) -> None:
    """It is found by its owner; with a header it must belong to that organization."""
    other = ask("AddOrg", name="globex")["id"]
    made = ask.an_action()["id"]

    assert ask("GetAction", id=made)["action"]["id"] == made
    assert ask("GetAction", id=made, organization=ask.organization)["action"]["id"] == made
    assert ask.refused("GetAction", id=made, organization=other).code == 5


@pytest.mark.parametrize("header", ["a,b", "a b", "a/../b", "\xe9", "x" * 201, "a\n", "\0", "a "])
def test_a_malformed_header_is_refused(ask: Asking, header: str) -> None:
    """Whatever two servers might read differently is read by none."""
    refusal = ask.refused("ListActions", organization=header)

    assert (refusal.code, refusal.message.split(":")[0]) == (3, "x-service-orgid")


def test_an_id_of_another_kind_is_no_such_object(ask: Asking) -> None:
    """An id is only good where its kind is asked for."""
    app, action = ask.an_app()["appId"], ask.an_action()["id"]
    second = ask("AddProject", organization=ask.organization, name="blog")["id"]

    assert ask.refused("GetAction", id=app).code == 5
    assert ask.refused("GetProjectByID", id=action).code == 5
    for operation in ("GetAppByID", "RemoveApp", "DeactivateApp", "ReactivateApp"):
        assert ask.refused(operation, projectId=second, appId=app).code == 5
