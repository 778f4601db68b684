"""One connection to PostgreSQL: its address, and waits that end.

The database ends statements that take too long, but only a database that is alive can do that. Its
machine may be paused, or a network may swallow what is sent; the threads that wait notice only that
nothing comes, which a lock explains as well. So every wait has a limit here, too: it ends when
nothing came for longer than any statement may take. And after a quiet second one thread probes the
database on a connection of its own. Without an answer the database counts as away: what waits for
it is given up, and what comes is refused at once, until a later probe is answered.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from time import monotonic
from typing import TypeVar
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import CannotConnectNow
from psycopg.errors import SqlserverRejectedEstablishmentOfSqlconnection as Refused
from psycopg.pq import PGconn, Ping
from psycopg.rows import TupleRow
from psycopg.types.numeric import Int8Dumper
from psycopg.waiting import Ready, Wait, wait

from reconciler.service.eventstore.errors import StoreUnreachableError, StoreUnusableError

LOG = logging.getLogger("reconciler.store")
LOG.addHandler(logging.NullHandler())  # a command tells the failure itself

SCHEMES = ("postgresql", "postgres")
SECRETS = frozenset({"password", "sslpassword"})  # parameters of an address
# Written without escapes, what comes before the slash is a port to libpq, and the rest a database.
_PASSWORD_WITH_SLASH = re.compile(r"[a-z]+://[^/?#@:]*:[^/?#@]*/[^?#]*@")
# What an address may say otherwise. A lost peer is noticed after some 15 seconds.
USUAL: Mapping[str, str | int] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "fallback_application_name": "reconciler",
}
PAUSE_SECONDS = 1.0  # between two probes of a database that is away
INTERVAL_SECONDS = 0.1  # between two looks at whether the wait is still worth it
QUIET_SECONDS = 1.0  # without a byte; then the database is asked whether it answers at all
PING_SECONDS = 2  # the least that libpq takes
SILENT_SECONDS = 40.0  # without a byte; longer than statement_timeout, which comes first

# A paused server must not keep an organization to itself; and nothing is acknowledged that a
# power cut would undo, whatever the database's own default.
SETTINGS = (
    ("statement_timeout", "30s"),
    ("lock_timeout", "10s"),
    ("idle_in_transaction_session_timeout", "30s"),
)
SET = "SELECT set_config(%s, %s, false)"
# Not every database that speaks the protocol has these.
SETTINGS_IF_KNOWN = (
    # So that the database, too, soon notices a peer that is gone and ends what it began.
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "3"),
    ("tcp_keepalives_count", "3"),
    # A page is read in the order of its index. While its statistics are older than most rows of a
    # table, PostgreSQL would read and sort a whole organization instead. What must be sorted still
    # is; its estimated cost is then so high that it would be compiled.
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
    ("jit", "off"),
    # Statements that are run often are prepared, which saves half of the time of a short one.
    # Without this they would keep the plan that was best when their tables were small.
    ("plan_cache_mode", "force_custom_plan"),
)
# Not from pg_settings, whose every look lists all settings: three took a database 4 ms.
SET_KNOWN = (
    "SELECT set_config(%(name)s, %(value)s, false)"
    " WHERE current_setting(%(name)s, true) IS NOT NULL"
)
SET_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)

SEARCH_PATH = "SELECT current_setting('search_path')"
# As libpq reads it: options are separated by blanks, and a backslash takes the next sign as it is.
_SEARCH_PATH_ASKED = re.compile(
    r"(?:^|\s)(?:-c\s*|--)search[_-]path=((?:\\.|[^\s\\])*)", re.IGNORECASE | re.DOTALL
)

REFUSED_CONNECTION = Refused.sqlstate  # with an error code that libpq does not expose

Connection = psycopg.Connection[TupleRow]

R = TypeVar("R")


def connect(conninfo: str) -> BoundedConnection:
    """Return a connection, each statement on which is a transaction of its own.

    Raises:
        psycopg.errors.ConnectionTimeout: nothing came within ``connect_timeout``.
        psycopg.errors.CannotConnectNow: the database starts up or shuts down.
        Refused: the database answered, and refused this connection.
        psycopg.OperationalError: there is no database.
    """
    try:
        return BoundedConnection.connect(conninfo, autocommit=True)
    except psycopg.errors.ConnectionTimeout:
        raise
    except psycopg.OperationalError as error:
        raise _coded(conninfo, error) from error


def configure(connection: Connection) -> None:
    """Prepare a new connection: what must hold whatever the database's own defaults are.

    Raises:
        OptionsLostError: the session does not have the search path that the address asks for.
    """
    connection.adapters.register_dumper(int, Int8Dumper)
    with connection.pipeline():
        for setting in SETTINGS:
            connection.execute(SET, setting)
        for name, value in SETTINGS_IF_KNOWN:
            connection.execute(SET_KNOWN, {"name": name, "value": value})
        connection.execute(SET_DURABLE)
    _check_search_path(connection)


def _check_search_path(connection: Connection) -> None:
    """Check that the session looks where the address says: elsewhere is another store, perhaps.

    A pooler may be told to drop the options of a connection, which it does without a word.
    """
    asked = _SEARCH_PATH_ASKED.findall(connection.info.options)
    if not asked:
        return
    held = connection.execute(SEARCH_PATH).fetchone() or ("",)
    if _schemas(re.sub(r"\\(.)", r"\1", asked[-1])) != _schemas(str(held[0])):
        raise OptionsLostError("the session has another search_path than its options say")


def _schemas(search_path: str) -> list[str]:
    return [name.strip().strip('"') for name in search_path.split(",")]


class OptionsLostError(psycopg.OperationalError):
    """The session does not have what the options of its connection ask for."""


def _coded(conninfo: str, error: psycopg.OperationalError) -> psycopg.OperationalError:
    """Return a failure to connect with the code of its kind, as far as that can be known.

    libpq hands out no SQLSTATE before there is a connection, only sentences in the language of
    the database. Its ping knows the code, and tells three cases apart by it.
    """
    failed = error.pgconn
    if error.sqlstate or failed is None or not (failed.hostaddr or failed.host.startswith(b"/")):
        return error
    # The address is known: a ping must not wait for a name service, nor for a second host.
    known = {"host": failed.host.decode(), "hostaddr": failed.hostaddr.decode() or None}
    there = make_conninfo(
        conninfo, **known, port=failed.port.decode(), connect_timeout=PING_SECONDS
    )
    kinds = {Ping.REJECT: CannotConnectNow, Ping.OK: Refused}
    kind = kinds.get(Ping(PGconn.ping(there.encode())))
    return kind(str(error)) if kind else error


class SilentError(psycopg.OperationalError):
    """Nothing came from the database for too long, or it is known to be away."""


class BoundedConnection(Connection):
    """A connection whose waits end. One that was given up is closed.

    Attributes:
        availability: What is known of the database; None while the connection is being set up.
        outages: How often the database had gone away when the connection was made.
    """

    availability: Availability | None = None
    outages = 0

    def wait(
        self, gen: PQGen[R], interval: float = INTERVAL_SECONDS, timeout: float | None = None
    ) -> R:
        """Carry out an exchange with the database.

        Raises:
            SilentError: it is not worth the wait any more; the connection is closed.
        """
        try:
            # A statement of a pipeline asks twice whether it can be written. It nearly always can,
            # and what is left is written with what is waited for. To ask would let go of the
            # interpreter, which a busy thread then keeps for a millisecond.
            state = next(gen)
            for _ in range(2):
                if state != Wait.RW:
                    break
                state = gen.send(Ready.W)
            limit = () if timeout is None else (timeout,)
            return wait(self._bounded(gen, state), self.pgconn.socket, interval, *limit)
        except StopIteration as end:
            result: R = end.value
            return result
        except KeyboardInterrupt:
            # psycopg would ask the database to cancel, which may be silent. It ends the
            # statement by itself once the connection is gone, or its time is up.
            self.close()
            raise

    def _bounded(self, gen: PQGen[R], state: Wait) -> PQGen[R]:
        """Pass an exchange on; look up each time that nothing came for an interval."""
        heard = monotonic()
        try:
            while True:
                ready = yield state
                if ready:
                    heard = monotonic()
                else:
                    self._look(monotonic() - heard)
                state = gen.send(ready)
        except StopIteration as end:
            result: R = end.value
            return result

    def _look(self, quiet: float) -> None:
        if self.availability is None:
            return
        if self.outages != self.availability.outages or quiet > SILENT_SECONDS:
            self.close()
            raise SilentError("the database is silent")
        if quiet > QUIET_SECONDS:
            self.availability.request_probe()


class Availability:
    """The last known state of a database: answering, or away. It is thread-safe.

    Attributes:
        outages: How often the database went away. A connection from before the last outage is
            not used any more: what was sent on it may never arrive.
    """

    def __init__(
        self, place: str, probe: Callable[[], None], on_outage: Callable[[], None]
    ) -> None:
        """Watch a database.

        ``probe`` connects to it, and raises ``StoreUnreachableError`` where there is no answer;
        it must have a time limit. ``on_outage`` is called each time the database goes away.
        """
        self.outages = 0
        self._place = place
        self._probe = probe
        self._on_outage = on_outage
        self._failure: StoreUnreachableError | None = None
        self._lock = Lock()
        self._is_probing = False
        self._next = 0.0  # before that moment it is not probed again
        self._ended = Event()

    def require(self) -> None:
        """Return if the database is not known to be away; otherwise have it probed again.

        Raises:
            StoreUnreachableError: it is away; nothing was sent to it.
        """
        failure = self._failure
        if failure is not None:
            self.request_probe()  # so that an outage ends also where the thread that probed did
            raise type(failure)(failure.problem, failure.remedy)

    def request_probe(self) -> None:
        """Have the database probed in the background, unless it was within the last second."""
        with self._lock:
            if self._is_probing or monotonic() < self._next or self._ended.is_set():
                return
            self._is_probing = True
        try:
            Thread(target=self._probe_until_answered, name="database-probe", daemon=True).start()
        except (RuntimeError, MemoryError):  # no thread: the time limits of statements remain
            self._is_probing = False

    def end(self) -> None:
        """Give up what waits for the database, for good."""
        self._ended.set()
        problem = f"{self._place} is not waited for any more: the server ends"
        self._mark_away(StoreUnreachableError(problem, "Ask again."))

    def _probe_until_answered(self) -> None:
        """Probe the database until it answers."""
        try:
            while not self._ended.is_set() and not self._answers():
                self._ended.wait(PAUSE_SECONDS)
        finally:
            self._next = monotonic() + PAUSE_SECONDS
            self._is_probing = False

    def _answers(self) -> bool:
        """Probe once, and keep what is found. Nothing is raised, so that probing goes on."""
        try:
            self._probe()
        except StoreUnreachableError as failure:
            if self._failure is None:
                LOG.warning("%s; it is asked again every second", failure.problem)
                self._mark_away(failure)
            return False
        except (OSError, MemoryError, RuntimeError) as failure:
            # This machine fails, which says nothing of the database.
            LOG.warning("%s cannot be probed: %r", self._place, failure)
            return self._failure is None
        except Exception:  # a defect of ours must not keep the database away
            LOG.exception("%s cannot be probed", self._place)
            return self._failure is None
        with self._lock:
            was_away = self._failure is not None and not self._ended.is_set()
            if was_away:
                self._failure = None
        if was_away:
            LOG.warning("%s answers again", self._place)
        return True

    def _mark_away(self, failure: StoreUnreachableError) -> None:
        with self._lock:
            self._failure = failure
            self.outages += 1
        try:
            self._on_outage()
        except Exception:  # the database is away all the same
            LOG.exception("the outage of %s was not handled", self._place)


def checked_address(address: str) -> str:
    """Return an address with everything that it leaves open.

    Raises:
        StoreUnusableError: it holds a password, or is not the address of a database.
    """
    not_an_address = StoreUnusableError(
        "this is not the address of a PostgreSQL database",
        "Write postgresql://USER@HOST:PORT/DATABASE.",
    )
    try:
        parts = urlsplit(address)
        said = {name.casefold() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        has_password = (
            parts.password is not None
            or bool(said & SECRETS)
            or _PASSWORD_WITH_SLASH.match(address) is not None
        )
        # Not every sign that ends the host for ``urlsplit`` ends the password for libpq.
        known = {} if has_password else conninfo_to_dict(address)
    except (ValueError, psycopg.ProgrammingError):
        raise not_an_address from None
    if has_password or not SECRETS.isdisjoint(known):
        raise StoreUnusableError(
            "the address of the database holds a password",
            "Leave it out, and put it into a password file (PGPASSFILE) or into PGPASSWORD:"
            " every user of the machine can see addresses, and they are logged.",
        )
    if parts.scheme not in SCHEMES or "\0" in address:
        raise not_an_address
    usual = {name: value for name, value in USUAL.items() if name not in known}
    return make_conninfo(address, **usual, client_encoding="utf8")


def place_of(address: str) -> str:
    """Return an address as messages show it: without its parameters."""
    return address.partition("?")[0].partition("#")[0]
