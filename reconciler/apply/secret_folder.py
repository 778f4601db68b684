"""A folder of secrets that several runs and services may share, as a sink.

A run that changes the folder holds its lock, so that every temporary file in it was left by a run
that was killed. A new file takes only a name that is free. A file of another client id is never
replaced, renamed or removed. Everything reported as kept is on the disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    Stops,
    content_of,
    never,
)
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError, cannot_write, writing
from reconciler.resources.files import (
    is_open_to_others,
    keep_out_of_git,
    make_folder,
    new_private,
    sync,
    write_whole,
)
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import ResourceRef

AT_ONCE = 8  # files
LOCK_SECONDS = 30.0
PAUSE_SECONDS = 0.02
# On a file system without locks, a temporary file this old counts as left by a killed run.
STALE_SECONDS = 3600.0
_TEMPORARY = re.compile(
    r"\.secret-[0-9a-f]{16}-(\d+|probe)\.tmp|\.\.gitignore\.[0-9a-f]{16}", re.ASCII
)
_WRITABLE = "Make it a folder this user may write to, with room on the disk."
_NO_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def make_private_folder(folder: Path) -> None:
    """Make a folder for secrets.

    Raises:
        LocalFileError: it cannot be made, is not a folder, or is open to others.
    """
    with writing(f"make the folder {folder}", _WRITABLE):
        make_folder(folder)
        status = folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise LocalFileError(f"{folder} is not a folder", remedy="Name a folder for the secrets.")
    if is_open_to_others(status):
        raise LocalFileError(
            f"{folder} can be read by others (mode {status.st_mode & 0o777:04o})",
            # The new folder comes first: chmod of a folder such as /tmp would harm the machine.
            remedy="Secrets go there: name a new folder, which is made for its owner alone. If "
            f"this one is for secrets alone, run `chmod 700 {folder}`.",
        )


_Files: TypeAlias = tuple[Mapping[str, Sequence[Path]], LocalFileError | None]
"""The files of a folder by their client id, and the first failure to read one."""

_Search: TypeAlias = Callable[[], _Files]
"""Reads the whole folder, at most once."""


class FolderSink(ABC):
    """A folder of files that hold one secret each.

    The files of a folder that ``is_plain`` hold secrets in plain text.
    """

    suffix: str
    is_plain: bool
    follows = True

    def __init__(self, path: Path) -> None:
        self.folder = path

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

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Return the content of a file with another ref; None if it stays as it is."""
        return None

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe the way a secret is written, and remove it."""
        make_private_folder(self.folder)
        with _locked(self.folder):
            (temporary,) = _staged(self.folder, [self.sealed(b"room for a secret\n")])
            crashpoint("C8")
            probe = temporary.with_name(temporary.name.replace("-0.", "-probe."))
            try:
                _name(temporary, probe)
                crashpoint("C9")
                sync(self.folder)
            finally:
                _remove(temporary)
                _remove(probe)

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Write one file per secret, beside files of other client ids that have its name.

        A folder of plain secrets that is still empty is kept out of Git from then on.
        """
        contents = [self.sealed(content_of(delivery)) for delivery in deliveries]
        try:
            with _locked(self.folder):
                if self.is_plain and not any(self.folder.iterdir()):
                    keep_out_of_git(self.folder)
                temporary = _staged(self.folder, contents)
                crashpoint("C8")
                try:
                    placed = list(map(self._place, temporary, deliveries))
                    crashpoint("C9")
                finally:
                    for path in temporary:
                        _remove(path)
                sync(self.folder)
        except LocalFileError as failure:
            return [failure for _ in deliveries]
        return placed

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
            with _locked(self.folder):
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

    def _place(self, temporary: Path, delivery: Delivery) -> Kept | LocalFileError:
        application = Application(delivery.ref, delivery.client_id)
        before = None
        with suppress(LocalFileError):  # one that cannot be read is left as it is
            before = self._own(application)
        try:
            if before is not None:
                temporary.replace(before)
                return Kept(str(before))
            names = [*self.names(application)]
            for name in names:
                target = self.folder / name
                if _name(temporary, target):
                    return Kept(str(target), self._notes_on(application, target, names))
        except OSError as failure:
            return cannot_write(f"write into {self.folder}", failure, _WRITABLE)
        return _taken(self.folder / names[-1])

    def _own(self, application: Application) -> Path | None:
        """Return the application's own file under one of its names, or None.

        Raises:
            LocalFileError: one of them cannot be read, and no other is its own.
        """
        unread = None
        for path in (self.folder / name for name in self.names(application)):
            try:
                if self.is_of(path, application):
                    return path
            except LocalFileError as failure:
                unread = failure
        if unread is not None:
            raise unread
        return None

    def _all_files(self) -> _Files:
        """Read the whole folder, but for hidden files."""
        found: dict[str, list[Path]] = {}
        unread = None
        paths: list[Path] = []
        with writing(f"write into {self.folder}", _WRITABLE), suppress(FileNotFoundError):
            paths = sorted(self.folder.iterdir())
        for path in paths:
            if path.name.startswith(".") or not path.name.endswith(self.suffix):
                continue
            try:
                client_id = self.client_id_of(path)
            except LocalFileError as failure:
                unread = unread or failure
                continue
            if client_id is not None:
                found.setdefault(client_id, []).append(path)
        return found, unread

    def _paths(self, application: Application, search: _Search) -> Sequence[Path]:
        """Return the file under a name of the application, otherwise those under any name.

        Raises:
            LocalFileError: there are none, and one that cannot be read may be its own.
        """
        if own := self._own(application):
            return [own]
        files, unread = search()
        paths = files.get(application.client_id, ())
        if not paths and unread:
            raise unread
        return paths

    def _follow(self, move: Move, search: _Search) -> Followed:
        old = Application(move.old, move.client_id)
        try:
            if move.ref is None:
                return self._delete(old, search)
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
        target = own or self._renamed(others[0], names)
        for path in others:
            _remove(path)
        content = self.with_ref(target, now.ref)
        if content is not None:  # it is replaced completely or not at all
            (temporary,) = _staged(self.folder, [content])
            temporary.replace(target)
        moved = _moved(old, now, target, is_same=own is None, removed=bool(own and others))
        return (moved, *self._notes_on(now, target, names))

    def _delete(self, application: Application, search: _Search) -> tuple[Diagnostic, ...]:
        """Remove every file of a client id.

        Raises:
            LocalFileError: one that may be its own cannot be read. The others are removed.
        """
        files, unread = search()
        paths = [*files.get(application.client_id, ())]
        for path in paths:
            path.unlink(missing_ok=True)
        own = self._own(application)  # a sealed file whose name does not show the client id
        if own:
            own.unlink(missing_ok=True)
            paths.append(own)
        if not paths and unread:
            raise unread
        return tuple(_removed(application, path) for path in paths)

    def _renamed(self, source: Path, names: Sequence[str]) -> Path:
        """Give a file the first of these names that is free beside its own, and return the path.

        A crash before the other name goes leaves the file under both, and never under none.

        Raises:
            LocalFileError: all of the names are taken.
            OSError: the folder cannot be changed.
        """
        for target in (self.folder / name for name in names):
            if _name(source, target):
                crashpoint("C19")
                return target
        raise _taken(self.folder / names[-1])

    def _notes_on(
        self, application: Application, target: Path, names: Sequence[str]
    ) -> tuple[Diagnostic, ...]:
        """Return a finding on the name that a file got; nothing for the first of its names."""
        if target.name == names[0]:
            return ()
        other = self.folder / names[0]
        try:
            self.is_of(other, application)
        except LocalFileError:
            what, why = "cannot be read", _OF_ANOTHER_USER
        else:
            what, why = "is not of this application", _OF_ANOTHER_SERVICE
        note = warning(
            "SECRET-KEPT-BESIDE",
            f"{other} {what} and was left as it is",
            f"The client secret of {application.ref} is in {target}. {why}",
            ref=application.ref,
        )
        return (note,)


_OF_ANOTHER_USER = (
    "The other file may hold an older secret: make it readable for this user, or remove it once "
    "nothing reads it."
)
_OF_ANOTHER_SERVICE = (
    "Two services that share a folder, or an application that was deleted by other means, lead to "
    "this. Give each service a folder of its own, or remove the file that is no longer needed."
)


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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs from changing a folder, and remove what a killed run left in it.

    Raises:
        LocalFileError: the folder cannot be written to, or another run keeps it locked.
    """
    with writing(f"write into {folder}", _WRITABLE):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            age = 0.0 if _lock(descriptor, folder) else STALE_SECONDS
            _sweep(folder, age)
            yield
        finally:
            os.close(descriptor)


def _lock(descriptor: int, path: Path) -> bool:
    """Wait for the lock of an open folder. Return False where the file system has no locks."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LocalFileError(
                    f"another run has kept {path} locked for {LOCK_SECONDS:.0f} s",
                    remedy="Wait until it is done, then run the command again.",
                ) from None
            time.sleep(PAUSE_SECONDS)
        except OSError as failure:
            if failure.errno not in _NO_LOCKS:
                raise
            return False
        else:
            return True


def _sweep(folder: Path, age: float) -> None:
    """Remove temporary files that killed runs left: those at least ``age`` seconds old."""
    latest = time.time() - age
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if _TEMPORARY.fullmatch(entry.name)]
    for entry in found:
        if not age or entry.stat(follow_symlinks=False).st_mtime < latest:
            _remove(Path(entry.path))


def _staged(folder: Path, contents: Sequence[bytes]) -> list[Path]:
    """Write temporary files; on return their content is on the disk.

    Several are written at once: each wait for the disk is shared by all that are waiting.
    """
    from concurrent.futures import ThreadPoolExecutor

    run = secrets.token_hex(8)
    paths = [folder / f".secret-{run}-{number}.tmp" for number in range(len(contents))]
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(_write_synced, paths, contents))
    except OSError:
        for path in paths:
            _remove(path)
        raise
    return paths


def _write_synced(path: Path, content: bytes) -> None:
    descriptor = new_private(path)
    try:
        write_whole(descriptor, content)
        crashpoint("C7")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file of no use, if that is possible."""
    with suppress(OSError):
        path.unlink()


def _name(source: Path, target: Path) -> bool:
    """Give a file one more name. Return False where that name is taken."""
    try:
        os.link(source, target)
    except FileExistsError:
        return False
    except OSError as failure:
        if failure.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        return _name_without_links(source, target)
    return True


def _name_without_links(source: Path, target: Path) -> bool:
    """Do the same where the file system has no hard links: the file loses its first name."""
    try:
        os.close(new_private(target))
    except FileExistsError:
        return False
    source.replace(target)
    return True


def _taken(target: Path) -> LocalFileError:
    return LocalFileError(
        f"cannot write {target}: something else is there",
        remedy="A file of secrets goes there: move what is there away.",
    )
