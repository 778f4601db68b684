"""What a call may reach and how it writes, refusals in the words that a caller sees."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.rows import LeaseRow
from reconciler.service.operations.callers import Caller, Role
from tests.examples import JWT, NOON, SCRIPT, Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import ADMIN, Asking

STRANGER = Caller("stranger", Role.ADMIN, frozenset({"404"}))


def told(refusal: Refusal) -> tuple[Code, str, dict[str, Any]]:
    return refusal.code, refusal.message, dict(refusal.details)


def missing(what: str) -> tuple[Code, str, dict[str, Any]]:
    return Code.NOT_FOUND, f"there is no such {what}", {}


def test_what_is_missing_is_told_by_what_it_would_be(ask: Asking) -> None:
    """The noun is that of the call, and never that of what the id belongs to."""
    lost = {"id": "404"}

    assert told(ask.refused("GetAction", **lost)) == missing("action")
    assert told(ask.refused("GetAction", id=ask.project)) == missing("action")
    assert told(ask.refused("GetOrgIDPByID", **lost)) == missing("identity provider")
    assert told(ask.refused("GetProjectByID", **lost)) == missing("project")
    assert told(ask.refused("AddOIDCApp", projectId="404", name="a")) == missing("project")
    assert told(ask.refused("ListActions", organization="404")) == missing("organization")
    assert told(ask.refused("RecordContext", **lost)) == missing("object")


def test_what_one_s_own_organization_holds_is_there(ask: Asking) -> None:
    """For who sees that organization and no other."""
    own = Caller("own", Role.EDITOR, frozenset({ask.organization}))
    action = ask.an_action()["id"]

    assert ask("RecordContext", id=action, by=own, context='{"tree":"t"}')


def test_what_others_hold_is_missing_whichever_way_it_is_asked_for(ask: Asking) -> None:
    """An object of any kind by its id, and an owner that the batch has looked up already."""
    action = ask.an_action()["id"]
    mine = ask.request("AddOIDCApp", {"projectId": ask.project, "name": "mine"})
    theirs = replace(mine, fields={**mine.fields, "name": "theirs"}, caller=STRANGER)

    assert told(ask.refused("RecordContext", id=action, by=STRANGER)) == missing("object")
    answers = ask.service.call_many([mine, theirs])
    assert isinstance(answers[0], dict)
    assert isinstance(answers[1], Refusal)
    assert told(answers[1]) == missing("project")


def test_what_was_verified_of_a_caller_stands_with_its_events(ask: Asking) -> None:
    """Beside what the caller claims."""
    run = replace(ADMIN, name="machine:ci", verified='{"run":"7"}')

    made = ask.an_action(by=run, context='{"tree":"t"}')

    (event,) = ask("GetObjectHistory", id=made["id"])["events"]
    told = event["writer"], event["context"], event["verified"]
    assert told == ("machine:ci", {"tree": "t"}, {"run": "7"})


def test_an_owner_is_looked_up_once_in_a_batch(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand applications of one project ask for it once."""
    looked_up: list[str] = []
    store: Any = type(ask.service.store)
    get = store.get_object

    def watched(self: Any, object_id: str) -> Any:
        looked_up.append(object_id)
        return get(self, object_id)

    monkeypatch.setattr(store, "get_object", watched)
    calls = [
        ask.request("AddOIDCApp", {"projectId": ask.project, "name": f"a{number}"})
        for number in range(5)
    ]

    assert all(isinstance(answer, dict) for answer in ask.service.call_many(calls))

    assert looked_up.count(ask.project) == 1


def test_an_object_that_moved_on_is_told_with_where_it_is_now(ask: Asking) -> None:
    """The caller can read it again, and see whether it is newer or older."""
    made = ask.an_idp()
    now = made["details"]["sequence"]

    refusal = ask.refused(
        "UpdateOrgIDPJWTConfig", idpId=made["idpId"], **{**JWT, "issuer": "a"}, expected_sequence=1
    )

    assert told(refusal) == (
        Code.PRECONDITION_FAILED,
        f"the object has changed since; it is now at sequence {now}",
        {"sequence": now},
    )


@pytest.mark.parametrize(
    ("operation", "fields", "noun"),
    [
        ("AddOrg", {"name": "ACME"}, "organization"),
        ("AddProject", {"name": "Shop"}, "project"),
        ("AddOIDCApp", {"name": "WEB"}, "application"),
        ("AddOrgJWTIDP", {"name": "PARTNER", **JWT}, "identity provider"),
        ("CreateAction", {"name": "GREET", "script": "s"}, "action"),
    ],
)
def test_a_name_that_is_taken_is_told_by_what_has_it(
    ask: Asking, operation: str, fields: dict[str, Any], noun: str
) -> None:
    """And that capitals make no other name of it."""
    ask.an_app()
    ask.an_idp()
    ask.an_action()
    if operation == "AddOIDCApp":
        fields = {**fields, "projectId": ask.project}
    beside = {} if operation == "AddOrg" else {"organization": ask.organization}

    assert told(ask.refused(operation, **fields, **beside)) == (
        Code.ALREADY_EXISTS,
        f"there is another {noun} of this name (ignoring case)",
        {},
    )


@pytest.mark.parametrize(("left", "counts"), [(1, True), (0, False), (-1, False)])
def test_a_lease_counts_until_its_time_has_come(left: int, *, counts: bool) -> None:
    """At that very moment somebody else may take it."""
    with closing(open_memory(now=lambda: NOON)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        with service.store.transaction() as tx:
            tx.put(LeaseRow("acme", "1.token", "holder", 1, 1, NOON + left))

        answer = service.call_many(
            [
                ask.request(
                    "CreateAction",
                    {
                        "organization": ask.organization,
                        "name": "a",
                        "script": "s",
                        "under": "1.token",
                        "by": ADMIN,
                    },
                )
            ]
        )[0]

    assert isinstance(answer, dict) is counts
    assert counts or (isinstance(answer, Refusal) and answer.reason == "lease.lost")


def lease_of(ask: Asking, **fields: Any) -> dict[str, Any]:
    return ask("AcquireLease", **{"named": "acme", "holder": "me", "seconds": 60, **fields})


def test_a_flow_that_never_held_anything_is_begun_under_the_lease_of_its_organization(
    ask: Asking,
) -> None:
    """A lease that was lost, or that is of another organization, begins none."""
    login = {"organization": ask.organization, "flowType": "1", "triggerType": "1"}
    asked = {**login, "actionIds": [ask.an_action()["id"]]}
    lost = lease_of(ask)
    mine = lease_of(ask, insteadOf=lost["fence"])
    other = lease_of(ask, named="globex")
    before = ask.event_count()

    for lease in (lost, other):
        refusal = ask.refused("SetTriggerActions", **asked, under=lease["lease"])
        assert (refusal.code, refusal.reason) == (Code.ABORTED, "lease.lost")
    assert ask.event_count() == before

    ask("SetTriggerActions", **asked, under=mine["lease"])
    assert ask.event_count() == before + 1


def written_by(ask: Asking, action: str, tree: str, script: str) -> None:
    ask("UpdateAction", id=action, name="greet", script=script, context=f'{{"tree": "{tree}"}}')


def test_an_object_from_before_the_limit_of_trees_keeps_them(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them may still write it, and no other one."""
    action = ask.an_action(context='{"tree": "a"}')["id"]
    written_by(ask, action, "b", "function b() {}")
    monkeypatch.setattr("reconciler.service.operations.session.MAX_TREES", 1)

    written_by(ask, action, "a", "function a() {}")

    refusal = ask.refused(
        "UpdateAction", id=action, name="greet", script=SCRIPT, context='{"tree": "c"}'
    )
    assert refusal.reason == "object.too_many_trees"
    assert ask.objects()[0]["trees"] == ["a", "b"]


def test_a_newer_secret_ends_the_custody_of_one_whose_time_is_over(ask: Asking) -> None:
    """Its seal was dropped by then, so that there is none to seal again."""
    made = ask.an_app(custody="run")
    ask.clock.time += 31 * 24 * 60 * 60 * 1_000_000
    ask.an_action()  # a write drops what has expired
    with ask.service.store.snapshot() as view:
        assert [row.seal for row in view.owed_page(ask.organization)] == [None]

    ask("RegenerateOIDCClientSecret", projectId=ask.project, appId=made["appId"])

    with ask.service.store.snapshot() as view:
        assert not view.owed_page(ask.organization)
