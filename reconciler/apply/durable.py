"""Files that survive a crash: whole or not at all, and really on the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from reconciler.errors import LocalFileError
from reconciler.resources.installation import STATE_FOLDER
from reconciler.resources.process import crashpoint

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


def make_private_folder(folder: Path) -> None:
    """Make a folder for secrets.

    Raises:
        LocalFileError: it cannot be made, or is open to others.
    """
    try:
        make_folder(folder)
        mode = folder.stat().st_mode
    except OSError as failure:
        raise _cannot("make the folder", folder, failure) from failure
    if mode & 0o077:
        raise LocalFileError(
            f"{folder} can be read by others (mode {mode & 0o777:04o})",
            remedy=f"Secrets go there: run `chmod 700 {folder}`, or choose another folder.",
        )


def check_replaceable(folder: Path, names: Iterable[str]) -> None:
    """See that files can be written over what is there.

    Raises:
        LocalFileError: a folder is where one of them goes.
    """
    for target in (folder / name for name in names):
        if target.is_dir() and not target.is_symlink():
            raise LocalFileError(
                f"cannot write {target}: a folder is there",
                remedy="A file of secrets goes there: move the folder away.",
            )


def write_private_files(folder: Path, files: Sequence[tuple[str, bytes]]) -> None:
    """Write files for their owner alone, each whole or not at all; then they are on the disk.

    What a crash leaves of one is written over by the next that writes the same file.

    Raises:
        LocalFileError: one cannot be written; files of the same name are as they were or new.
    """
    temporary = [(folder / f".{name}.tmp", folder / name) for name, _ in files]
    try:
        written = zip(temporary, files, strict=True)
        write_synced([(temp, content) for (temp, _), (_, content) in written])
        crashpoint("C8")
        for temp, target in temporary:
            temp.replace(target)
        crashpoint("C9")
        sync_folder(folder)
    except OSError as failure:
        for temp, _ in temporary:
            remove(temp)
        raise cannot_write(folder, failure) from failure


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
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        crashpoint("C7")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(folder: Path, failure: OSError) -> LocalFileError:
    """Return the error of a folder that cannot be written to."""
    return _cannot("write into", folder, failure)


def _cannot(do: str, folder: Path, failure: OSError) -> LocalFileError:
    return LocalFileError(
        f"cannot {do} {folder}: {failure.strerror or failure}",
        remedy="Make it a folder this user may write to, with room on the disk.",
    )
