"""Errors of PostgreSQL in words: one table, and the only place that knows its error codes.

Neither its sentences nor SQL reach a message or a log: they may quote what a caller sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from reconciler.service.eventstore.errors import (
    Meaning,
    StoreBusyError,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
    StoreUnusableError,
)
from reconciler.service.eventstore.postgres_connection import (
    REFUSED_CONNECTION,
    OptionsLostError,
    SilentError,
)

_ASK_AGAIN = "Run the command again: what was done is recognised by its idempotency key."

CONFLICT = Meaning(
    StoreConflictError,
    "other writers got in the way at {place}",
    "Run the command again. Nothing was written.",
)
_BUSY = Meaning(
    StoreBusyError,
    "another program kept {place} busy for too long",
    "Wait until it is done, then run the command again.",
)
AWAITS_STANDBY = Meaning(
    StoreBusyError,
    "{place} waits for its synchronous standby",
    "Check the standby and the network to it; or take it out of synchronous_standby_names.",
)
_CROWDED = Meaning(
    StoreBusyError,
    "{place} refuses more connections: all are in use",
    "Wait, or raise max_connections, or run fewer servers.",
)
MAYBE_COMMITTED = Meaning(
    StoreUnreachableError,
    "the connection to {place} was lost during a commit, which may have been carried out",
    _ASK_AGAIN,
)
NOT_ON_STANDBY = Meaning(
    StoreUnreachableError,
    "{place} gave up the wait for its standby: the write is lost if the primary is",
    _ASK_AGAIN,
)
READ_ONLY = Meaning(
    StoreReadOnlyError,
    "{place} can only be read",
    "Name the primary server, or make the database writable.",
)
_UNREACHABLE = Meaning(
    StoreUnreachableError,
    "{place} cannot be reached",
    "Check that it runs, and its host and port; then run the command again.",
)
_SILENT = Meaning(
    StoreUnreachableError,
    "{place} does not answer",
    "Check that it runs and is not overloaded, and the network; then run the command again.",
)
_PLAIN = Meaning(
    StoreUnreachableError,
    "{place} speaks no TLS, which sslmode asks for",
    "Switch on ssl in the database, or correct sslmode in the address or in PGSSLMODE.",
)
_UNTRUSTED = Meaning(
    StoreUnreachableError,
    "the certificate of {place} is not trusted",
    "Check that it is for this host, and name its authority: sslrootcert=FILE in the address.",
)
_SETTINGS = Meaning(
    StoreUnreachableError,
    "the settings of the connection to {place} cannot be used",
    "Check the parameters of the address, and the PG* variables of this environment.",
)
_STARTING = Meaning(
    StoreUnreachableError,
    "{place} is starting up or shutting down",
    "Wait until the database accepts connections, then run the command again.",
)
_REFUSED = Meaning(
    StoreUnusableError,
    "{place} refuses the connection",
    "Check the user, the password and the name of the database; its log says which is wrong.",
)
_NOT_LET_IN = Meaning(
    StoreUnusableError,
    "{place} does not let this user in",
    "Name the user in the address, and give the password in PGPASSWORD or PGPASSFILE.",
)
_DAMAGED = Meaning(
    StoreUnusableError,
    "{place} is damaged",
    "Read the log of the database, and restore a backup with its own tools.",
)
_CHANGED = Meaning(
    StoreUnusableError,
    "the tables at {place} are not as this version made them",
    "Name the store's own database. Nothing was changed.",
)
_SHARED = Meaning(
    StoreUnusableError,
    "a session at {place} is shared with other clients",
    "Set the pooler to session mode; see docs/postgresql.md.",
)
_OPTIONS_LOST = Meaning(
    StoreUnusableError,
    "a pooler before {place} does not pass on the options of the address, such as search_path",
    "Leave them out of the address, and write ALTER ROLE USER SET search_path = SCHEMA.",
)
NO_SCHEMA = Meaning(
    StoreUnusableError,
    "there is no schema at {place} that this user may use",
    "Make the schema that search_path names; if it is there, GRANT USAGE ON SCHEMA to this user.",
)
# By SQLSTATE; one that is not listed goes by its first three, then two characters.
_MEANINGS: dict[str, Meaning] = {
    "08": _UNREACHABLE,
    "08004": _REFUSED,  # the server rejected the connection
    "0A": Meaning(
        StoreUnusableError,
        "{place} lacks something that the store needs",
        "Take PostgreSQL 12 or newer, or a database that says it can do the same.",
    ),
    "22": Meaning(StoreError, "{place} cannot hold what was to be written", "Nothing was written."),
    "23": CONFLICT,
    "25006": READ_ONLY,  # read only, as on a standby
    "25P03": _BUSY,  # idle in a transaction for too long
    "26000": _SHARED,  # a prepared statement is missing
    "28": _NOT_LET_IN,
    "3D": Meaning(
        StoreUnusableError,
        "there is no such database at {place}",
        "Make it with createdb, or name another one.",
    ),
    "3F": NO_SCHEMA,
    "40": CONFLICT,
    "40003": _UNREACHABLE,  # unlike others of its class, it may have been carried out
    "42": _CHANGED,
    "42P05": _SHARED,  # a prepared statement is there already
    "42501": Meaning(
        StoreReadOnlyError,
        "this user may not do that at {place}",
        "Give it the rights that docs/postgresql.md lists.",
    ),
    "53": _BUSY,
    "53100": Meaning(
        StoreFullError,
        "there is no room left at {place}",
        "Free some space and run the command again. Nothing was lost.",
    ),
    "53300": _CROWDED,  # too many connections
    "55P03": _BUSY,  # lock_timeout
    "57014": _BUSY,  # statement_timeout
    "57P": _UNREACHABLE,  # it shuts down, or has crashed
    "57P03": _STARTING,  # it starts up
    "58": Meaning(
        StoreError,
        "the disk failed while {place} was in use",
        "Check the disk, and the log of the database.",
    ),
    "XX001": _DAMAGED,  # data corrupted
    "XX002": _DAMAGED,  # index corrupted
}
_UNKNOWN = Meaning(
    StoreError,
    "{place} cannot be used",
    "Read the log of the database.",
)
# What a database says when it refuses a connection: its code does not get through libpq. These
# words only make the message more exact; in another language they are not found.
_SENTENCES: tuple[tuple[str, Meaning], ...] = (
    ("startup parameter", _OPTIONS_LOST),
    ("too many clients", _CROWDED),
    ("remaining connection slots", _CROWDED),
    ("too many connections", _CROWDED),
    ("password", _NOT_LET_IN),
    ("authentication", _NOT_LET_IN),
    ("pg_hba.conf", _NOT_LET_IN),
    ("role ", _NOT_LET_IN),
    ("database ", _MEANINGS["3D"]),
)
# What libpq itself says where it comes to no connection; such errors never have a code.
_SENTENCES_OF_LIBPQ: tuple[tuple[str, Meaning], ...] = (
    ("does not support ssl", _PLAIN),
    ("root certificate", _UNTRUSTED),
    ("certificate verify failed", _UNTRUSTED),
    ("does not match host name", _UNTRUSTED),
    ("private key file", _SETTINGS),
    ("certificate file", _SETTINGS),
    (' value: "', _SETTINGS),
    ("for connection option", _SETTINGS),
    ("definition of service", _SETTINGS),
    ("service file", _SETTINGS),
)


_BECAUSE = (psycopg.errors.InFailedSqlTransaction, psycopg.errors.PipelineAborted)


@contextmanager
def store_errors(place: str) -> Iterator[None]:
    """Turn what PostgreSQL raises in the block into a ``StoreError`` about this place.

    Raises:
        StoreError: PostgreSQL raised.
    """
    try:
        yield
    except psycopg.Error as error:
        raise store_error(place, error) from error


def store_error(place: str, error: psycopg.Error) -> StoreError:
    """Return what an error of PostgreSQL means for the person whose database it is."""
    return _meaning(first_cause(error)).at(place)


def first_cause(error: psycopg.Error) -> psycopg.Error:
    """Return what went wrong first, where statements were sent together.

    Those after it fail because of it, and it may be their error that is raised.
    """
    cause: BaseException | None = error
    while isinstance(cause, _BECAUSE):
        cause = cause.__context__
    return cause if isinstance(cause, psycopg.Error) else error


def _meaning(error: psycopg.Error) -> Meaning:
    if isinstance(error, (SilentError, psycopg.errors.ConnectionTimeout)):
        return _SILENT
    if isinstance(error, OptionsLostError):
        return _OPTIONS_LOST
    code = error.sqlstate or ""
    if code == REFUSED_CONNECTION:
        return _by_words(error, _SENTENCES, _REFUSED)
    # The first two characters are the class of a code. For instance, 40P01 (a deadlock) is not
    # listed; 40P is not either, and 40 is: a conflict.
    for known in (code, code[:3], code[:2]):
        if known in _MEANINGS:
            return _MEANINGS[known]
    if not code and isinstance(error, psycopg.OperationalError):
        return _by_words(error, _SENTENCES_OF_LIBPQ, _UNREACHABLE)
    return _UNKNOWN


def _by_words(
    error: psycopg.Error, sentences: Sequence[tuple[str, Meaning]], otherwise: Meaning
) -> Meaning:
    said = str(error).casefold()
    return next((told for words, told in sentences if words in said), otherwise)
