"""The journal: what it was told is there after any crash, and nothing in it can crash a run."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.apply import journal as tested
from reconciler.apply.journal import (
    Intent,
    Journal,
    intents_in,
    left_open,
    take_over,
)
from reconciler.errors import LocalFileError, LockHeldError
from tests.builders import WEB, a_ref, declared
from tests.effort import cases
from tests.on_disk import files_of_at_most, watch_the_disk

CREATE = Intent("inactive", "key-1", WEB, spec=declared(WEB).spec)
ODD = Intent("inactive", "key-2", a_ref(name='日本 "q"\n\x85\u2028'), spec={"a": [1, None]})
SECRET = Intent("secret", "key-3", WEB, id="7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a journal is kept; its folder is not there yet."""
    return tmp_path / "state" / "apply.jsonl"


def reopened(path: Path) -> list[Intent]:
    with Journal(path) as journal:
        return list(journal.open_intents)


def test_what_was_begun_and_not_ended_is_open_for_the_next_run(path: Path) -> None:
    """Every field comes back as it was, whatever characters names have."""
    with Journal(path) as journal:
        assert journal.open_intents == ()
        journal.begin([CREATE, ODD, SECRET])
        journal.end(["key-1", "of nobody", "key-1"])
        assert list(journal.open_intents) == [ODD, SECRET]

    with Journal(path) as journal:
        assert list(journal.open_intents) == [ODD, SECRET]


def test_intents_are_found_by_organizations_ignoring_case() -> None:
    """Recovery, the sink and a take-over all look for those of the run's scope."""
    other = Intent("secret", "key-4", a_ref(organization="globex"), id="8")

    assert intents_in([CREATE, other, SECRET], ["ACME"]) == [CREATE, SECRET]


def test_a_journal_without_open_intents_is_emptied(path: Path) -> None:
    """It never grows from run to run."""
    with Journal(path) as journal:
        journal.begin([CREATE, SECRET])
        journal.end(["key-1"])
        assert path.stat().st_size > 0
        journal.end(["key-3"])

        assert path.read_bytes() == b""
        journal.begin([SECRET])

    assert reopened(path) == [SECRET]


def test_the_journal_is_for_its_owner_alone(path: Path) -> None:
    """It holds no secret, but it holds what the manifests of a private repository say."""
    with Journal(path) as journal:
        journal.begin([CREATE])

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_recorded_is_on_the_disk_before_anything_is_sent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut right after a request must not take back that it was about to be sent."""
    seen = watch_the_disk(monkeypatch)
    with Journal(path) as journal:
        assert seen[-1] == ("synced", path.parent.name)
        seen.clear()

        journal.begin([CREATE, SECRET])
        journal.end(["key-1"])

    assert seen == [("synced", path.name)] * 2


def test_nothing_to_record_writes_nothing(path: Path) -> None:
    """An apply with nothing to create leaves the disk in peace."""
    with Journal(path) as journal:
        journal.begin([])
        journal.end([])
        journal.end(["of nobody"])

    assert path.read_bytes() == b""


def lines_of(path: Path) -> list[bytes]:
    with Journal(path) as journal:
        journal.begin([CREATE])
        journal.begin([SECRET])
        journal.begin([ODD])
        journal.end(["key-3"])
    return path.read_bytes().splitlines(keepends=True)


def test_wherever_the_last_write_was_torn_the_lines_before_it_count(path: Path) -> None:
    """A power cut leaves half a line, which was then not promised to anybody."""
    lines = lines_of(path)
    whole, last = b"".join(lines[:-1]), lines[-1]
    for cut in range(len(last)):
        path.write_bytes(whole + last[:cut])

        assert reopened(path) == [CREATE, SECRET, ODD]
        with Journal(path) as journal:
            journal.end(["key-1"])
        assert reopened(path) == [SECRET, ODD], f"cut at {cut}: what came after counts too"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_damaged_line_in_the_middle_is_named_and_kept(path: Path, number: int) -> None:
    """It may be the only trace of a secret; nobody but its owner may decide to go on without."""
    lines = lines_of(path)
    lines[number - 1] = b"{" + lines[number - 1]
    path.write_bytes(b"".join(lines))

    with pytest.raises(LocalFileError, match=f"line {number} of the journal {path} cannot be read"):
        Journal(path)

    assert path.read_bytes() == b"".join(lines)


GOOD = json.loads(json.dumps({
    "purpose": "inactive", "key": "k", "ref": list(WEB), "spec": {}, "id": "",
}))  # fmt: skip


def begin(**changes: Any) -> str:
    """Return the line of an intent with some fields changed; None leaves one out."""
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return json.dumps({"begin": fields})


def test_the_line_that_the_hostile_ones_are_made_from_is_good(path: Path) -> None:
    """Otherwise each of them would be refused for the wrong reason."""
    path.parent.mkdir()
    path.write_text(begin() + "\n", encoding="ascii")

    assert [intent.key for intent in reopened(path)] == ["k"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 200_000, id="deep nesting"),
        pytest.param('{"begin":' * 100_000, id="deep nesting of objects"),
        pytest.param("", id="an empty line"),
        pytest.param("7", id="a number"),
        pytest.param("9" * 5000, id="a number of too many digits"),
        pytest.param('"begin"', id="a text"),
        pytest.param('"the end"', id="a text with the word"),
        pytest.param('["begin"]', id="a list with the word"),
        pytest.param("null", id="nothing"),
        pytest.param("NaN", id="no number"),
        pytest.param("{}", id="no key"),
        pytest.param('{"journal": 2}', id="a newer format"),
        pytest.param('{"end": []}', id="an end of a list"),
        pytest.param('{"begin": []}', id="a list for an intent"),
        pytest.param('{"begin": "ref"}', id="a text for an intent"),
        pytest.param(begin(ref=None), id="no ref"),
        pytest.param(begin(key=None), id="no key of the intent"),
        pytest.param(begin(more=1), id="an unknown field"),
        pytest.param(begin(ref=[*WEB, "more"]), id="a ref of five"),
        pytest.param(begin(ref=["Nothing", "a", "b", "c"]), id="an unknown kind"),
        pytest.param(begin(ref=["Action", 1, "", "c"]), id="a number for a name"),
        pytest.param(begin(ref=[[], "a", "b", "c"]), id="a list for a kind"),
        pytest.param(begin(purpose="destroy"), id="an unknown purpose"),
        pytest.param(begin(purpose=[]), id="a list for a purpose"),
        pytest.param(begin(key=1), id="a number for a key"),
        pytest.param(begin(key=[]), id="a list for a key"),
        pytest.param(begin(id=7), id="a number for an id"),
        pytest.param(begin(spec=[]), id="a list for a spec"),
        pytest.param(begin(spec=None), id="an inactive object without a spec"),
        pytest.param(begin(id="7"), id="an inactive object with an id"),
        pytest.param(begin(purpose="rename", client_id="c"), id="a rename without an id"),
        pytest.param(begin(purpose="rename", id="7"), id="a rename without a client id"),
        pytest.param(begin(purpose="delete", client_id="c"), id="a delete without an id"),
        pytest.param(begin(purpose="delete", id="7"), id="a delete without a client id"),
        *(
            pytest.param(
                begin(purpose=purpose, ref=["Action", "a", "", "c"], id="7", client_id="c"),
                id=f"a {purpose} of an action",
            )
            for purpose in ("secret", "rename", "delete")
        ),
        pytest.param(begin(ref=["Action", "a", "", "\ud800"]), id="half a text"),
        pytest.param(begin(spec={"script": "\ud800"}), id="half a text in a spec"),
    ],
)
def test_a_journal_that_we_did_not_write_is_refused_by_line(path: Path, line: str) -> None:
    """No content, however made, ends a run with anything but a sentence."""
    path.parent.mkdir()
    path.write_text(f'{{"journal": 1}}\n{line}\n{begin()}\n', encoding="utf-8")

    with pytest.raises(LocalFileError, match="line 2 of the journal"):
        Journal(path)
    with pytest.raises(LocalFileError, match="line 2 of the journal"):
        Journal(path)  # and the lock was given back


@settings(max_examples=cases(25), deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":,0begind\n\\u', max_size=80).map(
    str.encode))  # fmt: skip
@example(content=b'{"journal": 1}\r{"begin": 1}\n')
@example(content=b"\xff\xfe{\x00}\x00\n")
@example(content=b'{"end": "a", "end": "b"}\n')
@example(content=b'{"begin": 1, "end": "a"}\n')
def test_no_content_ends_a_run_with_anything_but_a_sentence(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Files are damaged in ways that nobody thought of."""
    path = tmp_path_factory.getbasetemp() / "hostile.jsonl"
    path.write_bytes(content)
    problem = ""
    try:
        found = reopened(path)
    except LocalFileError as refused:
        problem, found = refused.problem, []

    assert found == []
    assert not problem or problem.endswith(f"of the journal {path} cannot be read")


@pytest.mark.parametrize("key", ["ref", "purpose", "journal"])
def test_of_two_equal_keys_neither_crashes_a_run(path: Path, key: str) -> None:
    """Readers differ about which of the two counts."""
    path.parent.mkdir()
    path.write_text(begin()[:-2] + f', "{key}": 1}}}}\n', encoding="ascii")

    with pytest.raises(LocalFileError, match="line 1 of the journal"):
        Journal(path)


# Files.


def hold(path: Path, told: Connection) -> None:
    """Hold a journal until told otherwise."""
    with Journal(path):
        told.send("held")
        told.recv()


def test_a_journal_in_use_by_another_process_is_not_touched(path: Path) -> None:
    """Two runs that write one journal would each end what the other began."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    other = context.Process(target=hold, args=(path, there))
    other.start()
    assert here.recv() == "held"
    try:
        with pytest.raises(LockHeldError, match=f"another apply of this tree is using {path}"):
            Journal(path)
    finally:
        here.send("enough")
        other.join()

    assert reopened(path) == []


def test_a_journal_behind_a_link_is_refused(tmp_path: Path) -> None:
    """A link could lead a run to empty somebody else's file."""
    target = tmp_path / "precious"
    target.write_text("{}\n", encoding="ascii")
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "link")

    assert target.read_text(encoding="ascii") == "{}\n"


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [a_folder, a_pipe], ids=["a folder", "a pipe"])
def test_what_is_no_file_is_no_journal(tmp_path: Path, make: Any) -> None:
    """A run must not wait for ever for a pipe."""
    make(tmp_path / "odd")

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "odd")


def test_a_journal_beneath_a_file_is_a_clear_error(tmp_path: Path) -> None:
    """The folder cannot be made."""
    (tmp_path / "file").write_text("", encoding="ascii")

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "file" / "apply.jsonl")


def test_a_full_disk_leaves_the_journal_as_it_was(path: Path) -> None:
    """Half a line, gone on with once there is room, would make the journal unreadable."""
    large = replace(CREATE, key="large", spec={"script": "x" * 5000})
    with Journal(path) as journal:
        journal.begin([CREATE])
        before = path.read_bytes()

        with files_of_at_most(len(before) + 1000), pytest.raises(LocalFileError) as refused:
            journal.begin([large])

        assert refused.value.problem == f"cannot write the journal {path}: File too large"
        assert path.read_bytes() == before
        assert list(journal.open_intents) == [CREATE]
        journal.begin([SECRET])
    assert reopened(path) == [CREATE, SECRET]


WRITE = "Make it writable for this user, with room on the disk. Nothing more is sent."
DAMAGED = (
    "It records what an interrupted apply left open. Restore it from a backup; or move it away and "
    "run `apply`, which then reports applications whose secret is not in the sink."
)
ROOM = "Free some space, then run the command again."


def as_line(intent: Intent) -> bytes:
    fields = {name: getattr(intent, name) for name in Intent.__slots__}
    return json.dumps({"begin": fields}, separators=(",", ":")).encode() + b"\n"


def failing(code: int = errno.ENOSPC) -> Callable[..., Any]:
    def fail(*arguments: object) -> Any:
        raise OSError(code, os.strerror(code)) if code else OSError("odd")

    return fail


def words_of(failure: pytest.ExceptionInfo[LocalFileError]) -> tuple[str, str]:
    return failure.value.problem, failure.value.remedy


def test_the_file_says_its_format_once_and_then_what_is_open(path: Path) -> None:
    """A later version can tell what it reads, and a person can, too."""
    head = b'{"journal":1}\n'
    with Journal(path) as journal:
        journal.begin([CREATE])
        assert path.read_bytes() == head + as_line(CREATE)
        journal.begin([SECRET])
        journal.end(["key-1"])

        assert path.read_bytes() == head + as_line(CREATE) + as_line(SECRET) + b'{"end":"key-1"}\n'


def test_an_end_without_a_beginning_is_no_damage(path: Path) -> None:
    """What was begun may have been forgotten with all that was at its end."""
    path.parent.mkdir()
    path.write_bytes(b'{"journal": 1}\n{"end":"key-9"}\n' + as_line(SECRET))

    with Journal(path) as journal:
        assert journal.open_intents == (SECRET,)


def test_what_was_left_open_is_told_to_who_only_looks(path: Path) -> None:
    """Also while somebody has the journal; a line that is being written is none yet."""
    with Journal(path) as journal:
        journal.begin([CREATE, SECRET])
        with path.open("ab") as file:
            file.write(b'{"end":"key-1"')

        assert left_open(path) == (CREATE, SECRET)
    with pytest.raises(LocalFileError) as refused:
        left_open(path.parent)
    assert words_of(refused) == (
        f"cannot read the journal {path.parent}: it is not a regular file",
        "It records what an interrupted apply left open. Let this user read it.",
    )
    path.write_bytes(b"{\n")
    with pytest.raises(LocalFileError, match=f"^line 1 of the journal {path} cannot be read$"):
        left_open(path)


def test_a_write_that_fails_half_way_leaves_the_journal_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line, gone on with once there is room, would make the journal unreadable."""
    write = os.write

    def half(descriptor: int, content: bytes) -> int:
        monkeypatch.setattr(os, "write", failing())
        return write(descriptor, content[:20])

    with Journal(path) as journal:
        journal.begin([CREATE])
        before = path.read_bytes()
        monkeypatch.setattr(os, "write", half)

        with pytest.raises(LocalFileError) as refused:
            journal.begin([SECRET])

        assert path.read_bytes() == before
        assert journal.open_intents == (CREATE,)
    assert words_of(refused) == (f"cannot write the journal {path}: the disk is full", ROOM)


def test_where_not_even_half_a_line_can_be_taken_back_the_first_failure_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the one that says what to do."""
    with Journal(path) as journal:
        monkeypatch.setattr(os, "fdatasync", failing(errno.EIO))
        monkeypatch.setattr(os, "ftruncate", failing(errno.EPERM))

        with pytest.raises(LocalFileError, match=f": {os.strerror(errno.EIO)}$"):
            journal.begin([CREATE])


def test_a_journal_that_cannot_be_emptied_is_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in it is at its end all the same, and the next run finds nothing open."""
    with Journal(path) as journal:
        journal.begin([CREATE])
        monkeypatch.setattr(os, "ftruncate", failing())

        with pytest.raises(LocalFileError) as refused:
            journal.end(["key-1"])

    assert words_of(refused) == (f"cannot write the journal {path}: the disk is full", ROOM)
    assert left_open(path) == ()


def test_a_folder_that_cannot_be_synced_is_reported_and_frees_the_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(tested, "sync", failing())
        with pytest.raises(LocalFileError):
            Journal(path)

    with Journal(path) as journal:
        assert journal.open_intents == ()


@pytest.mark.parametrize(("code", "said"), [(errno.EIO, os.strerror(errno.EIO)), (0, "odd")])
def test_a_torn_line_that_cannot_be_cut_off_ends_the_run_and_frees_the_journal(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    """What would be written after it could not be read."""
    path.parent.mkdir()
    path.write_bytes(as_line(CREATE) + b'{"end"')
    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", failing(code))
        with pytest.raises(LocalFileError) as refused:
            Journal(path)

    assert words_of(refused) == (f"cannot write the journal {path}: {said}", WRITE)
    with Journal(path) as journal:
        assert journal.open_intents == (CREATE,)


def test_what_keeps_a_journal_from_being_used_is_told_with_the_way_out(path: Path) -> None:
    """Four reasons, and nobody has to guess which one it is."""
    with Journal(path), pytest.raises(LockHeldError) as used:
        Journal(path)
    path.write_bytes(b"{}\n")
    with pytest.raises(LocalFileError) as damaged:
        Journal(path)
    os.mkfifo(path.with_name("pipe"))
    with pytest.raises(LocalFileError) as piped:
        Journal(path.with_name("pipe"))
    with pytest.raises(LocalFileError) as beneath:
        Journal(path / "apply.jsonl")

    assert (used.value.problem, used.value.remedy) == (
        f"another apply of this tree is using {path}",
        "Wait until it is done, then run the command again.",
    )
    assert words_of(damaged) == (
        f"line 1 of the journal {path} cannot be read",
        DAMAGED,
    )
    pipe = path.with_name("pipe")
    assert words_of(piped) == (f"cannot write the journal {pipe}: it is not a regular file", WRITE)
    assert words_of(beneath) == (
        f"cannot write the journal {path / 'apply.jsonl'}: {os.strerror(errno.ENOTDIR)}",
        WRITE,
    )


SPEC = declared().spec
OURS = Intent("inactive", "ours", a_ref(organization="Acme"), spec=SPEC)
THEIRS = Intent("inactive", "theirs", a_ref(organization="globex"), spec=SPEC)
AGAIN = Intent("secret", "secret", a_ref(organization="acme"), id="7")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Return the journal of a run that was cut short in two organizations."""
    with Journal(tmp_path / "other.jsonl") as journal:
        journal.begin([OURS, THEIRS, AGAIN])
    return tmp_path / "other.jsonl"


def taken_over(own: Path, *others: Path, organizations: Sequence[str] = ("ACME",)) -> list[Intent]:
    with Journal(own) as journal:
        take_over(journal, others, organizations)
        return list(journal.open_intents)


def test_what_is_ours_moves_and_what_is_not_stays(tmp_path: Path, other: Path) -> None:
    """Afterwards each intent is open in one journal, and each is as it was."""
    own = tmp_path / "own.jsonl"

    assert taken_over(own, other) == [OURS, AGAIN]
    assert list(left_open(own)) == [OURS, AGAIN]
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

    assert list(left_open(other)) == [OURS, THEIRS, AGAIN]


class PowerCutError(Exception):
    """The process has ended."""


def test_a_crash_in_between_leaves_it_in_both_and_costs_nothing(
    tmp_path: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken over again it is the same intent, under the same key."""

    def cut(place: str) -> None:
        if place == "C14":
            raise PowerCutError

    own = tmp_path / "own.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("reconciler.apply.journal.crashpoint", cut)
        with pytest.raises(PowerCutError):
            taken_over(own, other)
    assert list(left_open(own)) == [OURS, AGAIN]
    assert list(left_open(other)) == [OURS, THEIRS, AGAIN]

    assert taken_over(own, other) == [OURS, AGAIN]
    assert list(left_open(other)) == [THEIRS]


def test_a_journal_without_anything_of_ours_hides_no_other(tmp_path: Path, other: Path) -> None:
    """Each journal of the tree is looked at."""
    of_others = tmp_path / "of-others.jsonl"
    with Journal(of_others) as journal:
        journal.begin([THEIRS])

    assert taken_over(tmp_path / "own.jsonl", of_others, other) == [OURS, AGAIN]


def test_half_a_line_of_a_run_that_is_writing_is_no_damage(tmp_path: Path, other: Path) -> None:
    """Another shard may be in the middle of it."""
    other.write_bytes(other.read_bytes() + b'{"begin": {"purp')

    assert list(left_open(other)) == [OURS, THEIRS, AGAIN]
    assert left_open(tmp_path / "none.jsonl") == ()


def test_a_damaged_journal_is_named(tmp_path: Path, other: Path) -> None:
    """What it says of our organizations nobody knows."""
    other.write_bytes(b"{" + other.read_bytes())

    with pytest.raises(LocalFileError, match=f"line 1 of the journal {other} cannot be read"):
        taken_over(tmp_path / "own.jsonl", other)


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder in its place, for one."""
    (tmp_path / "other.jsonl").mkdir()

    with pytest.raises(
        LocalFileError, match=r"cannot read .*other\.jsonl: it is not a regular file"
    ):
        left_open(tmp_path / "other.jsonl")
