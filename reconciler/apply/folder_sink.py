"""Sinks that are folders: each secret in a file of its own, found by its client id.

A file of another client id is never replaced, renamed or removed. Subclasses say how a file is
named and written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from reconciler.apply.durable import remove, sync_folder
from reconciler.apply.secret_folder import NewFile, SecretFolder
from reconciler.apply.sink import Application, Delivery, Followed, Kept, Move, Stops, never
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError
from reconciler.resources.ref import ResourceRef


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

    def holds(self, ref: ResourceRef, client_id: str) -> bool | None:
        """Look for the file of the client id, under the names of the application first."""
        return self.held([Application(ref, client_id)])[0]

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
