"""Files that survive a crash: whole or not at all, and really on the disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from reconciler.errors import LocalFileError, remedy_of, why_unwritten
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.process import crashpoint
from reconciler.resources.regular_file import open_regular

AT_ONCE = 8


def make_folder(folder: Path) -> bool:
    """Make a folder and those above it, for its owner alone; return whether it was missing.

    Our own state folder keeps itself out of Git.

    Raises:
        OSError: it cannot be made.
    """
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(path.parent)
        if path.name == STATE_FOLDER:
            keep_out_of_git(path)
    return bool(missing)


def keep_out_of_git(folder: Path) -> None:
    """Let Git ignore everything in a folder."""
    (folder / ".gitignore").write_text("*\n", encoding="ascii")


def write_private_file(target: Path, content: bytes) -> None:
    """Write a file for its owner alone, whole or not at all; then it is on the disk.

    What a crash leaves of it is written over by the next that writes the same file. Of several
    processes that write it at once, each writes it whole, one after the other.

    Raises:
        LocalFileError: it cannot be written; a file of the same name is as it was or new.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        with _held(temporary) as descriptor:
            try:
                os.ftruncate(descriptor, 0)
                _write_whole(descriptor, content)
                crashpoint("C8")
                temporary.replace(target)
            except OSError:
                remove(temporary)
                raise
            crashpoint("C9")
            sync_folder(target.parent)
    except OSError as failure:
        raise cannot_write(target.parent, failure) from failure


@contextmanager
def _held(temporary: Path) -> Iterator[int]:
    """Open a temporary file for one writer at a time; yield its descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    while True:
        with _opened(temporary, os.O_WRONLY | os.O_CREAT) as descriptor:
            with suppress(OSError):  # a file system without locks: writers may disturb each other
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The writer before has given the file its own name meanwhile: this one needs another.
            if not _is_at(temporary, descriptor):
                continue
            yield descriptor
            return


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove(path: Path) -> None:
    """Remove a file of no use, if that is possible."""
    with suppress(OSError):
        path.unlink()


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_synced(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write files, several at once: each wait for the disk is shared by all that are waiting.

    Raises:
        OSError: one cannot be written; what was written of the others stays.
    """
    from concurrent.futures import ThreadPoolExecutor

    shares = [files[start::AT_ONCE] for start in range(min(AT_ONCE, len(files)))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(_write_share, shares))


def _write_share(files: Sequence[tuple[Path, bytes]]) -> None:
    for path, content in files:
        _write_one(path, content)


def _write_one(path: Path, content: bytes) -> None:
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        _write_whole(descriptor, content)


def _write_whole(descriptor: int, content: bytes) -> None:
    os.fchmod(descriptor, 0o600)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    crashpoint("C7")
    os.fsync(descriptor)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = open_regular(path, flags | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def cannot_write(folder: Path, failure: OSError, do: str = "write into") -> LocalFileError:
    """Return the error of a folder that cannot be written to, or made."""
    return LocalFileError(
        f"cannot {do} {folder}: {why_unwritten(failure)}",
        remedy=remedy_of(
            failure, "Make it a folder this user may write to, with room on the disk."
        ),
    )
