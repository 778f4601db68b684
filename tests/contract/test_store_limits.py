"""No call from outside reaches a limit of a store: each is answered, or refused for its fields.

Stores have limits of their own: variables and depth of a statement, lengths, whole numbers of 64
bits, texts without NUL. Whatever meets one looks like a store that cannot be used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.custody import AT_ONCE
from reconciler.service.operations.lists import MAX_PAGE, MAX_QUERIES, METHODS
from reconciler.service.operations.table import operations
from tests.examples import JWT
from tests.unit.service.asking import Asking

LARGE = 2**63
DEEP: Any = json.loads('{"a":' * 60 + "1" + "}" * 60)
TEXTS = [
    "", "\0", "a\0b", "\ud800", "\udfff\ud800", "\uffff", "%", "_", "\\", "'", '"', "'; --", "$1",
    "%s", "?", "*", "[", "İ" * 200, "ß" * 200, "😀" * 200, "x" * 201, "x" * 3000, "x" * 60_000,
]  # fmt: skip
NUMBERS = [
    -1, 0, 1, MAX_PAGE + 1, 2**31, 2**32, LARGE - 1, LARGE, 2**64, 10**400, -LARGE, 1.5, 1e308,
    str(LARGE - 1), str(LARGE), "1" * 5000, "\u0661", float("nan"), float("inf"),
]  # fmt: skip
LISTS: list[Any] = [
    [], [None], ["x"] * 5000, [{}] * 5000, [[]], [DEEP], ["\0"], ["\ud800"], {}, {"x": 1}, DEEP,
    None, True, False,
]  # fmt: skip
BY_TYPE: Mapping[type, list[Any]] = {
    str: [*TEXTS, 1, DEEP],
    int: [*NUMBERS, "", DEEP],
    list: [*LISTS, "x", LARGE],
    dict: [*LISTS, "x", LARGE],
    bool: [*LISTS, "x", LARGE],
}


def calls(ask: Asking) -> Mapping[str, dict[str, Any]]:
    """Return a call of every operation with every field, about what is there."""
    app = {"projectId": ask.project, "appId": ask.an_app()["appId"]}
    idp, action = ask.an_idp()["idpId"], ask.an_action()["id"]
    config = {
        "redirectUris": ["https://a.example/cb"],
        "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
        "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
        "appType": "OIDC_APP_TYPE_WEB",
        "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
        "postLogoutRedirectUris": ["https://a.example/out"],
        "additionalOrigins": ["https://a.example"],
        "clockSkew": "1s",
    }
    owner, cut = {"organization": ask.organization}, {"query": {"offset": 0, "limit": 10}}
    page = {"organizationId": ask.organization, "cursor": "", "limit": 10}
    secrets = {"organizationId": ask.organization, "secrets": [{"id": "1", "madeAt": "1"}]}
    script = {"script": "x", "timeout": "1s", "allowedToFail": True}
    lease = {"named": "acme", "holder": "h", "seconds": 1, "insteadOf": 1}
    return {
        "AddOrg": {"name": "x"},
        "ListOrgs": {**cut, "queries": [], "sortingColumn": "ORG_FIELD_NAME_NAME"},
        "AddProject": {**owner, "name": "x"},
        "ListProjects": {**owner, **cut, "queries": []},
        "GetProjectByID": {"id": ask.project},
        "UpdateProject": {"id": ask.project, "name": "y", "projectRoleCheck": True},
        "AddOrgJWTIDP": {**owner, "name": "x", **JWT},
        "ListOrgIDPs": {**owner, **cut, "queries": [], "sortingColumn": "IDP_FIELD_NAME_NAME"},
        "GetOrgIDPByID": {"id": idp},
        "UpdateOrgIDP": {"idpId": idp, "name": "y"},
        "UpdateOrgIDPJWTConfig": {"idpId": idp, **JWT},
        "RemoveOrgIDP": {"idpId": "0"},
        "AddJWTProvider": {**owner, "name": "x", **JWT, "audience": "https://a.example"},
        "ListProviders": {**owner, **cut, "queries": []},
        "GetProviderByID": {"id": idp},
        "UpdateJWTProvider": {"id": idp, "name": "y", **JWT, "audience": "https://a.example"},
        "DeleteProvider": {"id": "0"},
        "AddOIDCApp": {"projectId": ask.project, "name": "x", **config},
        "ListApps": {"projectId": ask.project, **cut, "queries": []},
        "GetAppByID": app,
        "UpdateApp": {**app, "name": "y"},
        "UpdateOIDCAppConfig": {**app, **config},
        "RemoveApp": {"projectId": ask.project, "appId": "0"},
        "RegenerateOIDCClientSecret": app,
        "CreateAction": {**owner, "name": "x", **script},
        "ListActions": {**owner, **cut, "queries": [], "sortingColumn": "ACTION_FIELD_NAME_ID"},
        "GetAction": {"id": action},
        "UpdateAction": {"id": action, "name": "y", **script},
        "DeleteAction": {"id": "0"},
        "GetFlow": {**owner, "type": "1"},
        "SetTriggerActions": {
            **owner,
            "flowType": "1",
            "triggerType": "2",
            "actionIds": [action],
        },
        "ClearFlow": {**owner, "type": "1"},
        **{
            f"{verb}{noun}": target
            for verb in ("Deactivate", "Reactivate")
            for noun, target in (
                ("Project", {"id": ask.project}),
                ("OrgIDP", {"idpId": idp}),
                ("App", app),
                ("Action", {"id": action}),
            )
        },
        "ListObjects": page,
        "GetObjectHistory": {"id": action, "after": "0"},
        "ListRemovals": {**page, "cursor": 0},
        "ListTrees": {"organizationId": ask.organization},
        "RecordContext": {"id": action},
        "WriteBatch": {"orders": [{"operation": "DeleteAction", "fields": {"id": "0"}}]},
        "ListOwedSecrets": page,
        "ClaimSecrets": {**secrets, "under": "1.x"},
        "AcknowledgeSecrets": secrets,
        "AcquireLease": lease,
        "RenewLease": {"named": "acme", "lease": "x", "seconds": 1},
        "ReleaseLease": {"named": "acme", "lease": "x"},
    }


def spoilt(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a call once for each of its fields and each hostile value for it."""
    for name, good in fields.items():
        for value in BY_TYPE[type(good)]:
            if name not in {"organization", "under"} or isinstance(value, str):  # headers are texts
                yield {**fields, name: value}


def beside(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a call once for each header and each hostile text."""
    for name in ("organization", "idempotency_key", "under", "context", "custody"):
        for text in TEXTS:
            yield {**fields, name: text}
    for text in TEXTS[1:]:
        yield {**fields, "context": json.dumps({"tree": text, "other": text})}
    for sequence in (0, LARGE - 1, LARGE, 2**64, 10**400):
        yield {**fields, "expected_sequence": sequence}


def check(ask: Asking, operation: str, *calls: dict[str, Any]) -> None:
    """Carry out calls that may be refused for what they say, and for nothing else."""
    try:
        answers = ask.service.call_many([ask.request(operation, fields) for fields in calls])
    except Exception as failure:
        if len(calls) == 1:
            raise AssertionError(f"{operation} {str(calls)[:300]}") from failure
        for fields in calls:
            check(ask, operation, fields)
        raise
    for answer, fields in zip(answers, calls, strict=True):
        if isinstance(answer, Refusal):
            told = (operation, str(fields)[:300], answer)
            assert answer.code not in {Code.UNAVAILABLE, Code.INTERNAL}, told


def test_no_value_of_a_field_is_too_much_for_a_store(ask: Asking) -> None:
    """Every field of every operation."""
    known = calls(ask)
    assert set(operations()) - set(known) == {
        "Healthz", "GetIAM", "GetMyOrg", "GetServiceInfo"
    }  # fmt: skip
    for operation, fields in known.items():
        if operation == "WriteBatch":  # has commits of its own
            for hostile in spoilt(fields):
                check(ask, operation, hostile)
        else:
            check(ask, operation, fields, *spoilt(fields))


def test_no_value_of_a_header_is_too_much_for_a_store(ask: Asking) -> None:
    """Leases and records are looked up by them, and records and events keep them."""
    known = calls(ask)
    for operation in ("CreateAction", "AddOIDCApp", "GetMyOrg"):
        check_headers(ask, operation, known.get(operation, {}))


def check_headers(ask: Asking, operation: str, call: Mapping[str, Any]) -> None:
    hostile = list(beside(call))
    for number, fields in enumerate(hostile):
        if "name" in fields:
            fields["name"] = f"n{number}"
    check(ask, operation, *hostile)


FIELDS = {
    "ListOrgs": ("nameQuery", "idQuery"),
    "ListProjects": ("nameQuery", ""),
    "ListOrgIDPs": ("idpNameQuery", "idpIdQuery"),
    "ListApps": ("nameQuery", ""),
    "ListActions": ("actionNameQuery", "actionIdQuery"),
}


def test_as_many_filters_as_allowed_are_answered_and_one_more_is_refused(ask: Asking) -> None:
    """1,000 were too deep for SQLite, 40,000 too many variables, and told as a broken store."""
    known = calls(ask)
    for operation in FIELDS:
        check_filters(ask, operation, known[operation])


def check_filters(ask: Asking, operation: str, fields: dict[str, Any]) -> None:
    by_name, by_id = FIELDS[operation]
    filters = [
        [{by_name: {"name": text, "method": method}}] * MAX_QUERIES
        for method in METHODS
        for text in ("\0", "\ud800", "%_", "\\", "*[?", "İ" * 200, "😀" * 200)
    ]
    if by_id:
        filters += [[{by_id: {"id": text}}] * MAX_QUERIES for text in TEXTS[1:4]]
    check(ask, operation, *({**fields, "queries": queries} for queries in filters))
    for count in (MAX_QUERIES + 1, 40_000):
        refusal = ask.refused(operation, **{**fields, "queries": filters[-1][:1] * count})
        assert (refusal.code, refusal.details["field"]) == (Code.INVALID_ARGUMENT, "queries")


def test_lists_of_ids_have_a_length(ask: Asking) -> None:
    """Each id is looked up."""
    for operation in ("ClaimSecrets", "AcknowledgeSecrets"):
        fields = dict(calls_of_secrets(ask, AT_ONCE))
        check(ask, operation, {**fields, "under": "1.x"} if operation == "ClaimSecrets" else fields)
        refusal = ask.refused(operation, **calls_of_secrets(ask, AT_ONCE + 1))
        assert (refusal.code, refusal.details["field"]) == (Code.INVALID_ARGUMENT, "secrets")


def calls_of_secrets(ask: Asking, count: int) -> dict[str, Any]:
    secrets = [{"id": str(number), "madeAt": str(number + 1)} for number in range(count)]
    return {"organizationId": ask.organization, "secrets": secrets}
