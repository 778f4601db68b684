"""Malformed requests are refused by the name of their field, over every store."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.secret import Secret
from reconciler.service.operations.callers import EMBEDDED
from tests.examples import JWT
from tests.unit.service.asking import Asking


@pytest.mark.parametrize(
    ("operation", "fields", "message"),
    [
        ("CreateAction", {"nam": "a", "script": "b"}, "name: is required"),
        (
            "CreateAction",
            {"name": "a", "script": "b", "allowdToFail": True},
            "allowdToFail: is not a field of this request",
        ),
        ("CreateAction", {"name": 1, "script": "b"}, "name: must be a string"),
        ("CreateAction", {"name": None, "script": "b"}, "name: is required"),
        ("CreateAction", {"name": "a\0", "script": "b"}, "name: must not contain NUL"),
        (
            "CreateAction",
            {"name": "a", "script": "b", "allowedToFail": "yes"},
            "allowedToFail: must be true or false",
        ),
        ("CreateAction", {"name": "a", "script": float("nan")}, "script: must be a string"),
        ("CreateAction", {"name": "a", "script": {1, 2}}, "script: must be a string"),
        ("CreateAction", {"name": "a", "script": Secret("hidden")}, "script: must be a string"),
        ("CreateAction", {"name": "a", "script": EMBEDDED}, "script: must be a string"),
        ("AddOIDCApp", {"name": "a", "redirectUris": "x"}, "redirectUris: must be a list"),
        ("AddOIDCApp", {"name": "a", "redirectUris": [1]}, "redirectUris[0]: must be a string"),
        (
            "AddOIDCApp",
            {"name": "a", "appType": "OIDC_APP_TYPE_TV"},
            "appType: must be 'OIDC_APP_TYPE_WEB', 'OIDC_APP_TYPE_USER_AGENT' or ",
        ),
        ("AddOIDCApp", {"name": "a", "version": "2.0"}, "version: must be 'OIDC_VERSION_1_0'"),
        (
            "AddOIDCApp",
            {"name": "a", "loginVersion": {"loginV2": {}}},
            "loginVersion: is not offered by this service: leave it out",
        ),
        (
            "AddOIDCApp",
            {"name": "a", "backChannelLogoutUri": "https://x"},
            "backChannelLogoutUri: must be ''",
        ),
        (
            "AddProject",
            {"name": "a", "projectRoleAssertion": "yes"},
            "projectRoleAssertion: must be true or false",
        ),
        (
            "AddOrgJWTIDP",
            {"name": "a", **JWT, "stylingType": "STYLING_TYPE_GOOGLE"},
            "stylingType: must be 'STYLING_TYPE_UNSPECIFIED'",
        ),
        ("ListActions", {"query": {"limit": -1}}, "query.limit: must be a whole number, 0 or more"),
        ("ListActions", {"query": {"asc": 1}}, "query.asc: must be true or false"),
        ("ListActions", {"query": []}, "query: must be an object"),
        ("ListActions", {"queries": {}}, "queries: must be a list"),
        ("ListActions", {"sortingColumn": "ORG_FIELD_NAME_NAME"}, "sortingColumn: must be "),
        ("ListActions", {"odd": 1}, "odd: is not a field of this request"),
        (
            "ListActions",
            {"queries": [{"nameQuery": {}}]},
            "queries[0].nameQuery: is not a field of this request",
        ),
        (
            "ListActions",
            {"queries": [{}]},
            "queries[0].query: must be one of actionIdQuery, actionNameQuery, actionStateQuery",
        ),
        (
            "ListActions",
            {"queries": [{"actionNameQuery": {"name": "a", "method": "LIKE"}}]},
            "queries[0].actionNameQuery.method: must be one of ",
        ),
        (
            "ListActions",
            {"queries": [{"actionNameQuery": {"name": "x" * 201}}]},
            "queries[0].actionNameQuery.name: must be at most 200 characters long",
        ),
        ("GetAction", {}, "id: is required"),
        ("Healthz", {"a": 1}, "a: is not a field of this request"),
    ],
)
def test_what_is_malformed_is_refused_by_the_name_of_its_field(
    ask: Asking, operation: str, fields: dict[str, Any], message: str
) -> None:
    """A misspelt field that is ignored looks, to its author, like a change that was made."""
    if operation == "AddOIDCApp":
        fields = {"projectId": ask.project, **fields}
    before = ask.event_count()

    refusal = ask.refused(operation, organization=ask.organization, **fields)

    assert (refusal.code, refusal.http_status) == (3, 400)
    assert refusal.message.startswith(message)
    assert ask.event_count() == before


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_no_store_can_hold_is_refused(ask: Asking, text: str) -> None:
    """Lone surrogates are no Unicode text; wherever they stand, they are the caller's mistake."""
    refused = [
        ask.refused("CreateAction", organization=ask.organization, name=text, script="x"),
        ask.refused("CreateAction", organization=ask.organization, name="a", **{text: 1}),
        ask.refused("CreateAction", organization=ask.organization, name="a", script=text),
        ask.refused("GetAction", id=text),
        ask.refused("ListObjects", organizationId=text),
        ask.refused("ListObjects", organizationId=ask.organization, cursor=text),
        ask.refused("AcquireLease", named="a", holder=text, seconds=1),
        ask.refused(
            "CreateAction",
            organization=ask.organization,
            name="a",
            script="x",
            idempotency_key=text,
        ),
        ask.refused(
            "CreateAction",
            organization=ask.organization,
            name="a",
            script="x",
            context=f'{{"tree":"{text}"}}',
        ),
        ask.refused("GetMyOrg", organization=text),
    ]

    assert {refusal.code for refusal in refused} == {3}
    assert all(refusal.message.isascii() for refusal in refused)


def test_a_refusal_never_repeats_what_was_sent(ask: Asking) -> None:
    """What a caller sends may be a secret, or made to be shown."""
    for fields in (
        {"name": "canary" * 100, "script": "x"},
        {"name": "a", "script": "x", "timeout": "canary"},
        {"name": "a", "script": ["canary"]},
        {"name": "a", "script": "x", "allowedToFail": "canary"},
    ):
        refusal = ask.refused("CreateAction", organization=ask.organization, **fields)
        assert "canary" not in refusal.message + str(refusal.details)


def test_an_unknown_operation_is_unimplemented(ask: Asking) -> None:
    """12, as gRPC has it for methods a server does not know."""
    assert ask.refused("RemoveProject").code == 12


def test_a_field_name_that_is_made_to_be_shown_is_made_visible(ask: Asking) -> None:
    """Escapes in a refusal would reach the terminal of whoever reads it."""
    refusal = ask.refused("Healthz", **{"\x1b[31mred\u202e": 1})

    assert refusal.message == r"'\x1b[31mred\u202e': is not a field of this request"
