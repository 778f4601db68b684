"""The journal where the disk does not do as it is told, byte by byte and word by word."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.journal import Intent, Journal, left_open
from reconciler.errors import LocalFileError, LockHeldError
from tests.builders import WEB, declared

CREATE = Intent("create", "key-1", WEB, owes_secret=True, spec=declared(WEB).spec)
SECRET = Intent("secret", "key-2", WEB, owes_secret=True, id="7")
WRITE = "Make it writable for this user, with room on the disk. Nothing more is sent."
DAMAGED = (
    "It tells what an interrupted apply left open. Restore it from a backup; or move it away and "
    "run `apply`, which then reports applications whose secret is not in the sink."
)
FULL = os.strerror(errno.ENOSPC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a journal is kept; its folder is not there yet."""
    return tmp_path / "state" / "apply.jsonl"


def as_line(intent: Intent) -> bytes:
    fields = {name: getattr(intent, name) for name in Intent.__slots__ if name != "active"}
    return json.dumps({"begin": fields}, separators=(",", ":")).encode() + b"\n"


def failing(code: int = errno.ENOSPC) -> Callable[..., Any]:
    def fail(*arguments: object) -> Any:
        raise OSError(code, os.strerror(code)) if code else OSError("odd")

    return fail


def words_of(failure: pytest.ExceptionInfo[LocalFileError]) -> tuple[str, str]:
    return failure.value.problem, failure.value.remedy


def test_the_file_says_its_format_once_and_then_what_is_open(path: Path) -> None:
    """A later version can tell what it reads, and a person can, too."""
    head = b'{"journal": 1}\n'
    with Journal(path) as journal:
        journal.begin([CREATE])
        assert path.read_bytes() == head + as_line(CREATE)
        journal.begin([SECRET])
        journal.end(["key-1"])

        assert path.read_bytes() == head + as_line(CREATE) + as_line(SECRET) + b'{"end":"key-1"}\n'


def test_a_journal_is_new_where_there_is_none_though_its_folder_is_there(path: Path) -> None:
    """The folder of the store is there long before."""
    path.parent.mkdir()

    for is_new in (True, False):
        with Journal(path) as journal:
            assert journal.is_new is is_new


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
        f"cannot read the journal {path.parent}: {os.strerror(errno.EISDIR)}",
        "It tells what an interrupted apply left open. Let this user read it.",
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
    assert words_of(refused) == (f"cannot write the journal {path}: {FULL}", WRITE)


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

    assert words_of(refused) == (f"cannot write the journal {path}: {FULL}", WRITE)
    assert left_open(path) == ()


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
    assert words_of(piped) == (f"cannot write the journal {pipe}: it is not a file", WRITE)
    assert words_of(beneath) == (
        f"cannot write the journal {path / 'apply.jsonl'}: {os.strerror(errno.ENOTDIR)}",
        WRITE,
    )
