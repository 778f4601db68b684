"""What one shard's run left open is another's to end: taken over once, and never lost between."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.apply.journal import Intent, Journal, left_open
from reconciler.apply.recovery import take_over
from reconciler.errors import LocalFileError, LockHeldError
from tests.builders import a_ref, declared

SPEC = declared().spec
OURS = Intent("create", "ours", a_ref(organization="Acme"), owes_secret=True, spec=SPEC)
THEIRS = Intent("create", "theirs", a_ref(organization="globex"), owes_secret=True, spec=SPEC)
SECRET = Intent("secret", "secret", a_ref(organization="acme"), owes_secret=True, id="7")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return the journal of a run that was cut short in two organizations."""
    with Journal(tmp_path / "other.jsonl") as journal:
        journal.begin([OURS, THEIRS, SECRET])
    return tmp_path / "other.jsonl"


def taken_over(own: Path, *others: Path, organizations: Sequence[str] = ("ACME",)) -> list[Intent]:
    with Journal(own) as journal:
        take_over(journal, others, organizations)
        return list(journal.open_intents)


def test_what_is_ours_moves_and_what_is_not_stays(tmp_path: Path, other: Path) -> None:
    """Afterwards each intent is open in one journal, and each is as it was."""
    own = tmp_path / "own.jsonl"

    assert taken_over(own, other) == [OURS, SECRET]
    assert list(left_open(own)) == [OURS, SECRET]
    assert list(left_open(other)) == [THEIRS]


def test_nothing_of_ours_leaves_a_journal_alone_even_in_use(tmp_path: Path, other: Path) -> None:
    """Shards that run at the same time do not see each other."""
    before = other.read_bytes()
    with Journal(other):
        assert taken_over(tmp_path / "own.jsonl", other, organizations=["initech"]) == []

    assert other.read_bytes() == before


def test_a_journal_in_use_that_has_something_of_ours_is_waited_for(
    tmp_path: Path, other: Path
) -> None:
    """Who uses it may be about to end just that."""
    with Journal(other), pytest.raises(LockHeldError, match=f"is using {other}"):
        taken_over(tmp_path / "own.jsonl", other)

    assert list(left_open(other)) == [OURS, THEIRS, SECRET]


class FullDisk(Journal):
    """A journal whose ends cannot be written: where a crash would fall."""

    def end(self, keys: Sequence[str]) -> None:
        raise LocalFileError("no room", remedy="")


def test_a_crash_in_between_leaves_it_in_both_and_costs_nothing(
    tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken over again it is the same intent, under the same key."""
    own = tmp_path / "own.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.apply.recovery.Journal", FullDisk)
        with pytest.raises(LocalFileError):
            taken_over(own, other)
    assert list(left_open(own)) == [OURS, SECRET]
    assert list(left_open(other)) == [OURS, THEIRS, SECRET]

    assert taken_over(own, other) == [OURS, SECRET]
    assert list(left_open(other)) == [THEIRS]


def test_half_a_line_of_a_run_that_is_writing_is_no_damage(tmp_path: Path, other: Path) -> None:
    """Another shard may be in the middle of it."""
    other.write_bytes(other.read_bytes() + b'{"begin": {"purp')

    assert list(left_open(other)) == [OURS, THEIRS, SECRET]
    assert left_open(tmp_path / "none.jsonl") == ()


def test_a_damaged_journal_is_named(tmp_path: Path, other: Path) -> None:
    """What it says of our organizations nobody knows."""
    other.write_bytes(b"{" + other.read_bytes())

    with pytest.raises(LocalFileError, match=f"line 1 of the journal {other} cannot be read"):
        taken_over(tmp_path / "own.jsonl", other)


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder in its place, for one."""
    (tmp_path / "other.jsonl").mkdir()

    with pytest.raises(LocalFileError, match=r"cannot read .*other\.jsonl: Is a directory"):
        left_open(tmp_path / "other.jsonl")
