"""Tokens over each store: kept answers are for one token, and a revoked one writes nothing."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.operations.callers import make_token, revoke_token
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request
from tests.unit.service.asking import Asking

HOUR = 3_600_000_000


def token_of(ask: Asking, name: str, organization: str, expires_at: int = 0) -> str:
    """Make a token of an editor of one organization."""
    row = TokenRow(name, "editor", f'["{organization}"]', b"", ask.clock(), expires_at, 0)
    made = make_token(ask.service.store, row, secrets.token_bytes)
    assert made is not None
    return made.reveal()


def answered(ask: Asking, token: str, operation: str, key: str = "k", /, **fields: Any) -> Any:
    """Call from outside; return the answer, or the reason why it was refused."""
    headers = {"authorization": [f"Bearer {token}"], "idempotency-key": [key]}
    (received,) = ask.service.dispatcher.receive([Incoming(operation, fields, headers)])
    if isinstance(received.answer, Refusal):
        return received.answer.reason
    return received.answer


def test_a_kept_answer_is_for_the_token_and_not_for_its_name(ask: Asking) -> None:
    """Its name may pass to a token of another organization, and the answer holds a secret."""
    fields = {"projectId": ask.project, "name": "web"}
    globex = ask("AddOrg", name="globex")["id"]
    first = token_of(ask, "ci", ask.organization)
    made = answered(ask, first, "AddOIDCApp", **fields)
    assert answered(ask, first, "AddOIDCApp", **fields) == made
    revoke_token(ask.service.store, "ci", ask.clock())

    second = token_of(ask, "ci", globex)

    assert made["clientSecret"]
    assert answered(ask, second, "AddOIDCApp", **fields) == "object.not_found"


def test_the_next_token_of_the_same_rights_gets_no_answer_of_the_first(ask: Asking) -> None:
    """Custody is what gives a secret to a later run."""
    fields = {"projectId": ask.project, "name": "web"}
    answered(ask, token_of(ask, "ci", ask.organization), "AddOIDCApp", **fields)
    revoke_token(ask.service.store, "ci", ask.clock())

    second = token_of(ask, "ci", ask.organization)

    assert answered(ask, second, "AddOIDCApp", **fields) == "name.taken"


def test_a_caller_that_is_known_is_refused_once_its_token_is_revoked(ask: Asking) -> None:
    """Calls that write are let in without a look at the token; their commit looks."""
    token = token_of(ask, "going", ask.organization)
    headers = {"authorization": [f"Bearer {token}"]}

    def refused(fields: dict[str, Any]) -> str:
        call = Incoming("AddProject", fields, headers)
        (received,) = ask.service.dispatcher.receive([call])
        return received.answer.reason if isinstance(received.answer, Refusal) else ""

    assert refused({"name": "a"}) == ""
    revoke_token(ask.service.store, "going", ask.clock())
    before = ask.event_count()

    assert [refused({"name": name}) for name in ("b", "a", 1)] == ["token.revoked"] * 3
    assert ask.event_count() == before


@pytest.mark.parametrize("why", ["token.revoked", "token.expired"])
def test_a_token_is_looked_at_again_when_it_writes(
    ask: Asking, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """A write may wait for a lock long after it was let in; those beside it are carried out."""
    going = token_of(ask, "going", ask.organization, ask.clock() + HOUR)
    staying = token_of(ask, "staying", ask.organization)
    write = Engine.write

    def later(engine: Engine, requests: Sequence[Request], **named: bool) -> Any:
        if why == "token.expired":
            ask.clock.time += HOUR
        else:
            revoke_token(ask.service.store, "going", ask.clock())
        return write(engine, requests, **named)

    monkeypatch.setattr(Engine, "write", later)
    before = ask.event_count()
    calls = [
        Incoming("AddProject", {"name": name}, {"authorization": [f"Bearer {token}"]})
        for name, token in (("a", going), ("b", staying), ("c", going))
    ]

    answers = [received.answer for received in ask.service.dispatcher.receive(calls)]

    reasons = [answer.reason if isinstance(answer, Refusal) else "" for answer in answers]
    assert reasons == [why, "", why]
    assert ask.event_count() == before + 1


def test_a_repeat_may_say_a_default_or_name_its_own_organization(ask: Asking) -> None:
    """Clients and transports differ in what they leave out; the request is the same."""
    token = token_of(ask, "ci", ask.organization)
    fields = {"projectId": ask.project, "name": "web"}
    made = answered(ask, token, "AddOIDCApp", **fields)
    said = {"devMode": False, "redirectUris": [], "appType": "OIDC_APP_TYPE_WEB"}

    assert answered(ask, token, "AddOIDCApp", **fields, **said) == made
    headers = {
        "authorization": [f"Bearer {token}"],
        "idempotency-key": ["k"],
        "x-service-orgid": [ask.organization],
    }
    (again,) = ask.service.dispatcher.receive([Incoming("AddOIDCApp", fields, headers)])

    assert again.answer == made
    assert answered(ask, token, "AddOIDCApp", **fields, devMode=True) == "idempotency.reused"
