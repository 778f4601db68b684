"""Owed secrets over the wire: pages, claims by organization, and answers that fit no question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.errors import LockHeldError, ServiceError
from reconciler.resources.call import Call, Code
from reconciler.resources.secret import Secret
from reconciler.service_client import owed as module
from reconciler.service_client.owed import Custody, owed_by_tree, owed_secrets
from reconciler.service_client.port import SecretOrder, Written
from reconciler.service_client.wire import Answer, Reply, WireRefusal
from reconciler.state import OwedSecret
from tests.builders import ACME, WEB, a_ref, held
from tests.rows import each_row

HELD = held(WEB, organization_id="7")
LISTED: dict[str, Any] = {
    "id": HELD.id,
    "clientId": "c",
    "madeAt": "5",
    "since": "2026-01-02T03:04:05Z",
    "madeBy": "ci",
    "tree": "default",
    "run": "run-1",
    "state": "owed",
}
OWED = OwedSecret(WEB, HELD.id, "c", 5, "2026-01-02T03:04:05Z", "ci", "default", "run-1")


class Wire:
    """Answers calls by a function of a test, and keeps them."""

    def __init__(self, answer: Callable[[Call], Reply]) -> None:
        self.answer = answer
        self.sent: list[Call] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Return the answer to each call."""
        self.sent += calls
        return [self.answer(call) for call in calls]


def knowing(answer: Callable[[Call], Reply]) -> tuple[Custody, Wire]:
    """Return a custody that knows the owner of one application."""
    wire = Wire(answer)
    custody = Custody(wire)
    order = SecretOrder(
        held(WEB, object_id=HELD.id, organization_id="7", project_id="p", client_id="c")
    )
    custody.note(order, Written(HELD.id, 5, "c"))
    return custody, wire


def test_every_page_is_listed() -> None:
    """Until one names no next."""

    def page(call: Call) -> Answer:
        is_first = call.fields["cursor"] == ""
        return Answer({"owedSecrets": [LISTED] * is_first, "next": "more" if is_first else ""})

    wire = Wire(page)

    found = Custody(wire).listed(["7", "8"], [HELD])

    assert found == (OWED, OWED)
    asked = [(call.organization, call.fields["cursor"]) for call in wire.sent]
    assert asked == [("7", ""), ("8", ""), ("7", "more"), ("8", "more")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, [OWED]),
        ({"state": "lost"}, [replace(OWED, lost=True)]),
        ({"id": "unlisted"}, []),
    ],
)
def test_a_secret_is_that_of_an_application_that_was_listed(
    changed: dict[str, str], expected: list[OwedSecret]
) -> None:
    assert list(owed_secrets([{**LISTED, **changed}], {HELD.id: HELD})) == expected


@pytest.mark.parametrize(
    "changed", [{"state": "new"}, {"id": ""}, {"madeAt": 5}, {"clientId": None}, {"tree": 7}]
)
def test_a_secret_that_is_not_as_the_interface_has_it_is_an_error(changed: dict[str, Any]) -> None:
    with pytest.raises(ServiceError, match="cannot be used"):
        list(owed_secrets([{**LISTED, **changed}], {HELD.id: HELD}))


def test_a_claim_is_made_under_the_lease_of_its_organization() -> None:
    answer = {"id": HELD.id, "madeAt": "5", "clientId": "c", "clientSecret": "geheim"}
    custody, wire = knowing(lambda _: Answer({"secrets": [answer]}))

    (result,) = custody.claim([OWED], {"tree": "default"}, {ACME.key.organization: "lease"})

    assert result == Written(HELD.id, 5, "c", Secret("geheim"))
    (call,) = wire.sent
    assert (call.organization, call.lease, call.context) == ("7", "lease", '{"tree": "default"}')
    assert call.fields["secrets"] == [{"id": HELD.id, "madeAt": "5"}]


def test_a_secret_that_cannot_be_had_again_is_an_error_in_its_place() -> None:
    refused = {"id": HELD.id, "error": {"code": 9, "message": "it was replaced"}}
    custody, _ = knowing(lambda _: Answer({"secrets": [refused]}))
    unknown = replace(OWED, ref=a_ref(name="other"), id="9")

    first, second = custody.claim([OWED, unknown], {}, {})

    assert isinstance(first, ServiceError)
    assert "it was replaced" in first.problem
    assert isinstance(second, ServiceError), "an application whose owner is not known"


@each_row(
    "secrets",
    [
        pytest.param([], id="too few"),
        pytest.param([{"id": "9", "clientSecret": "x", "madeAt": "5"}], id="of another"),
        pytest.param([{"id": HELD.id, "clientSecret": "", "madeAt": "5"}], id="an empty one"),
        pytest.param([{"id": HELD.id, "clientSecret": "x", "madeAt": "6"}], id="a newer one"),
        pytest.param([{"id": HELD.id, "error": {"code": "9"}}], id="an odd error"),
        pytest.param("x", id="no list"),
    ],
)
def test_an_answer_to_another_question_is_an_error(secrets: object) -> None:
    """A secret under the wrong name would be delivered under it."""
    custody, _ = knowing(lambda _: Answer({"secrets": secrets}))

    with pytest.raises(ServiceError, match="cannot be used"):
        custody.claim([OWED], {}, {})


def test_one_call_names_so_many_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    custody, wire = knowing(lambda _: Answer({}))
    delivered = [Written(HELD.id, number) for number in range(5)]

    custody.acknowledge([*delivered, Written("unknown", 1)], {})

    assert [len(call.fields["secrets"]) for call in wire.sent] == [2, 2, 1]


def test_what_a_proxy_finds_too_large_is_asked_in_parts() -> None:
    """Otherwise nothing could be delivered, and no apply would get past what is owed."""

    def answer(call: Call) -> Reply:
        named = call.fields["secrets"]
        if len(named) > 2:
            return WireRefusal(Code.INVALID_ARGUMENT, "HTTP status 413")
        claimed = [{**each, "clientId": "c", "clientSecret": each["madeAt"]} for each in named]
        return Answer({"secrets": claimed} if call.operation == "ClaimSecrets" else {})

    custody, wire = knowing(answer)
    owed = [replace(OWED, made_at=number) for number in range(5)]

    claimed = custody.claim(owed, {}, {})
    custody.acknowledge([Written(HELD.id, number) for number in range(5)], {})

    assert {each.client_secret for each in claimed if isinstance(each, Written)} == {Secret("4")}
    for operation in ("ClaimSecrets", "AcknowledgeSecrets"):
        sent = [each.fields["secrets"] for each in wire.sent if each.operation == operation]
        done = [each["madeAt"] for named in sent if len(named) <= 2 for each in named]
        assert done == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("is_code_told", [False, True])
def test_what_is_refused_in_words_or_alone_is_an_error(*, is_code_told: bool) -> None:
    """The service itself finds nothing too large that the client sends."""
    refusal = WireRefusal(Code.INVALID_ARGUMENT, "no", is_code_told=is_code_told)
    custody, wire = knowing(lambda _: refusal)

    with pytest.raises(ServiceError):
        custody.acknowledge([Written(HELD.id, 5)] * (2 if is_code_told else 1), {})

    assert len(wire.sent) == 1


@pytest.mark.parametrize(
    ("code", "error"), [(Code.ABORTED, LockHeldError), (Code.INTERNAL, ServiceError)]
)
def test_a_refused_acknowledgement_is_an_error(code: Code, error: type[Exception]) -> None:
    custody, _ = knowing(lambda _: WireRefusal(code, "no"))

    with pytest.raises(error):
        custody.acknowledge([Written(HELD.id, 5)], {})


def test_nothing_delivered_sends_nothing() -> None:
    custody, wire = knowing(lambda _: Answer({}))

    custody.acknowledge([], {})

    assert wire.sent == []


@pytest.mark.parametrize(
    ("organization", "counts"),
    [
        ({"owed": []}, {}),
        ({"owed": [{"tree": "a", "secrets": "2"}, {"tree": "", "secrets": "1"}]}, {"a": 2, "": 1}),
    ],
)
def test_an_organization_says_what_it_owes_to_each_tree(
    organization: dict[str, Any], counts: dict[str, int]
) -> None:
    assert owed_by_tree(organization) == counts
