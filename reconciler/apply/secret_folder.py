"""A folder of secrets that several runs and services may share.

A run that changes the folder holds its lock, so that every temporary file in it was left by a run
that was killed. A new file takes only a name that is free; a file is replaced only
by one of the same client id. Everything reported as kept is on the disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from reconciler.apply.sink import Application, Kept
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import LocalFileError, cannot_write
from reconciler.resources.files import (
    is_open_to_others,
    keep_out_of_git,
    make_folder,
    new_private,
    sync,
    write_whole,
)
from reconciler.resources.process import crashpoint

AT_ONCE = 8  # files
LOCK_SECONDS = 30.0
PAUSE_SECONDS = 0.02
# On a file system without locks, a temporary file this old counts as left by a killed run.
STALE_SECONDS = 3600.0
_TEMPORARY = re.compile(
    r"\.secret-[0-9a-f]{16}-(\d+|probe)\.tmp|\.\.gitignore\.[0-9a-f]{16}", re.ASCII
)
_NO_LOCKS = {errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}


def make_private_folder(folder: Path) -> None:
    """Make a folder for secrets.

    Raises:
        LocalFileError: it cannot be made, is not a folder, or is open to others.
    """
    try:
        make_folder(folder)
        status = folder.stat()
    except OSError as failure:
        raise _unwritten(f"make the folder {folder}", failure) from failure
    if not stat.S_ISDIR(status.st_mode):
        raise LocalFileError(f"{folder} is not a folder", remedy="Name a folder for the secrets.")
    if is_open_to_others(status):
        raise LocalFileError(
            f"{folder} can be read by others (mode {status.st_mode & 0o777:04o})",
            # The new folder comes first: chmod of a folder such as /tmp would harm the machine.
            remedy="Secrets go there: name a new folder, which is made for its owner alone. If "
            f"this one is for secrets alone, run `chmod 700 {folder}`.",
        )


@dataclass(frozen=True, slots=True)
class NewFile:
    """The file of one secret, while it is written to the folder.

    Attributes:
        names: The names it may have, the best one first.
    """

    application: Application
    names: tuple[str, ...]
    content: bytes


class SecretFolder:
    """Files with one secret each.

    ``is_of`` returns whether a file is an application's own, or raises ``LocalFileError`` for one
    that cannot be read. Files of a folder that ``is_plain`` hold secrets in plain text.
    """

    def __init__(
        self, path: Path, is_of: Callable[[Path, Application], bool], *, is_plain: bool
    ) -> None:
        self.path = path
        self._is_of = is_of
        self._is_plain = is_plain

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs from changing the folder, and remove what a killed run left in it.

        Raises:
            LocalFileError: the folder cannot be written to, or another run keeps it locked.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                age = 0.0 if _lock(descriptor, self.path) else STALE_SECONDS
                _sweep(self.path, age)
                yield
            finally:
                os.close(descriptor)
        except OSError as failure:
            raise _unwritten(f"write into {self.path}", failure) from failure

    def prove(self, content: bytes) -> None:
        """Write a file the way a secret is written, and remove it.

        Raises:
            LocalFileError: that is not possible.
        """
        with self.locked():
            (temporary,) = _staged(self.path, [content])
            crashpoint("C8")
            probe = temporary.with_name(temporary.name.replace("-0.", "-probe."))
            try:
                _name(temporary, probe)
                crashpoint("C9")
                sync(self.path)
            finally:
                remove(temporary)
                remove(probe)

    def put(self, files: Sequence[NewFile]) -> Sequence[Kept | LocalFileError]:
        """Write files; return what became of each. A kept file is on the disk under its name.

        A folder of plain secrets that is still empty is kept out of Git from then on.
        """
        try:
            with self.locked():
                if self._is_plain and not any(self.path.iterdir()):
                    keep_out_of_git(self.path)
                temporary = _staged(self.path, [file.content for file in files])
                crashpoint("C8")
                try:
                    placed = list(map(self._place, temporary, files))
                    crashpoint("C9")
                finally:
                    for path in temporary:
                        remove(path)
                sync(self.path)
        except LocalFileError as failure:
            return [failure for _ in files]
        return placed

    def own(self, application: Application, names: Iterable[str]) -> Path | None:
        """Return the application's own file under one of these names, or None.

        Raises:
            LocalFileError: one of them cannot be read, and no other is its own.
        """
        unread = None
        for path in (self.path / name for name in names):
            try:
                if self._is_of(path, application):
                    return path
            except LocalFileError as failure:
                unread = failure
        if unread is not None:
            raise unread
        return None

    def files(self, suffix: str) -> Sequence[Path]:
        """Return the paths in the folder whose names end with a suffix, sorted; no hidden ones."""
        try:
            with os.scandir(self.path) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(suffix)]
        except FileNotFoundError:
            return ()
        except OSError as failure:
            raise _unwritten(f"write into {self.path}", failure) from failure
        return [self.path / name for name in sorted(names) if not name.startswith(".")]

    def rename(self, source: Path, names: Sequence[str]) -> Path:
        """Give a file the first of these names that is free, and return its new path.

        A crash in between leaves the file under both names, and never under none.

        Raises:
            LocalFileError: all of the names are taken.
            OSError: the folder cannot be changed.
        """
        for target in (self.path / name for name in names):
            if _name(source, target):
                crashpoint("C19")
                remove(source)
                return target
        raise _taken(self.path / names[-1])

    def replace(self, target: Path, content: bytes) -> None:
        """Replace the content of a file, completely or not at all.

        Raises:
            OSError: that is not possible; the file is as it was.
        """
        (temporary,) = _staged(self.path, [content])
        temporary.replace(target)

    def _place(self, temporary: Path, file: NewFile) -> Kept | LocalFileError:
        before = None
        with suppress(LocalFileError):  # one that cannot be read is left as it is
            before = self.own(file.application, file.names)
        try:
            if before is not None:
                temporary.replace(before)
                return Kept(str(before))
            for name in file.names:
                target = self.path / name
                if _name(temporary, target):
                    return Kept(str(target), self.notes_on(file.application, target, file.names))
        except OSError as failure:
            return _unwritten(f"write into {self.path}", failure)
        return _taken(self.path / file.names[-1])

    def notes_on(
        self, application: Application, target: Path, names: Sequence[str]
    ) -> tuple[Diagnostic, ...]:
        """Return a finding on the name that a file got; nothing for the first of its names."""
        if target.name == names[0]:
            return ()
        other = self.path / names[0]
        try:
            self._is_of(other, application)
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
            remove(Path(entry.path))


def _staged(folder: Path, contents: Sequence[bytes]) -> list[Path]:
    """Write temporary files; on return their content is on the disk."""
    run = secrets.token_hex(8)
    paths = [folder / f".secret-{run}-{number}.tmp" for number in range(len(contents))]
    try:
        _write_synced(list(zip(paths, contents, strict=True)))
    except OSError:
        for path in paths:
            remove(path)
        raise
    return paths


def _write_synced(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write new files, several at once: each wait for the disk is shared by all that are waiting.

    Raises:
        OSError: one cannot be written; what was written of the others stays.
    """
    from concurrent.futures import ThreadPoolExecutor

    shares = [files[start::AT_ONCE] for start in range(min(AT_ONCE, len(files)))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_write_share, shares))


def _write_share(files: Sequence[tuple[Path, bytes]]) -> None:
    for path, content in files:
        descriptor = new_private(path)
        try:
            write_whole(descriptor, content)
            crashpoint("C7")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
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


def _unwritten(what: str, failure: OSError) -> LocalFileError:
    remedy = "Make it a folder this user may write to, with room on the disk."
    return cannot_write(what, failure, remedy)


def _taken(target: Path) -> LocalFileError:
    return LocalFileError(
        f"cannot write {target}: something else is there",
        remedy="A file of secrets goes there: move what is there away.",
    )
