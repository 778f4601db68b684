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
from reconciler.service.operations.operation import Effect
from reconciler.service.operations.table import operations
from tests.contract.right_requests import right_requests, tenant_of
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


REMOVES = [row.name for row in operations().values() if row.effect is Effect.REMOVES]
REMOVED = {"id", "idpId", "appId"}


def calls(ask: Asking) -> Mapping[str, dict[str, Any]]:
    """Return a call of every operation with every field, about what is there."""
    owner = {"organization": ask.organization}
    held = tenant_of(ask.organization, lambda name, fields: ask(name, **owner, **fields))
    known = right_requests(held, "x")
    of_tree = {"named": "acme", "tree": "t"}
    lease = {**of_tree, "holder": "h", "seconds": 1, "insteadOf": 1}
    return {
        **{name: {**owner, **fields} for name, fields in known.items()},
        # What others are about stays.
        **{
            name: known[name] | dict.fromkeys(REMOVED & known[name].keys(), "0") for name in REMOVES
        },
        "ListObjects": {**known["ListObjects"], "cursor": "", "limit": 10},
        "ListOwedSecrets": {**known["ListOwedSecrets"], "cursor": "", "limit": 10},
        "ListRemovals": {**known["ListRemovals"], "cursor": 0, "limit": 10},
        "GetObjectHistory": {"id": held.action, "after": "0"},
        "ListTrees": {"organizationId": ask.organization},
        "WriteBatch": {"orders": [{"operation": "DeleteAction", "fields": {"id": "0"}}]},
        "ClaimSecrets": {**known["ClaimSecrets"], "under": "1.x"},
        "AcquireLease": lease,
        "ListChanges": {**known["ListChanges"], "cursor": 0, "limit": 10},
        "ListObjectsAt": {**known["ListObjectsAt"], "sequence": 1},
        "ListHeads": {"cursor": "0"},
        "ListTokens": {"cursor": "0", "limit": 10},
        "PauseTree": {**of_tree, "reason": "x", "seconds": 1},
        "ResumeTree": of_tree,
        "RecordCommit": {**of_tree, "commit": "x", "outcome": "changed", "lease": "x"},
        "RenewLease": {"named": "acme", "lease": "x", "seconds": 1},
        "ReleaseLease": {"named": "acme", "lease": "x"},
        "ListTrust": {},
        "GetTrust": {"name": "x"},
        "GrantTrust": {
            "kind": "issuer",
            "name": "x",
            "role": "viewer",
            "issuer": "https://issuer.example",
            "organizations": ["acme"],
            "claims": {"sub": ["x"]},
            "preset": "",
            "keys": "",
            "authority": "",
            "once": True,
            "expiresAt": 0,
        },
        "RevokeTrust": {"name": "x"},
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
