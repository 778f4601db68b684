"""The journal: what a run has begun and only this machine can bring to its end after a crash.

What the service can tell is not recorded: an object that was made is listed, and a service with
custody lists the secrets that it owes. One JSON object per line. An intent is on the disk before
its request is sent; its end is written once the result, secret included, is safe. It holds no
secret. Where a run was cut short, the last line may be torn; it is then taken as never written.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, Self

from reconciler.errors import LocalFileError, LockHeldError, writing
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import JsonObject
from reconciler.resources.fields import Spec
from reconciler.resources.files import make_folder, open_locked, open_regular, sync, write_whole
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import ResourceRef, fold
from reconciler.resources.strict_json import read_as

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Intent:
    """A step that a killed run leaves open, and that only its journal records.

    Purposes, and the crash that each is for:

    - ``secret``: an application gets a client secret from a service without custody. After the
      request the secret may be in no sink.
    - ``inactive``: an object is made, then deactivated. In between it looks like any active one.
    - ``rename``, ``delete``: the sink follows a change of an application. After the change its
      file still has the old name, or is still there.

    Attributes:
        key: Name of the intent.
        ref: With the names before a rename.
        id: The object's; empty for one that is still to be made.
        client_id: The application's, for a rename or a delete.
        spec: The fields of an inactive object in normal form.
    """

    purpose: Literal["secret", "inactive", "rename", "delete"]
    key: str
    ref: ResourceRef
    id: str = ""
    client_id: str = ""
    spec: Spec | None = None


def new_key() -> str:
    """Return the name of a new intent."""
    return uuid.uuid4().hex


def intents_in(intents: Iterable[Intent], organizations: Collection[str]) -> list[Intent]:
    """Return the intents about these organizations, whose names compare ignoring case."""
    names = {fold(name) for name in organizations}
    return [intent for intent in intents if intent.ref.key.organization in names]


class Journal:
    """The journal of one tree or shard against one service, open for one run at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: dict[str, Intent] = {}
        with _writing(path):
            make_folder(path.parent)
            self._descriptor = _open_locked(path)
            try:
                sync(path.parent)
                self._read()
            except BaseException:
                os.close(self._descriptor)
                raise

    @property
    def open_intents(self) -> Sequence[Intent]:
        """Return what earlier runs began and did not end, oldest first."""
        return tuple(self._open.values())

    def begin(self, intents: Sequence[Intent]) -> None:
        """Record intents; on return they are on the disk."""
        self._append({"begin": asdict(intent)} for intent in intents)
        self._open.update((intent.key, intent) for intent in intents)

    def end(self, keys: Sequence[str]) -> None:
        """Record that intents are at their end; on return that is on the disk."""
        known = [key for key in dict.fromkeys(keys) if key in self._open]
        self._append({"end": key} for key in known)
        for key in known:
            del self._open[key]
        if known and not self._open:  # everything in it is at its end
            with _writing(self._path):
                os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Let another run have the journal."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self) -> None:
        with open(self._descriptor, "rb", closefd=False) as file:
            content = file.read()
        torn = len(content) - (content.rfind(b"\n") + 1)
        if torn:
            os.ftruncate(self._descriptor, len(content) - torn)
        self._open = _open_intents(content, self._path)

    def _append(self, records: Iterable[JsonObject]) -> None:
        lines = [_as_line(record) for record in records]
        if not lines:
            return
        with _writing(self._path):
            size = os.fstat(self._descriptor).st_size
            if size == 0:
                lines.insert(0, _as_line({"journal": FORMAT}))
            self._write(("\n".join(lines) + "\n").encode(), size)

    def _write(self, content: bytes, size: int) -> None:
        """Write at the end, all or nothing: what came after half a line could not be read."""
        try:
            write_whole(self._descriptor, content)
            os.fdatasync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise


_as_line = json.JSONEncoder(separators=(",", ":")).encode


def left_open(path: Path) -> Sequence[Intent]:
    """Return what stands open in a journal that another run may be writing just now.

    Raises:
        LocalFileError: it cannot be read.
    """
    remedy = "It records what an interrupted apply left open. Let this user read it."
    with writing(f"read the journal {path}", remedy):
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                return tuple(_open_intents(file.read(), path).values())
        except FileNotFoundError:
            return ()


def take_over(journal: Journal, others: Iterable[Path], organizations: Collection[str]) -> None:
    """Move what other journals of the tree leave open of these organizations into this one.

    The number of shards changes, and a run may be made without any. The caller holds the lock of
    the organizations, so no run that could still end them is under way. A crash in between leaves
    an intent in both, which is ended twice and done once.

    Raises:
        LockHeldError: such a journal is in use.
        LocalFileError: a journal cannot be read or written.
    """
    for path in others:
        if not intents_in(left_open(path), organizations):
            continue
        with Journal(path) as other:
            found = intents_in(other.open_intents, organizations)
            journal.begin(found)
            crashpoint("C14")
            other.end([intent.key for intent in found])


def _open_intents(content: bytes, path: Path) -> dict[str, Intent]:
    """Return what the whole lines of a journal leave open."""
    found: dict[str, Intent] = {}
    for number, line in enumerate(content.rpartition(b"\n")[0].splitlines(), start=1):
        try:
            record = read_as(_Record, line)
            _check(record)
        except ValueError as failure:
            raise _damaged(path, number) from failure
        if record.begin is not None:
            found[record.begin.key] = record.begin
        elif record.end is not None:
            found.pop(record.end, None)
    return found


@dataclass(frozen=True, slots=True)
class _Record:
    """One line: the head, the beginning of an intent, or its end."""

    journal: int | None = None
    begin: Intent | None = None
    end: str | None = None


def _check(record: _Record) -> None:
    """Refuse a line that this module did not write."""
    intent = record.begin
    if intent is None:
        is_right = record.end is not None or record.journal == FORMAT
    elif intent.purpose == "inactive":
        is_right = intent.spec is not None and not intent.id
    else:
        is_right = KINDS[intent.ref.kind].secrets is not None
        is_right &= intent.purpose == "secret" or bool(intent.id and intent.client_id)
    if not is_right:
        raise ValueError("it is not in the form of a journal")


def _damaged(path: Path, line: int) -> LocalFileError:
    return LocalFileError(
        f"line {line} of the journal {path} cannot be read",
        remedy=(
            "It records what an interrupted apply left open. Restore it from a backup; or "
            "move it away and run `apply`, which then reports applications whose secret "
            "is not in the sink."
        ),
    )


def _open_locked(path: Path) -> int:
    """Return the open file, locked for this process alone."""
    try:
        return open_locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    except BlockingIOError:
        raise LockHeldError(
            f"another apply of this tree is using {path}",
            remedy="Wait until it is done, then run the command again.",
        ) from None


def _writing(path: Path) -> AbstractContextManager[None]:
    remedy = "Make it writable for this user, with room on the disk. Nothing more is sent."
    return writing(f"write the journal {path}", remedy)
