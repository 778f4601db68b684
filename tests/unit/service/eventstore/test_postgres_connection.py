"""Addresses of databases; one thread probes one that is silent, and every thread is told."""

from __future__ import annotations

from threading import Event

import pytest

from reconciler.service.eventstore import postgres_connection
from reconciler.service.eventstore.errors import StoreUnreachableError, StoreUnusableError
from reconciler.service.eventstore.postgres_connection import (
    Availability,
    checked_address,
    place_of,
)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@db/identity",
        "postgresql://db/identity?password=secret",
        "postgresql://db/identity?sslmode=require&PASSWORD=secret",
        "postgresql://db/identity?sslpassword=secret",
        "postgresql://me:a#secret@db/identity",
        "postgresql://me:a?secret@db/identity",
        "postgresql://me:a@secret@db/identity",
        "postgresql://me:1/secret@db/identity",
        "postgresql://:secret#@db/identity",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    """Whoever lists processes sees addresses."""
    with pytest.raises(StoreUnusableError, match="password") as caught:
        checked_address(address)

    assert "secret" not in caught.value.problem + caught.value.remedy
    assert "PGPASSFILE" in caught.value.remedy


@pytest.mark.parametrize(
    "address", ["postgresql://[db/x", "mysql://db/x", "postgresql://db/x?no=1", "x", "a\0b"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    """Before anybody is called."""
    with pytest.raises(StoreUnusableError):
        checked_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://db:5432/identity?user=me@server",
        "postgresql://me%40server@db:5432,other:5433/a%40b",
        "postgresql://db:5432/a%40b",
    ],
)
def test_a_sign_that_can_end_a_password_may_stand_elsewhere(address: str) -> None:
    assert checked_address(address)


def test_an_address_is_told_without_its_parameters() -> None:
    """They may be long, and are of no help."""
    said = "postgresql://me@db:5432/identity"

    assert place_of(f"{said}?sslmode=require#x") == said


def test_an_address_keeps_what_it_says_and_gets_the_usual_rest() -> None:
    """A lost peer is noticed soon, unless the address says otherwise."""
    complete = checked_address("postgresql://db/identity?connect_timeout=9")

    assert "connect_timeout=9" in complete
    assert "keepalives_idle=5" in complete
    assert "client_encoding=utf8" in complete


AWAY = StoreUnreachableError("x does not answer", "Wait.")


class Database:
    """Answers, or does not, as it is told; counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_connection, "PAUSE_SECONDS", 0.01)
        self.is_away = True
        self.defects: list[Exception] = []
        self.asked = 0
        self.gone = Event()
        self.answered = Event()
        self.availability = Availability("x", self._probe, self.gone.set)

    def _probe(self) -> None:
        self.asked += 1
        if self.defects:
            raise self.defects.pop()
        if self.is_away:
            raise AWAY
        self.answered.set()

    def wait_until_back(self) -> None:
        assert self.answered.wait(5)
        deadline = Event()
        for _ in range(500):
            try:
                self.availability.require()
            except StoreUnreachableError:
                deadline.wait(0.01)
            else:
                return
        self.availability.require()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


def test_it_is_away_until_it_answers_again(database: Database) -> None:
    """Nobody has to call for that: the thread that found it out goes on asking."""
    availability = database.availability
    availability.require()
    availability.request_probe()
    assert database.gone.wait(5)
    with pytest.raises(StoreUnreachableError, match="does not answer"):
        availability.require()
    assert availability.outages == 1

    database.is_away = False
    database.wait_until_back()

    assert availability.outages == 1
    assert database.asked > 1


def test_a_probe_that_is_answered_changes_nothing(database: Database) -> None:
    """A lock explains silence as well; it is not asked again at once."""
    database.is_away = False
    for _ in range(50):
        database.availability.request_probe()
    assert database.answered.wait(5)

    database.availability.require()

    assert database.availability.outages == 0
    assert not database.gone.is_set()
    assert database.asked <= 5


def test_the_end_gives_up_what_waits_for_good(database: Database) -> None:
    """A server that ends waits for no database, whether or not it answers."""
    database.is_away = False
    database.availability.end()
    database.availability.request_probe()

    assert database.gone.is_set()
    with pytest.raises(StoreUnreachableError):
        database.availability.require()
    assert database.asked == 0


def test_a_probe_that_cannot_be_made_says_nothing_of_the_database(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """The machine may be short of files: calls go on, and have limits of their own."""
    tried = Event()

    def fail() -> None:
        tried.set()
        raise OSError("too many open files")

    availability = Availability("x", fail, database.gone.set)
    availability.request_probe()

    assert tried.wait(5)
    availability.require()
    assert not database.gone.is_set()


@pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), ValueError("defect")])
def test_an_outage_that_cannot_be_handled_is_probed_all_the_same(
    database: Database, failure: Exception
) -> None:
    """Otherwise a server would refuse calls until it is started again."""

    def fail() -> None:
        database.gone.set()
        raise failure

    database.availability = Availability("x", database._probe, fail)
    database.availability.request_probe()
    assert database.gone.wait(5)
    database.is_away = False

    database.wait_until_back()

    assert database.availability.outages == 1


def test_a_probe_that_fails_in_an_outage_is_not_the_last(database: Database) -> None:
    """Whatever fails: the outage ends with an answer."""
    database.availability.request_probe()
    assert database.gone.wait(5)
    database.defects = [ValueError("defect"), OSError("too many open files")]
    database.is_away = False

    database.wait_until_back()


def test_a_call_that_is_refused_has_the_database_probed(database: Database) -> None:
    """The thread that probed may have ended."""
    database.availability._mark_away(AWAY)
    database.is_away = False

    with pytest.raises(StoreUnreachableError):
        database.availability.require()

    database.wait_until_back()
