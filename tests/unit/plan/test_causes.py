"""Why a change is in a plan, told by an object's events: what each changed, what a tree left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation, error
from reconciler.errors import ServiceError
from reconciler.loop import MOST_HISTORIES, explained
from reconciler.plan.causes import (
    NOT_READ,
    cause_in_plan,
    cause_in_words,
    cause_of,
    cause_of_field,
    causes_in_words,
    causes_not_read,
    field_causes,
)
from reconciler.plan.diff import OWNER
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import (
    PARTIAL_TREE,
    Adopt,
    Cause,
    CauseKind,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Update,
)
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from reconciler.state import ObjectEvent, ObservedState
from tests.builders import (
    GREET,
    WEB,
    FakeService,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.rows import each_row

ANA: dict[str, Any] = {"changed_by": "ana", "changed_at": "2026-01-01T00:00:00Z", "sequence": 43}
SEEN = ObservedState("i", {})


@each_row(
    ("change", "kind"),
    [
        pytest.param(Create(declared(GREET)), CauseKind.NOT_HELD, id="not held"),
        pytest.param(
            Update(declared(GREET), held(GREET, changed_in="default", **ANA)),
            CauseKind.DECLARED,
            id="the last event is of this tree",
        ),
        pytest.param(
            Update(declared(GREET), held(GREET, **ANA)),
            CauseKind.SERVICE,
            id="somebody wrote without a tree",
        ),
        pytest.param(
            Update(declared(GREET), held(GREET, changed_in="other", **ANA)),
            CauseKind.SERVICE,
            id="another tree wrote",
        ),
        pytest.param(
            Adopt(declared(GREET), held(GREET, trees=(), **ANA)),
            CauseKind.NEVER_APPLIED,
            id="this tree never wrote",
        ),
        pytest.param(
            Delete(held(GREET, changed_in="default", **ANA)),
            CauseKind.UNDECLARED,
            id="no longer declared",
        ),
        pytest.param(
            Delete(held(GREET, trees=(), **ANA)), CauseKind.NEVER_APPLIED, id="somebody else's"
        ),
        pytest.param(
            Update(declared(GREET), held(GREET)), CauseKind.UNKNOWN, id="the service does not tell"
        ),
    ],
)
def test_the_cause_of_a_change(change: Change, kind: CauseKind) -> None:
    """A reviewer approves what was declared, and asks about the rest."""
    assert cause_of(change, "default").kind is kind


def test_a_change_on_the_service_is_told_with_author_time_and_sequence() -> None:
    """Whoever reads it knows whom to ask."""
    cause = cause_of(Update(declared(GREET), held(GREET, changed_in="other", **ANA)), "default")

    assert cause == Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43, "other")
    writer = "by ana for tree other at 2026-01-01T00:00:00Z (sequence 43)"
    assert cause_in_words(cause) == f"changed on the service since, {writer}"
    both = cause._replace(kind=CauseKind.BOTH)
    assert cause_in_words(both).endswith(f", and changed on the service since, {writer}")


@each_row("kind", CauseKind)
def test_every_cause_has_words_or_none_are_needed(kind: CauseKind) -> None:
    """A new cause must be told as well."""
    silent = {CauseKind.NOT_HELD, CauseKind.UNKNOWN}

    assert (cause_in_words(Cause(kind)) == "") is (kind in silent)


OURS: dict[str, Any] = {"changed_in": "default", **ANA}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            Update(declared(), held(**OURS), new_secret=True),
            ["asked for with --rotate-missing"],
            id="the flag alone",
        ),
        pytest.param(
            Update(declared(WEB, an_application(devMode=True)), held(**OURS), new_secret=True),
            [
                "declared differently since it was last applied",
                "clientSecret: asked for with --rotate-missing",
            ],
            id="the flag beside another difference",
        ),
        pytest.param(
            Adopt(declared(), held(trees=(), **ANA), new_secret=True),
            ["never applied by this tree", "clientSecret: asked for with --rotate-missing"],
            id="the flag and an adoption",
        ),
        pytest.param(
            Update(declared(), held(has_secret=False, **OURS)),
            ["declared with a client secret, and the service holds none"],
            id="no secret there",
        ),
    ],
)
def test_a_new_secret_is_told_with_its_own_cause(change: Change, words: list[str]) -> None:
    """No event is behind it: nothing was declared differently, and the service changed nothing."""
    plan = a_plan(change)

    assert list(causes_in_words(plan, change)) == words
    if isinstance(change, Update):
        told = cause_of_field(plan, change, "clientSecret")
        assert told is not None
        assert cause_in_words(told) in words[-1]


def event(type_: str, at: str, writer: str, tree: str = "", **said: Any) -> ObjectEvent:
    spec = normal_form(Kind.ACTION, an_action(**said))
    context = {"tree": tree} if tree else {}
    return ObjectEvent(type_, 43, at, writer, context, {"name": "greet", "spec": spec})


ADDED = event("action.added", "one", "ci", "default")
BY_ANA = Cause(CauseKind.SERVICE, "ana", "two", 43)


def causes_of(
    wanted: dict[str, Any], found: dict[str, Any], *events: ObjectEvent, **more: Any
) -> dict[str, Cause]:
    before = held(GREET, an_action(**found), **ANA, **more)
    update = Update(declared(GREET, an_action(**wanted)), before)
    return {name: cause for name, (_, cause) in field_causes(update, events, "default").items()}


@pytest.mark.parametrize(
    ("wanted", "found", "cause"),
    [
        pytest.param("5s", "20s", Cause(CauseKind.DECLARED), id="held as it was applied"),
        pytest.param("20s", "1s", BY_ANA, id="declared as it was applied"),
        pytest.param("5s", "1s", BY_ANA._replace(kind=CauseKind.BOTH), id="neither"),
    ],
)
def test_applied_held_and_declared_tell_the_cause_of_a_field(
    wanted: str, found: str, cause: Cause
) -> None:
    """The comparison that drift makes, for every field by itself."""
    events = [ADDED, event("action.changed", "two", "ana", timeout=found)]

    assert causes_of({"timeout": wanted}, {"timeout": found}, *events) == {"timeout": cause}


def test_a_field_is_blamed_on_the_last_event_that_altered_it() -> None:
    """The last writer of the object may have altered another field."""
    events = [
        ADDED,
        event("action.changed", "two", "ana", timeout="1s"),
        event("action.changed", "three", "bob", timeout="1s", allowedToFail=True),
    ]

    told = causes_of({}, {"timeout": "1s", "allowedToFail": True}, *events)

    assert told == {"timeout": BY_ANA, "allowedToFail": BY_ANA._replace(by="bob", at="three")}


def test_a_mark_that_no_event_of_the_tree_has_was_set_by_another_writer() -> None:
    """An object is made without marks."""
    ana = Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43)

    assert causes_of({}, {}, ADDED, critical=True) == {"metadata.critical": ana}


def test_without_an_event_of_the_tree_the_last_writer_stands_for_every_field() -> None:
    """Better the last writer than none."""
    told = causes_of({}, {"timeout": "1s"}, event("action.added", "one", "bob"))

    assert told == {"timeout": Cause(CauseKind.SERVICE, "ana", "2026-01-01T00:00:00Z", 43)}


def told_of(
    causes: dict[str, Cause], *changes: Change, dated: bool = True, **more: Any
) -> list[list[str]]:
    """Return in words why changes are in a plan that knows the causes of the fields of greet."""
    plan = a_plan(*changes, causes={GREET: causes} if causes else {}, **more)
    return [list(causes_in_words(plan, change, dated=dated)) for change in changes]


DECLARED = Cause(CauseKind.DECLARED)
IN_WORDS = "changed on the service since, by ana at two (sequence 43)"
LAST = "changed on the service since, by ana at 2026-01-01T00:00:00Z (sequence 43)"


@pytest.mark.parametrize(
    ("causes", "words"),
    [
        pytest.param({}, [LAST], id="the last writer stands for every field"),
        pytest.param({"timeout": BY_ANA}, [IN_WORDS], id="one field"),
        pytest.param({"timeout": BY_ANA, "script": BY_ANA}, [IN_WORDS], id="one cause for all"),
        pytest.param(
            {"timeout": BY_ANA, "name": DECLARED, "script": BY_ANA},
            [f"timeout, script: {IN_WORDS}", f"name: {cause_in_words(DECLARED)}"],
            id="two causes",
        ),
    ],
)
def test_fields_are_named_only_where_their_causes_differ(
    causes: dict[str, Cause], words: list[str]
) -> None:
    """The fields stand below it in every report. A comparison of manifests has no causes."""
    update = Update(declared(GREET), held(GREET, **ANA))

    assert told_of(causes, update) == [words]
    assert told_of(causes, update, compared_with="staging") == [[]]


@each_row(
    ("cause", "words"),
    [
        (BY_ANA, "changed on the service since, by ana"),
        (BY_ANA._replace(tree="other"), "changed on the service since, by ana for tree other"),
        (BY_ANA._replace(kind=CauseKind.EVENT, why="reason why"), "by ana, reason why"),
    ],
)
def test_causes_without_dates_are_one_where_nothing_else_differs(cause: Cause, words: str) -> None:
    """A comment that is compared with the one before must not differ by a time alone."""
    causes = {"timeout": cause, "script": cause._replace(at="three", sequence=44)}

    assert told_of(causes, Update(declared(GREET), held(GREET)), dated=False) == [[words]]


def test_a_plan_without_histories_says_of_which_fields_it_does_not_know_the_cause() -> None:
    """A new owner and a new secret have no event, so that no history is needed for them."""
    found = held(WEB, owner="old", has_secret=False, **ANA)
    update = Update(declared(WEB, an_application(devMode=True)), found, new_owner="default")
    ours = Update(declared(GREET, an_action(timeout="5s")), held(GREET, **OURS))
    plan = a_plan(update, ours)
    known = {
        "owner": Cause(CauseKind.TAKE_OVER, tree="old"),
        "devMode": NOT_READ,
        "clientSecret": Cause(CauseKind.LACKING),
    }

    assert causes_not_read(plan) == {WEB: known}
    plan = replace(plan, causes=causes_not_read(plan))
    assert [cause_in_plan(plan, change) for change in plan.changes] == [NOT_READ, DECLARED]
    assert list(causes_in_words(plan, update)) == [
        "owner: taken over from tree old",
        "devMode: cause not read: a snapshot has no history",
        "clientSecret: declared with a client secret, and the service holds none",
    ]


def test_the_cause_of_a_field_is_told_from_its_event_or_stands_for_the_whole_update() -> None:
    """A new owner and a new secret have no event."""
    both = held(GREET, trees=("default", "other"), **{**ANA, "changed_in": "other"})
    update = Update(declared(GREET), both)
    plan = a_plan(update, causes={GREET: {"timeout": BY_ANA}}, scope=Scope("other"))
    taken = Update(declared(GREET), held(GREET, owner="old", **ANA), new_owner="default")

    assert cause_of_field(plan, update, "timeout") == BY_ANA
    assert cause_of_field(plan, update, "script") == DECLARED
    assert (cause_of(update, "other"), cause_of(update, "default").by) == (DECLARED, "ana")
    assert cause_of_field(plan, Create(declared(GREET)), "timeout") is None
    take_over = Cause(CauseKind.TAKE_OVER, tree="old")
    assert cause_of_field(plan, taken, OWNER) == take_over
    assert field_causes(taken, [ADDED], "default")[OWNER][1] == take_over


def test_a_delete_that_another_manifest_declares_says_so() -> None:
    """It is blocked, and the reason stands with it."""
    delete, other = Delete(held(GREET)), Delete(held(WEB))
    block = error(PARTIAL_TREE, "s", "r", SourceLocation("a.yaml", 1, 1), GREET)
    plan = a_plan(delete, other, blocks=(block,))

    assert cause_in_plan(plan, delete) == Cause(CauseKind.ELSEWHERE)
    assert cause_in_plan(plan, other) == cause_of(other, "default")


def test_of_a_field_changed_on_both_sides_the_tree_that_wrote_is_told() -> None:
    """It is whom to ask."""
    events = [ADDED, event("action.changed", "two", "ana", "other", timeout="1s")]
    told = causes_of({"timeout": "5s"}, {"timeout": "1s"}, *events)

    assert told == {"timeout": BY_ANA._replace(kind=CauseKind.BOTH, tree="other")}


class Histories(FakeService):
    """A service that notes which histories are read, and fails from some number on."""

    def __init__(self, failing_from: int = 1000) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._failing_from = failing_from

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        for each in object_ids:
            self.asked.append(each)
            if len(self.asked) > self._failing_from:
                raise ServiceError("the service is away", remedy="Later.")
            yield each, [ADDED, event("action.changed", "two", "ana", timeout="1s")]


def updates(number: int, **more: Any) -> Plan:
    refs = [a_ref(Kind.ACTION, f"a{place:03}") for place in range(number)]
    return a_plan(
        *(Update(declared(ref), held(ref, an_action(timeout="1s"), **more)) for ref in refs)
    )


def test_only_histories_of_what_others_wrote_last_are_read() -> None:
    """A plan of plain new declarations costs no call, and neither does an undo."""
    service = Histories()
    plain = updates(3, **{**ANA, "changed_in": "default"})

    undo = replace(updates(2, **ANA), scope=Scope(undo="run-1"))

    assert explained(plain, service, SEEN) is plain
    assert explained(undo, service, SEEN) is undo
    assert service.asked == []
    assert len(explained(updates(2, **ANA), service, SEEN).causes) == len(service.asked) == 2


def test_no_more_histories_are_read_than_a_plan_has_time_for() -> None:
    """The rest is told by the last writer, and the plan says so."""
    service = Histories()

    plan = explained(updates(MOST_HISTORIES + 2, **ANA), service, SEEN)

    assert len(service.asked) == len(plan.causes) == MOST_HISTORIES
    (told,) = plan.warnings
    assert told.code == "PLAN-CAUSES-NOT-READ"
    assert told.summary == "the history of 2 object(s) was not read"
    assert "at most 100 histories" in told.remedy


def test_a_history_that_cannot_be_read_keeps_no_plan_from_being_shown() -> None:
    """What was read counts; the rest is said."""
    plan = explained(updates(3, **ANA), Histories(failing_from=1), SEEN)

    assert len(plan.causes) == 1
    assert "the service is away. For Action acme/a001 and others" in plan.warnings[0].remedy


def test_causes_are_no_part_of_the_digest() -> None:
    """Who wrote last changes nothing about what would be done."""
    plan = updates(1, **ANA)

    assert plan_digest(explained(plan, Histories(), SEEN)) == plan_digest(plan)
