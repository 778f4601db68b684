"""Sinks that are folders: each secret in a file of its own, found by its client id.

A file of another client id is never replaced, renamed or removed. Files are plain JSON, or sealed
with ``age`` so that only the holders of some keys can open them.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.apply.durable import remove, sync_folder
from reconciler.apply.secret_folder import NewFile, SecretFolder, make_private_folder
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
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret


class FolderSink(ABC):
    """A folder of files that hold one secret each."""

    suffix: str
    follows = True

    def __init__(self, path: Path) -> None:
        self._folder = SecretFolder(path, self.is_of)

    @abstractmethod
    def names(self, application: Application) -> Iterator[str]:
        """Yield the names that the file of an application may have, the best one first."""

    @abstractmethod
    def content(self, delivery: Delivery) -> bytes:
        """Return the content of the file of a secret."""

    @abstractmethod
    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether a path is the file of this very client id."""

    @abstractmethod
    def client_id_of(self, path: Path) -> str | None:
        """Return the client id of a file of any application; None if it cannot be told."""

    @abstractmethod
    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Return the content of a file with another ref; None if it needs no change."""

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Write one file per secret, beside files of other client ids that have its name."""
        return self._folder.put([self._new_file(delivery) for delivery in deliveries])

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Look for the files of client ids; read the whole folder once for those not found.

        A run that was killed may have left a file under the name before a rename.
        """
        search = _Search(self)
        try:
            return [bool(search.paths(application)) for application in applications]
        except LocalFileError:
            return [None for _ in applications]

    def moved(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Give files the names that their applications have now."""
        if not self._folder.path.is_dir():
            return [() for _ in moves]
        try:
            with self._folder.locked():
                search = _Search(self)
                followed = [self._follow(move, search) for move in moves]
                sync_folder(self._folder.path)
        except LocalFileError as failure:
            return [failure for _ in moves]
        return followed

    def removed(self, applications: Sequence[Application]) -> Sequence[Followed]:
        """Remove every file of these client ids."""
        if not self._folder.path.is_dir():
            return [() for _ in applications]
        try:
            with self._folder.locked():
                search = _Search(self)
                found = [search.all_paths(application) for application in applications]
                for path in (path for paths in found for path in paths):
                    path.unlink(missing_ok=True)
                sync_folder(self._folder.path)
        except LocalFileError as failure:
            return [failure for _ in applications]
        return [
            tuple(_removed(application, path) for path in paths)
            for application, paths in zip(applications, found, strict=True)
        ]

    @property
    def folder(self) -> Path:
        """Return the folder."""
        return self._folder.path

    def own(self, application: Application) -> Path | None:
        """Return the file under one of the names of an application, or None."""
        return self._folder.own(application, self.names(application))

    def by_client_id(self) -> Mapping[str, Sequence[Path]]:
        """Return all files of the folder by their client id."""
        found: dict[str, list[Path]] = {}
        for path in self._folder.files(self.suffix):
            client_id = self.client_id_of(path)
            if client_id is not None:
                found.setdefault(client_id, []).append(path)
        return found

    def _new_file(self, delivery: Delivery) -> NewFile:
        application = Application(delivery.ref, delivery.client_id)
        return NewFile(application, tuple(self.names(application)), self.content(delivery))

    def _follow(self, move: Move, search: _Search) -> Followed:
        """Rename one file with its application. A file that is already under the new name stays."""
        now = Application(move.ref, move.client_id)
        names = tuple(self.names(now))
        own = self.own(now)
        before = self.own(Application(move.old, move.client_id))
        paths = [before] if before else [] if own else search.paths(now)
        others = [path for path in paths if path != own]
        if not own and not others:
            return ()
        try:
            target = own or self._folder.rename(others[0], names)
            for path in others:
                remove(path)
            content = self.with_ref(target, move.ref)
            if content is not None:
                self._folder.replace(target, content)
        except LocalFileError as failure:
            return failure
        return (_moved(move, target), *self._folder.notes_on(now, target, names))


class _Search:
    """Finds files by client id; reads the whole folder at most once."""

    def __init__(self, sink: FolderSink) -> None:
        self._sink = sink

    @cached_property
    def _by_client_id(self) -> Mapping[str, Sequence[Path]]:
        return self._sink.by_client_id()

    def paths(self, application: Application) -> Sequence[Path]:
        """Return the file under a name of the application, otherwise those under any name."""
        own = self._sink.own(application)
        return [own] if own else self._by_client_id.get(application.client_id, [])

    def all_paths(self, application: Application) -> Sequence[Path]:
        """Return every file of the client id."""
        own = self._sink.own(application)
        found = self._by_client_id.get(application.client_id, ())
        return list(dict.fromkeys([*([own] if own else []), *found]))


def _moved(move: Move, target: Path) -> Diagnostic:
    return warning(
        "SECRET-MOVED",
        "the secret of a renamed application has a new place",
        f"{move.old} is now {move.ref.path}; its client secret is the same and is in {target}. "
        "Change what reads the old file.",
        ref=move.ref,
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

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe the way a secret is written, and remove it."""
        make_private_folder(self._folder.path)
        for target in (self._folder.path / file_name(ref) for ref in refs):
            if target.is_dir() and not target.is_symlink():
                raise LocalFileError(
                    f"cannot write {target}: a folder is there",
                    remedy="A file of secrets goes there: move the folder away.",
                )
        self._folder.prove(b"room for a secret\n")

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application, then the one with its client id."""
        yield file_name(application.ref)
        yield file_name_beside(*application)

    def content(self, delivery: Delivery) -> bytes:
        """Return ref, client id and client secret as JSON."""
        return content_of(delivery)

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


def file_name(ref: ResourceRef) -> str:
    """Return the file of an application."""
    return plain_name([ref.organization, ref.project, ref.name]) + FileSink.suffix


def file_name_beside(ref: ResourceRef, client_id: str) -> str:
    """Return the file of an application whose own name is taken by another client id."""
    names = [ref.organization, ref.project, ref.name, client_id]
    return plain_name(names) + FileSink.suffix


def _read(path: Path) -> JsonObject:
    """Return the content of a file of a secret; nothing if it is not one. Follow no link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(descriptor)
            is_ours = stat.S_ISREG(about.st_mode) and about.st_size <= MAX_BYTES
            content = json.loads(os.read(descriptor, about.st_size)) if is_ours else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


class AgeSink(FolderSink):
    """One sealed file per application and client id. Its content is that of a plain file.

    A file is found by its name, because the content cannot be read here.
    """

    suffix = ".json.age"

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

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Seal and write a probe the way a secret is written, and remove it."""
        make_private_folder(self._folder.path)
        self._folder.prove(self._sealed(b"room for a secret\n"))

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application with its client id."""
        yield sealed_name(*application)

    def content(self, delivery: Delivery) -> bytes:
        """Return the content of a plain file, sealed."""
        return self._sealed(content_of(delivery))

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether this is a file with the application's name and client id."""
        return path.name in self.names(application) and _is_plain_file(path)

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id in a readable name; a name with a checksum does not tell it."""
        parts = path.name.removesuffix(self.suffix).split(".")
        return parts[-1] if len(parts) == 4 and _is_plain_file(path) else None

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Leave the content as it is: only the recipients can open it."""
        return None

    def _sealed(self, content: bytes) -> bytes:
        import pyrage

        return bytes(pyrage.encrypt(content, self._recipients))


def sealed_name(ref: ResourceRef, client_id: str) -> str:
    """Return the file of one client id of an application."""
    names = [ref.organization, ref.project, ref.name, client_id]
    return plain_name(names) + AgeSink.suffix


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


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
