"""The file of a SQLite store: making it, recognising it, opening it, and its errors in words.

A file is looked at before SQLite is: what is not a store, is another program's, is newer or is
cut short is refused with its bytes untouched. Only this module knows the error codes of SQLite.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from reconciler.resources.files import publish, read_start, temporary_file
from reconciler.resources.process import crashpoint
from reconciler.service.eventstore.errors import (
    Meaning,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnusableError,
)
from reconciler.service.eventstore.sqlite_tables import (
    ADD_META,
    APPLICATION_ID,
    SET_VERSION,
    VERSION,
    WORDS,
)
from reconciler.service.eventstore.tables import SCHEMA_VERSION, TABLES, script

BUSY_SECONDS = 10.0
CACHE_KIB = 16 * 1024  # of the writer: holds a whole batch, which else is written twice
READER_CACHE_KIB = 2 * 1024  # there are many readers, and the system keeps the pages as well
LOG = "-wal"  # the file beside the store that holds its last commits
INDEX = "-shm"  # the index of the log
# The header of the file: its length, how it begins, and where its numbers are, in bytes. It is read
# here first, because SQLite may change a file that it opens.
HEADER = 100
PAGE_SIZE = 16  # two bytes; 1 means 65,536
PAGE_COUNT = 28
USER_VERSION = 60
PROGRAM = 68
MAGIC = b"SQLite format 3\0"


def is_there(path: Path) -> bool:
    """Return whether there is a store, sound or not.

    Raises:
        StoreUnusableError: only its log is there, which SQLite would replay into a new store; or it
            is not known, such as in a folder that only another user may enter.
    """
    if has_log(path) and not has_file(path):
        raise StoreUnusableError(
            f"{path} is missing, but its log is still there: the file was deleted or moved",
            "Put the file back, or restore a backup with `store restore`. To begin with an empty"
            f" store, remove {log_of(path)} first: it holds what was written last.",
        )
    return has_file(path)


def has_file(path: Path) -> bool:
    """Return whether a store has its file. Raises as ``is_there`` where that is not known."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unopened(path, error) from error
    return True


def _unopened(path: Path, error: OSError) -> StoreUnusableError:
    return StoreUnusableError(
        f"{path} cannot be opened: {error.strerror}",
        "Check that it is a file, and that this user may read it.",
    )


def create(path: Path) -> None:
    """Make an empty store, whole or not at all. A store that is there, or is made now, is kept.

    Raises:
        StoreError: only its log is there; or the folder cannot be written to, or is full.
    """
    if is_there(path):
        return
    try:
        with temporary_file(path) as (unfinished, _):
            with store_errors(path):
                _fill(unfinished)
            crashpoint("S11")
            with suppress(FileExistsError):
                publish(unfinished, path)
    except OSError as error:
        raise StoreReadOnlyError(
            f"{path} cannot be made: {error.strerror}",
            "Make its folder, and make it writable for this user.",
        ) from error


def _fill(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(SET_VERSION)
        crashpoint("S11")
        connection.executescript(f"BEGIN;{script(TABLES, WORDS)}COMMIT;")
        crashpoint("S11")
        connection.execute(ADD_META, ("instance", os.urandom(16).hex()))
        connection.execute("PRAGMA journal_mode = WAL")


def recognise(path: Path) -> None:
    """Accept a file that is a whole store of this version's schema.

    Raises:
        StoreUnusableError: it is something else, which the message names.
    """
    try:
        header, status = read_start(path, HEADER)
    except OSError as error:
        raise _unopened(path, error) from error
    if not header.startswith(MAGIC):
        raise _not_ours(path, "is not a database")
    if len(header) < HEADER or (
        status.st_size < _number(header, PAGE_COUNT) * _page_size(header)
        and not _log_has_the_rest(path)
    ):
        raise StoreUnusableError(
            f"{path} is cut short",
            "Restore a backup with `store restore`. The file was left as it is.",
        )
    if _number(header, PROGRAM) != APPLICATION_ID:
        raise _not_ours(path, "is a database of another program")
    _check_version(path, _number(header, USER_VERSION))


def _log_has_the_rest(path: Path) -> bool:
    """Return whether a file that is too short is whole with the log beside it.

    It is while the log is copied into the file, which begins with the page that says how long
    the file is, and after a crash meanwhile.
    """
    if not has_log(path):
        return False
    with store_errors(path), closing(connect_to_read(path)) as connection:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


def is_ours(path: Path) -> bool:
    """Return whether a file was a store of ours once, even if it is damaged now."""
    try:
        header, _ = read_start(path, HEADER)
    except OSError:
        return False
    return header.startswith(MAGIC) and _number(header, PROGRAM) == APPLICATION_ID


def _check_version(path: Path, version: int) -> None:
    if version > SCHEMA_VERSION:
        raise StoreUnusableError(
            f"{path} was made by a newer version (its schema is {version}, "
            f"this version knows {SCHEMA_VERSION})",
            "Use that version or a newer one. The file was left as it is.",
        )
    if version < SCHEMA_VERSION:
        raise _not_ours(path, f"has schema {version}, which no version ever wrote")


def _not_ours(path: Path, what: str) -> StoreUnusableError:
    return StoreUnusableError(
        f"{path} {what}", "Name the store's own file. This one was left as it is."
    )


def _number(header: bytes, start: int) -> int:
    return int.from_bytes(header[start : start + 4], "big")


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[PAGE_SIZE : PAGE_SIZE + 2], "big")
    return 65536 if size == 1 else size


def connect(path: Path, cache_kib: int = CACHE_KIB) -> sqlite3.Connection:
    """Open a store for reading and writing, every commit durable.

    ``cache_kib`` is how many KiB of pages the connection keeps in memory.

    Raises:
        StoreError: it cannot be.
    """
    with store_errors(path):
        connection = _recognised(path, "mode=rw")  # never makes a file
        with closed_on_failure(connection):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # A secret that was acknowledged must not stay in the file, sealed or not.
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA temp_store = MEMORY")  # what a savepoint undoes by
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
        return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a store for reading, and leave every file as it is.

    While another process has the store open, its log of recent commits lies beside it, and SQLite
    reads along. Otherwise the file is opened as immutable, or SQLite would make such a log itself.
    The reader then checks that it has not changed (``fingerprint``).

    Raises:
        StoreError: it cannot be.
    """
    rest = "mode=ro" if has_log(path) else "mode=ro&immutable=1"
    with store_errors(path):
        return _recognised(path, rest)


def quiesce(path: Path) -> None:
    """Make sure that no process has a store open, and that no log is left beside it.

    Raises:
        StoreBusyError: a process has it open.
    """
    with store_errors(path), closing(_opened(path, "mode=rw", seconds=1.0)) as held:
        # Leaving WAL writes the log into the file. It is refused while another connection is open.
        held.execute("PRAGMA journal_mode = DELETE")


def copy_into(target: Path, path: Path, connection: sqlite3.Connection) -> None:
    """Copy an open store, with what is still in its log, into an empty file.

    Raises:
        StoreError: the store cannot be read, or the file cannot be written.
    """
    with store_errors(path), closing(sqlite3.connect(target)) as made:
        connection.backup(made)


def _recognised(path: Path, how: str) -> sqlite3.Connection:
    """Open a store of this version's schema."""
    connection = _opened(path, how)
    with closed_on_failure(connection):
        # The log may have a later version than the header of the file, which was read first.
        _check_version(path, *connection.execute(VERSION).fetchone())
    return connection


@contextmanager
def closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    """Close a connection that the block does not find fit for use."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _opened(path: Path, how: str, *, seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?{how}",
        uri=True,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def log_of(path: Path) -> Path:
    """Return the path of the log of a store, which need not be there.

    SQLite keeps it beside the file itself, not beside a link to it.
    """
    return Path(os.path.realpath(path) + LOG)


def has_log(path: Path) -> bool:
    """Return whether commits lie beside the store that are not in its file yet."""
    try:
        return log_of(path).stat().st_size > 0
    except OSError:
        return False


def fingerprint(path: Path) -> tuple[int, int, int, bool]:
    """Return a value that changes with every write to the store.

    Raises:
        StoreUnusableError: there is no such file any more.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise _unopened(path, error) from error
    return found.st_ino, found.st_mtime_ns, found.st_size, has_log(path)


_SHARED = 32 * 1024  # bytes by which SQLite makes the file of its shared memory longer


def _is_full(folder: Path) -> bool:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _SHARED


_DAMAGED = Meaning(
    StoreUnusableError,
    "{place} is damaged",
    "Restore a backup with `store restore`. The file was left as it is.",
)
_UNREACHABLE = Meaning(
    StoreUnusableError,
    "{place} cannot be opened",
    "Check that it is a file, and that this user may read and write it and its folder.",
)
_BUSY = Meaning(
    StoreBusyError,
    "another program is writing to {place}",
    "Wait until it is done, then run the command again.",
)
# By primary error code, which is the lowest byte of the extended one.
_MEANINGS: dict[int, Meaning] = {
    sqlite3.SQLITE_NOTADB: Meaning(
        StoreUnusableError,
        "{place} is not a store of the identity service",
        "Name another file. This one was left as it is.",
    ),
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_READONLY: Meaning(
        StoreReadOnlyError,
        "{place} cannot be written to",
        "Make the file and its folder writable for this user.",
    ),
    sqlite3.SQLITE_PERM: _UNREACHABLE,
    sqlite3.SQLITE_CANTOPEN: _UNREACHABLE,
    sqlite3.SQLITE_FULL: Meaning(
        StoreFullError,
        "there is no room left to write {place}",
        "Free some space and run the command again. Nothing was lost.",
    ),
    sqlite3.SQLITE_IOERR: Meaning(
        StoreError,
        "the disk failed while {place} was in use",
        "Check the disk, then run `store verify`.",
    ),
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
}
_UNKNOWN = Meaning(
    StoreError,
    "{place} cannot be used",
    "Run `store verify` to see whether it is sound.",
)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite raises in the block into a ``StoreError`` about this file.

    Raises:
        StoreError: SQLite raised.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    """Return what an error of SQLite means for the person whose file it is.

    It reports some damage in bytes of the damage itself, which are then no text; and a full disk as
    one that fails, where there is no room for the memory that its users share.
    """
    damaged = isinstance(error, UnicodeDecodeError)
    code = sqlite3.SQLITE_CORRUPT if damaged else getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_IOERR and _is_full(path.parent):
        code = sqlite3.SQLITE_FULL
    return _MEANINGS.get(code, _UNKNOWN).at(path)
