"""What an interrupted run began is brought to its end: its secrets, and what the sink follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.apply.changes import ChangeRun, intents_of
from reconciler.apply.journal import Intent, Journal
from reconciler.apply.recovery import follow, recover
from reconciler.apply.sink import SecretSink
from reconciler.diagnostics import Diagnostic, Severity, warning
from reconciler.errors import LocalFileError, PreconditionFailedError, ReconcilerError, ServiceError
from reconciler.plan.model import Change, Create, Delete, Update
from reconciler.service_client.port import SecretOrder, Written
from reconciler.state import ObservedState
from tests.builders import (
    ACME,
    HOUSE,
    PARTNER,
    SHOP,
    WEB,
    FakeSink,
    a_public_application,
    a_ref,
    declared,
    held,
    id_of,
    lost,
    observed,
)

MADE = Intent("secret", "made", WEB)  # by a create
RENEWED = Intent("secret", "renewed", WEB, id="7")
INACTIVE = Intent("inactive", "inactive", WEB, spec=declared(WEB).spec)
WITH_SECRET = held(WEB, object_id="7")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return the journal that an interrupted run left."""
    with Journal(tmp_path / "apply.jsonl") as opened:
        yield opened


@pytest.fixture
def sink() -> FakeSink:
    """Return an empty sink."""
    return FakeSink()


def note(code: str, summary: str, remedy: str) -> Diagnostic:
    return warning(code, summary, remedy, ref=WEB)


MISSING = replace(
    note(
        "SECRET-NOT-IN-SINK",
        "the sink does not hold the secret of an application",
        f"{WEB} signs in with a secret that is not in this sink. If no deployment has it, make a "
        "new one: reconciler apply --rotate-missing OidcApplication/acme/shop/storefront",
    ),
    severity=Severity.ERROR,
)
OWED = note(
    "HEAL-SECRET-OWED",
    "a secret of an interrupted run was not delivered yet",
    f"The client secret of {WEB} has no destination. Give --secrets-to and run the command again.",
)


@pytest.mark.parametrize("found", [WITH_SECRET, None])
def test_without_open_intents_nothing_is_asked(
    journal: Journal, sink: FakeSink, found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every usual apply."""
    for method in ("held", "follow"):
        monkeypatch.delattr(FakeSink, method)

    assert recover(journal, sink, observed(*HOUSE, *[WITH_SECRET] * bool(found)), ["acme"]) == (
        [],
        [],
    )


@pytest.mark.parametrize(
    ("intent", "is_in_sink", "notes"),
    [
        pytest.param(MADE, False, [MISSING], id="the secret of a create is nowhere"),
        pytest.param(MADE, True, [], id="it was delivered, and only the last line is missing"),
        pytest.param(RENEWED, False, [MISSING], id="a new secret is nowhere"),
        pytest.param(RENEWED, True, [MISSING], id="what is there may be the old one"),
    ],
)
def test_a_secret_that_may_be_lost_is_told_and_left_as_it_is(
    journal: Journal, sink: FakeSink, intent: Intent, is_in_sink: object, notes: list[Diagnostic]
) -> None:
    """A person decides. A run that is killed before it could tell leaves it to the next one."""
    journal.begin([intent])
    before = sink.kept = {(WEB, WITH_SECRET.client_id): "there"} if is_in_sink else {}

    left = [intent] if notes else []
    assert recover(journal, sink, observed(*HOUSE, WITH_SECRET), ["ACME"]) == (notes, left)
    assert (sink.kept, list(journal.open_intents)) == (before, left)


def test_a_secret_that_the_sink_may_hold_is_not_called_missing(
    journal: Journal, sink: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command takes secrets only, and a file may be another user's."""
    monkeypatch.setattr(sink, "held", lambda applications: [None for _ in applications])
    journal.begin([MADE])

    (found,), left = recover(journal, sink, observed(*HOUSE, WITH_SECRET), ["acme"])

    assert (found.is_error, found.ref, left) == (True, WEB, [MADE])
    assert found.summary.startswith("it is not known whether the sink holds")


def test_each_secret_that_may_be_lost_is_reported(journal: Journal, sink: FakeSink) -> None:
    journal.begin([MADE, RENEWED])

    found = recover(journal, sink, observed(*HOUSE, WITH_SECRET), ["acme"])
    assert found == ([MISSING, MISSING], [MADE, RENEWED])


def test_what_is_still_to_be_deactivated_is_open_until_this_run_has_done_it(
    journal: Journal, sink: FakeSink
) -> None:
    """The rest is in the plan of this run, which may be killed as well."""
    journal.begin([INACTIVE])

    assert recover(journal, sink, observed(*HOUSE, WITH_SECRET), ["acme"]) == ([], [INACTIVE])
    assert journal.open_intents == (INACTIVE,)


@pytest.mark.parametrize(
    "intent", [MADE, RENEWED, replace(RENEWED, id="gone"), INACTIVE], ids=lambda one: one.key
)
@pytest.mark.parametrize("has_sink", [True, False])
@pytest.mark.parametrize("found", [True, False])
def test_what_needs_nothing_more_is_ended(
    journal: Journal, sink: FakeSink, intent: Intent, has_sink: object, found: object
) -> None:
    """It never happened, or the application has no secret now: the next plan has what is left."""
    public = replace(held(WEB, a_public_application(), object_id="7"), active=False)
    journal.begin([intent])

    state = observed(*HOUSE, *[public] * bool(found))
    assert recover(journal, sink if has_sink else None, state, ["acme"]) == ([], [])
    assert journal.open_intents == ()


def test_a_secret_of_one_of_two_applications_of_a_name_is_told(
    journal: Journal, sink: FakeSink
) -> None:
    """The id in its intent says which one, wherever the service lists it."""
    first, second = held(WEB, a_public_application(), object_id="6"), WITH_SECRET
    state = replace(observed(*HOUSE, first), name_clashes=(second,))
    journal.begin([RENEWED])

    assert recover(journal, sink, state, ["acme"]) == ([MISSING], [RENEWED])


def test_a_new_secret_is_asked_for_by_everything_that_names_its_application() -> None:
    """A service by its ids, another by the organization that goes with the call."""
    found = held(WEB, object_id="7", client_id="c")

    order = SecretOrder(found)

    assert (order.ref, order.organization_id) == (WEB, id_of(ACME))
    assert (order.held.id, order.held.project_id, order.held.client_id) == ("7", id_of(SHOP), "c")


def test_what_belongs_to_an_organization_that_was_not_looked_at_stays_open(
    journal: Journal, sink: FakeSink
) -> None:
    """A run of a part of the manifests must not forget another part, nor stop at it."""
    elsewhere = [
        replace(intent, ref=a_ref(organization="initech")) for intent in (MADE, RENEWED, INACTIVE)
    ]
    here = replace(MADE, key="here")
    journal.begin([*elsewhere, here])

    assert recover(journal, sink, observed(*HOUSE, WITH_SECRET), ["acme"]) == ([MISSING], [here])
    assert list(journal.open_intents) == [*elsewhere, here]


@pytest.mark.parametrize("intent", [MADE, RENEWED])
def test_without_a_sink_a_secret_waits_and_that_is_told(journal: Journal, intent: Intent) -> None:
    """Nothing is forgotten: the next run with a sink asks it."""
    journal.begin([intent])

    assert recover(journal, None, observed(*HOUSE, WITH_SECRET), ["acme"]) == ([OWED], [])
    assert journal.open_intents == (intent,)


PORTAL = a_ref(name="portal")
FOUND = held(WEB, object_id="7")
CLIENT = FOUND.client_id
RENAME, DELETE = Update(declared(PORTAL), FOUND), Delete(FOUND)
DONE = Written("7", 9, CLIENT)


@pytest.fixture
def stocked() -> FakeSink:
    """Return a sink that has the secret of the application."""
    made = FakeSink()
    made.kept = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
    return made


THERE = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
MOVED = {(WEB.key, "other"): "theirs", (PORTAL.key, CLIENT): "geheim"}
GONE = {(WEB.key, "other"): "theirs"}
REFUSED = PreconditionFailedError("moved on", remedy="r")


def begun(journal: Journal, sink: SecretSink | None, change: Change) -> ChangeRun:
    """Return a change whose intents are in the journal and that is not sent yet."""
    found = [*intents_of(change, custody=True, has_sink=sink is not None)]
    journal.begin(found)
    return ChangeRun(change, found)


@pytest.mark.parametrize(
    ("change", "result", "kept", "ends"),
    [
        pytest.param(RENAME, DONE, MOVED, True, id="renamed"),
        pytest.param(RENAME, REFUSED, THERE, True, id="not renamed"),
        pytest.param(RENAME, lost(), THERE, False, id="perhaps renamed"),
        pytest.param(DELETE, DONE, GONE, True, id="deleted"),
        pytest.param(DELETE, REFUSED, THERE, True, id="not deleted"),
        pytest.param(DELETE, ServiceError("x", remedy="r"), THERE, False, id="perhaps deleted"),
    ],
)
def test_the_sink_follows_what_was_carried_out(
    journal: Journal,
    stocked: FakeSink,
    change: Change,
    result: Written | ReconcilerError,
    kept: object,
    ends: object,
) -> None:
    """What may have happened stays open."""
    run = begun(journal, stocked, change)
    run.result = result

    assert follow(stocked, [run]) == []
    if run.is_over:
        journal.end([intent.key for intent in run.intents])

    assert stocked.kept == kept
    assert (journal.open_intents == ()) is ends


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Update(declared(WEB), FOUND), id="an update that keeps the name"),
        pytest.param(Delete(held(PARTNER, client_id="c")), id="a delete of another kind"),
        pytest.param(Delete(held(WEB, client_id="")), id="an application without a client id"),
    ],
)
def test_other_changes_need_nothing(journal: Journal, stocked: FakeSink, change: Change) -> None:
    """The journal waits for the disk."""
    assert begun(journal, stocked, change).intents == []
    assert [begun(journal, None, each).intents for each in (RENAME, DELETE)] == [[], []]


NOW = observed(*HOUSE, FOUND)
ELSEWHERE = observed(*HOUSE, replace(FOUND, ref=PORTAL))
WITHOUT = observed(*HOUSE)


@pytest.mark.parametrize(
    ("purpose", "state", "kept", "ends"),
    [
        pytest.param("rename", ELSEWHERE, MOVED, True, id="renamed"),
        pytest.param("rename", NOW, THERE, True, id="never renamed"),
        pytest.param("rename", WITHOUT, THERE, True, id="deleted by other means since"),
        pytest.param("delete", WITHOUT, GONE, True, id="deleted"),
        pytest.param("delete", NOW, THERE, True, id="never deleted"),
        pytest.param("delete", observed(), THERE, False, id="an organization not to be seen"),
        pytest.param(
            "delete", replace(WITHOUT, incomplete=("a page is missing",)), THERE, False,
            id="an incomplete listing",
        ),
    ],
)  # fmt: skip
def test_a_run_that_was_cut_short_is_ended(
    journal: Journal,
    stocked: FakeSink,
    purpose: str,
    state: ObservedState,
    kept: object,
    ends: object,
) -> None:
    """A secret is removed only where its application surely is no more."""
    change = RENAME if purpose == "rename" else DELETE
    begun(journal, stocked, change)

    assert recover(journal, stocked, state, ["ACME"]) == ([], [])

    assert stocked.kept == kept
    assert (journal.open_intents == ()) is ends


@pytest.mark.parametrize(
    "intent",
    [
        pytest.param(Intent("delete", "key", WEB, "9", CLIENT), id="delete by another id"),
        pytest.param(Intent("delete", "key", PORTAL, "9", CLIENT), id="delete by another name"),
        pytest.param(Intent("rename", "key", WEB, "8", CLIENT), id="rename of another one"),
    ],
)
def test_a_wrong_journal_touches_no_secret_of_an_application_that_is_there(
    journal: Journal, stocked: FakeSink, intent: Intent
) -> None:
    """A sink looks for a client id in all its files, whatever the name in the journal."""
    state = observed(*HOUSE, FOUND, held(PORTAL, object_id="8", client_id="third"))
    journal.begin([intent])

    assert recover(journal, stocked, state, ["acme"]) == ([], [])

    assert stocked.kept == THERE
    assert journal.open_intents == ()


@pytest.mark.parametrize(("change", "done"), [(DELETE, WITHOUT), (RENAME, ELSEWHERE)])
def test_another_organization_and_a_run_without_a_sink_leave_it_open(
    journal: Journal, stocked: FakeSink, change: Change, done: ObservedState
) -> None:
    """The run that can end it comes later."""
    begun(journal, stocked, change)

    assert recover(journal, stocked, done, ["other"]) == ([], [])
    for state in (done, NOW):
        assert recover(journal, None, state, ["acme"]) == ([], [])

    assert stocked.kept == THERE
    assert len(journal.open_intents) == 1


def test_a_change_that_is_not_in_the_journal_is_not_followed(
    journal: Journal, stocked: FakeSink
) -> None:
    """The run after a crash would not know of it."""
    assert follow(stocked, [ChangeRun(RENAME, result=DONE)]) == []
    assert stocked.kept == THERE


def test_a_sink_is_left_alone_where_nothing_was_renamed_or_deleted(
    journal: Journal, stocked: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink may be a program, which is not started for nothing."""
    run = begun(journal, stocked, RENAME)
    run.result = REFUSED
    monkeypatch.delattr(FakeSink, "follow")

    assert follow(stocked, [run]) == []


def test_each_of_several_changes_is_followed_and_told(
    journal: Journal, stocked: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes that the sink need not follow stand before and between them, and in the journal."""
    second = held(a_ref(name="second"), object_id="8")
    changes: list[Change] = [Create(declared(a_ref(name="new"))), RENAME, Delete(second)]
    told = [warning("MOVED", "s", "r"), warning("REMOVED", "s", "r")]
    monkeypatch.setattr(
        stocked, "follow", lambda moves: [[told[move.ref is None]] for move in moves]
    )
    runs = [begun(journal, stocked, change) for change in changes]
    for run in runs:
        run.result = DONE

    assert follow(stocked, runs) == told
    assert [len(run.intents) for run in runs] == [0, 1, 1]
    assert recover(journal, stocked, ELSEWHERE, ["acme"]) == (told, [])
    assert journal.open_intents == ()


@pytest.mark.parametrize(
    ("change", "done", "later"),
    [
        pytest.param(RENAME, "renamed", (ELSEWHERE, MOVED), id="renamed"),
        pytest.param(DELETE, "deleted", (WITHOUT, GONE), id="deleted"),
    ],
)
def test_a_sink_that_cannot_follow_is_told_and_tried_again(
    journal: Journal,
    stocked: FakeSink,
    change: Change,
    done: str,
    later: tuple[ObservedState, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change itself is done."""
    failure = LocalFileError("the disk is full", remedy="Make room.")
    run = begun(journal, stocked, change)
    run.result = DONE
    with monkeypatch.context() as patched:
        patched.setattr(stocked, "follow", lambda moves: [failure for _ in moves])

        told = follow(stocked, [run])

    assert told == [
        note(
            "SECRET-NOT-FOLLOWED",
            f"the sink did not follow an application that was {done}: the disk is full",
            f"The file of {WEB} is as it was; the next apply tries again. Make room.",
        )
    ]
    assert (run.is_over, run.intents) == (True, [])
    state, kept = later
    recover(journal, stocked, state, ["acme"])
    assert (stocked.kept, journal.open_intents) == (kept, ())


def test_what_is_open_is_read_from_the_disk_again(tmp_path: Path, stocked: FakeSink) -> None:
    """The next run is another process."""
    path = tmp_path / "other.jsonl"
    with Journal(path) as first:
        begun(first, stocked, RENAME)
    with Journal(path) as second:
        (intent,) = second.open_intents

    assert intent == Intent("rename", intent.key, WEB, "7", CLIENT)
