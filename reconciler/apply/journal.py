"""The journal: what a run is about to do and what it has done, so that a crash loses nothing.

One JSON object per line. An intent is on the disk before its request is sent; its end is
written once the result, secret included, is safe. It holds no secret. Where a run was cut
short, the last line may be torn; it is then taken as never written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from reconciler.apply.durable import make_folder, sync_folder
from reconciler.errors import LocalFileError, LockHeldError
from reconciler.resources.ref import Kind, ResourceRef

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Intent:
    """Something that must be brought to its end once it is begun.

    Attributes:
        purpose: ``create`` an object, or give an application a new ``secret``.
        key: Idempotency key of the create; the intent's own name otherwise.
        spec: The fields of the create in normal form.
        id: The application's id, for a secret.
        owes_secret: Whether its end is the delivery of a client secret.
    """

    purpose: Literal["create", "secret"]
    key: str
    ref: ResourceRef
    owes_secret: bool
    spec: Mapping[str, Any] | None = None
    prevent_delete: bool = False
    id: str = ""


class Journal:
    """The journal of one tree against one service, open for one run at a time.

    Attributes:
        is_new: No run of this tree has left a journal here before.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_new = not path.exists()
        self._descriptor = _open_locked(path)
        self._open: dict[str, Intent] = {}
        try:
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
        self._open.update((intent.key, intent) for intent in intents)
        self._append({"begin": _plain(intent)} for intent in intents)

    def end(self, keys: Sequence[str]) -> None:
        """Record that intents are at their end; on return that is on the disk."""
        known = [key for key in keys if self._open.pop(key, None) is not None]
        self._append({"end": key} for key in known)
        if known and not self._open:
            self._forget()

    def close(self) -> None:
        """Let another run have the journal."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self) -> None:
        content = self._path.read_bytes()
        whole, _, torn = content.rpartition(b"\n")
        if torn:
            os.ftruncate(self._descriptor, len(content) - len(torn))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, RecursionError) as failure:
                raise self._damaged(number) from failure

    def _take(self, record: Any) -> None:
        if "end" in record:
            self._open.pop(record["end"], None)
        elif "begin" in record:
            intent = _intent(record["begin"])
            self._open[intent.key] = intent
        elif record["journal"] != FORMAT:
            raise ValueError(record["journal"])

    def _append(self, records: Iterable[Mapping[str, Any]]) -> None:
        lines = [json.dumps(record, separators=(",", ":")) for record in records]
        if not lines:
            return
        try:
            if os.fstat(self._descriptor).st_size == 0:
                lines.insert(0, json.dumps({"journal": FORMAT}))
            view = memoryview(("\n".join(lines) + "\n").encode())
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fdatasync(self._descriptor)
        except OSError as failure:
            raise _cannot(self._path, failure) from failure

    def _forget(self) -> None:
        """Empty the journal: everything in it is at its end."""
        try:
            os.ftruncate(self._descriptor, 0)
        except OSError as failure:
            raise _cannot(self._path, failure) from failure

    def _damaged(self, line: int) -> LocalFileError:
        return LocalFileError(
            f"line {line} of the journal {self._path} cannot be read",
            remedy=(
                "It tells what an interrupted apply left open. Restore it from a backup; or "
                "move it away and run `apply`, which then reports applications whose secret "
                "is not in the sink."
            ),
        )


def _open_locked(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        make_folder(path.parent)
        descriptor = os.open(path, flags, 0o600)
    except OSError as failure:
        raise _cannot(path, failure) from failure
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sync_folder(path.parent)
    except BlockingIOError:
        os.close(descriptor)
        raise LockHeldError(
            f"another apply of this tree is using {path}",
            remedy="Wait until it is done, or give --lock-timeout to wait for it.",
        ) from None
    return descriptor


def _cannot(path: Path, failure: OSError) -> LocalFileError:
    return LocalFileError(
        f"cannot write the journal {path}: {failure.strerror or failure}",
        remedy="Make it writable for this user, with room on the disk. Nothing more is sent.",
    )


def _plain(intent: Intent) -> dict[str, Any]:
    return {name: getattr(intent, name) for name in Intent.__slots__}


def _intent(fields: Mapping[str, Any]) -> Intent:
    kind, organization, project, name = fields["ref"]
    intent = Intent(**{**fields, "ref": ResourceRef(Kind(kind), organization, project, name)})
    texts = (*intent.ref[1:], intent.key, intent.id)
    if intent.purpose not in {"create", "secret"} or not all(isinstance(t, str) for t in texts):
        raise ValueError(intent.purpose)
    if not isinstance(intent.spec, dict | None):
        raise TypeError(intent.spec)
    return intent
