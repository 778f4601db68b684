"""Sinks that are folders: each secret in a file of its own, found by its client id.

A file of another client id is never replaced, renamed or removed. Files are plain JSON, or sealed
with ``age`` so that only the holders of some keys can open them.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from reconciler.apply.secret_folder import NewFile, SecretFolder, make_private_folder, remove
from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    Stops,
    content_of,
    never,
    plain_name,
)
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.call import JsonObject
from reconciler.resources.files import read_start, sync
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret


@dataclass(frozen=True, slots=True)
class _Files:
    """All files of a folder, by their client id.

    Attributes:
        unread: The first failure to read a file; its client id is unknown.
    """

    by_client_id: Mapping[str, Sequence[Path]]
    unread: LocalFileError | None

    def of(self, client_id: str) -> Sequence[Path]:
        """Return the files of a client id.

        Raises:
            LocalFileError: there are none, and one that cannot be read may be its own.
        """
        paths = self.by_client_id.get(client_id, ())
        if not paths and self.unread:
            raise self.unread
        return paths


_Search: TypeAlias = Callable[[], _Files]
"""Reads the whole folder, at most once."""


class FolderSink(ABC):
    """A folder of files that hold one secret each."""

    suffix: str
    is_plain: bool  # files hold secrets in plain text
    follows = True

    def __init__(self, path: Path) -> None:
        self.folder = path
        self._folder = SecretFolder(path, self.is_of, is_plain=self.is_plain)

    @abstractmethod
    def names(self, application: Application) -> Iterator[str]:
        """Yield the names that the file of an application may have, the best one first."""

    @abstractmethod
    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether a path is the file of this very client id.

        Raises:
            LocalFileError: it is a file that cannot be read.
        """

    @abstractmethod
    def client_id_of(self, path: Path) -> str | None:
        """Return the client id of a file of any application; None if it is unknown.

        Raises:
            LocalFileError: it is a file that cannot be read.
        """

    @abstractmethod
    def sealed(self, content: bytes) -> bytes:
        """Return content as it is written into a file."""

    @abstractmethod
    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Return the content of a file with another ref; None if it needs no change."""

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe the way a secret is written, and remove it."""
        make_private_folder(self.folder)
        self._folder.prove(self.sealed(b"room for a secret\n"))

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Write one file per secret, beside files of other client ids that have its name."""
        return self._folder.put([self._new_file(delivery) for delivery in deliveries])

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Look for the files of client ids; read the whole folder once for those not found.

        A run that was killed may have left a file under the name before a rename.
        """
        search = cache(self._all_files)
        return [self._held(application, search) for application in applications]

    def follow(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Give files the names that their applications have now; remove those of deleted ones.

        The folder is locked meanwhile; on return that is on the disk.
        """
        if not self.folder.is_dir():
            return [() for _ in moves]
        search = cache(self._all_files)
        try:
            with self._folder.locked():
                followed = [self._follow(move, search) for move in moves]
                sync(self.folder)
        except LocalFileError as failure:
            return [failure for _ in moves]
        return followed

    def _held(self, application: Application, search: _Search) -> bool | None:
        try:
            return bool(self._paths(application, search))
        except LocalFileError:
            return None

    def _new_file(self, delivery: Delivery) -> NewFile:
        application = Application(delivery.ref, delivery.client_id)
        content = self.sealed(content_of(delivery))
        return NewFile(application, tuple(self.names(application)), content)

    def _own(self, application: Application) -> Path | None:
        return self._folder.own(application, self.names(application))

    def _all_files(self) -> _Files:
        """Read the whole folder."""
        found: dict[str, list[Path]] = {}
        unread = None
        for path in self._folder.files(self.suffix):
            try:
                client_id = self.client_id_of(path)
            except LocalFileError as failure:
                unread = unread or failure
                continue
            if client_id is not None:
                found.setdefault(client_id, []).append(path)
        return _Files(found, unread)

    def _paths(self, application: Application, search: _Search) -> Sequence[Path]:
        """Return the file under a name of the application, otherwise those under any name."""
        own = self._own(application)
        return [own] if own else search().of(application.client_id)

    def _follow(self, move: Move, search: _Search) -> Followed:
        old = Application(move.old, move.client_id)
        try:
            if move.ref is None:
                return self._remove(old, search)
            return self._rename(old, Application(move.ref, move.client_id), search)
        except LocalFileError as failure:
            return failure

    def _rename(
        self, old: Application, now: Application, search: _Search
    ) -> tuple[Diagnostic, ...]:
        """Rename one file with its application. A file that is already under the new name stays."""
        names = tuple(self.names(now))
        own, before = self._own(now), self._own(old)
        paths = [before] if before else [] if own else self._paths(now, search)
        others = [path for path in paths if path != own]
        if not own and not others:
            return ()
        target = own or self._folder.rename(others[0], names)
        for path in others:
            remove(path)
        content = self.with_ref(target, now.ref)
        if content is not None:
            self._folder.replace(target, content)
        moved = _moved(old, now, target, is_same=own is None, removed=bool(own and others))
        return (moved, *self._folder.notes_on(now, target, names))

    def _remove(self, application: Application, search: _Search) -> tuple[Diagnostic, ...]:
        """Remove every file of a client id.

        Raises:
            LocalFileError: one that may be its own cannot be read. The others are removed.
        """
        files = search()
        paths = [*files.by_client_id.get(application.client_id, ())]
        for path in paths:
            path.unlink(missing_ok=True)
        own = self._own(application)  # a sealed file whose name does not show the client id
        if own:
            own.unlink(missing_ok=True)
            paths.append(own)
        if not paths and files.unread:
            raise files.unread
        return tuple(_removed(application, path) for path in paths)


def _moved(
    old: Application, now: Application, target: Path, *, is_same: bool, removed: bool
) -> Diagnostic:
    """Return the finding on a file that has the new name.

    A file that was under that name already may hold a newer secret, because a run can rename an
    application and replace its secret. It is called the same only where the file was renamed.
    """
    same = "the same and is " if is_same else ""
    rest = ", and the file with the old one was removed" if removed else ""
    return warning(
        "SECRET-MOVED",
        "the secret of a renamed application has a new place",
        f"{old.ref} is now {now.ref.path}; its client secret is {same}in {target}{rest}. "
        "Change what reads the old file.",
        ref=now.ref,
    )


def _removed(application: Application, path: Path) -> Diagnostic:
    return warning(
        "SECRET-REMOVED",
        "the secret of a deleted application was removed",
        f"{application.ref} is deleted, and its client secret with it; {path} was removed.",
        ref=application.ref,
    )


MAX_BYTES = 1_000_000


class FileSink(FolderSink):
    """Files that scripts read. The client id in the content identifies a file, not its name."""

    suffix = ".json"
    is_plain = True

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe, and see that no folder is where a file is to go."""
        super().prove(refs)
        for target in (self.folder / file_name(ref) for ref in refs):
            if target.is_dir() and not target.is_symlink():
                raise LocalFileError(
                    f"cannot write {target}: a folder is there",
                    remedy="A file of secrets goes there: move the folder away.",
                )

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application, then the one with its client id."""
        yield file_name(application.ref)
        yield file_name(*application)

    def sealed(self, content: bytes) -> bytes:
        return content

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether the content names the client id."""
        return self.client_id_of(path) == application.client_id

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id that the content names."""
        client_id = _read(path).get("client_id")
        return client_id if isinstance(client_id, str) else None

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Return the content with another ref, unless it has that ref already."""
        before = _read(path)
        secret = before.get("client_secret")
        if not isinstance(secret, str):
            return None
        content = content_of(Delivery(ref, str(before["client_id"]), Secret(secret)))
        return None if json.loads(content) == before else content


def file_name(ref: ResourceRef, client_id: str = "", suffix: str = FileSink.suffix) -> str:
    """Return the file of an application; with the client id where its own name is taken."""
    names = [ref.organization, ref.project, ref.name, *([client_id] if client_id else [])]
    return plain_name(names) + suffix


def _read(path: Path) -> JsonObject:
    """Return the content of a file of a secret; nothing if it is not one. Follow no link.

    Raises:
        LocalFileError: it is a file that cannot be read, such as one of another user.
    """
    if not _is_plain_file(path):
        return {}
    try:
        read, status = read_start(path, MAX_BYTES, os.O_NOFOLLOW)
        content = json.loads(read) if status.st_size <= MAX_BYTES else None
    except (ValueError, RecursionError, FileNotFoundError):  # or another run removed it meanwhile
        return {}
    except OSError as failure:
        raise _unread(path, failure) from failure
    return content if isinstance(content, dict) else {}


class AgeSink(FolderSink):
    """One sealed file per application and client id. Its content is that of a plain file.

    A file is found by its name, because the content cannot be read here.
    """

    suffix = ".json.age"
    is_plain = False

    def __init__(self, folder: Path, recipients: Sequence[str]) -> None:
        """Seal to recipients: ``age1...`` or public keys of SSH.

        Raises:
            UsageError: the list is empty, or an entry is not an age recipient.
        """
        super().__init__(folder)
        if not recipients:
            raise UsageError(
                "age: needs a recipient who can open the files",
                remedy="Write --secrets-to 'age:DIR?recipient=age1...'.",
            )
        self._recipients = [_recipient(text) for text in recipients]

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application with its client id."""
        yield file_name(*application, self.suffix)

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether this is a file with the application's name and client id."""
        return path.name in self.names(application) and _is_plain_file(path)

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id in a readable name; a name with a checksum does not show it."""
        parts = path.name.removesuffix(self.suffix).split(".")
        return parts[-1] if len(parts) == 4 and _is_plain_file(path) else None

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Leave the content as it is: only the recipients can open it."""
        return None

    def sealed(self, content: bytes) -> bytes:
        """Return the content sealed: only the recipients can open it."""
        import pyrage

        return bytes(pyrage.encrypt(content, self._recipients))


def _is_plain_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as failure:
        raise _unread(path, failure) from failure


def _unread(path: Path, failure: OSError) -> LocalFileError:
    return LocalFileError(
        f"cannot read {path}: {failure.strerror or failure}",
        remedy="Make it readable for this user, or move it away.",
    )


def _recipient(text: str) -> Any:
    import pyrage

    for kind in (pyrage.x25519.Recipient, pyrage.ssh.Recipient):
        try:
            return kind.from_str(text)
        except pyrage.RecipientError:
            continue
    raise UsageError(
        f"{text[:60]!r} is not an age recipient",
        remedy="Write the public key that age-keygen shows (age1...), or one of SSH.",
    )
