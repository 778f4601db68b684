"""The sink follows renames and deletes: what was carried out, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.apply.journal import Intent, Journal
from reconciler.apply.sink_sync import SinkSync
from reconciler.errors import LocalFileError, PreconditionFailedError, ReconcilerError, ServiceError
from reconciler.plan.model import Change, Delete, Update
from reconciler.service_client.port import Written
from reconciler.state import ObservedState
from tests.builders import HOUSE, PARTNER, WEB, FakeSink, a_ref, declared, held, lost, observed

PORTAL = a_ref(name="portal")
FOUND = held(WEB, object_id="7")
CLIENT = FOUND.client_id
RENAME, DELETE = Update(declared(PORTAL), FOUND), Delete(FOUND)
DONE = Written("7", 9, CLIENT)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return an empty journal."""
    with Journal(tmp_path / "apply.jsonl") as opened:
        yield opened


@pytest.fixture
def sink() -> FakeSink:
    """Return a sink that has the secret of the application."""
    made = FakeSink()
    made.kept = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
    return made


THERE = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
MOVED = {(WEB.key, "other"): "theirs", (PORTAL.key, CLIENT): "geheim"}
GONE = {(WEB.key, "other"): "theirs"}
REFUSED = PreconditionFailedError("moved on", remedy="r")


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
    sink: FakeSink,
    change: Change,
    result: Written | ReconcilerError,
    kept: object,
    ends: object,
) -> None:
    """What may have happened stays open."""
    sync = SinkSync(journal, sink)
    journal.begin(sync.intents([change]))

    sync.follow([change], [result])
    journal.end(sync.take_ended())

    assert sink.kept == kept
    assert (journal.open_intents == ()) is ends


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Update(declared(WEB), FOUND), id="an update that keeps the name"),
        pytest.param(Delete(held(PARTNER)), id="a delete of another kind"),
    ],
)
def test_other_changes_need_nothing(journal: Journal, sink: FakeSink, change: Change) -> None:
    """The journal waits for the disk."""
    assert list(SinkSync(journal, sink).intents([change])) == []
    assert list(SinkSync(journal, None).intents([RENAME, DELETE])) == []


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
    journal: Journal, sink: FakeSink, purpose: str, state: ObservedState, kept: object, ends: object
) -> None:
    """A secret is removed only where its application surely is no more."""
    change = RENAME if purpose == "rename" else DELETE
    journal.begin(SinkSync(journal, sink).intents([change]))

    SinkSync(journal, sink).recover(state, ["ACME"])

    assert sink.kept == kept
    assert (journal.open_intents == ()) is ends


def test_another_organization_and_a_run_without_a_sink_leave_it_open(
    journal: Journal, sink: FakeSink
) -> None:
    """The run that can end it comes later."""
    journal.begin(SinkSync(journal, sink).intents([DELETE]))

    assert SinkSync(journal, sink).recover(WITHOUT, ["other"]) == []
    assert SinkSync(journal, None).recover(WITHOUT, ["acme"]) == []

    assert sink.kept == THERE
    assert len(journal.open_intents) == 1


def test_a_sink_that_cannot_follow_is_told_and_tried_again(
    journal: Journal, sink: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change itself is done."""
    failure = LocalFileError("the disk is full", remedy="Make room.")
    sync = SinkSync(journal, sink)
    journal.begin(sync.intents([RENAME]))
    with monkeypatch.context() as patched:
        patched.setattr(sink, "moved", lambda moves: [failure for _ in moves])

        (note,) = sync.follow([RENAME], [DONE])

    assert note.code == "SECRET-NOT-FOLLOWED"
    assert "the disk is full" in note.summary
    assert sync.take_ended() == []
    SinkSync(journal, sink).recover(ELSEWHERE, ["acme"])
    assert (sink.kept, journal.open_intents) == (MOVED, ())


def test_what_is_open_is_read_from_the_disk_again(tmp_path: Path, sink: FakeSink) -> None:
    """The next run is another process."""
    path = tmp_path / "other.jsonl"
    with Journal(path) as first:
        first.begin(SinkSync(first, sink).intents([RENAME]))
    with Journal(path) as second:
        (intent,) = second.open_intents

    assert intent == Intent(
        "rename", intent.key, WEB, owes_secret=False, id="7", client_id=CLIENT
    )  # fmt: skip
