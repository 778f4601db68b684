"""Whether a database answers is asked by one thread, and told to all."""

from __future__ import annotations

from threading import Event

import pytest

from reconciler.service.eventstore import postgres_pulse
from reconciler.service.eventstore.errors import StoreUnreachableError
from reconciler.service.eventstore.postgres_pulse import Pulse

AWAY = StoreUnreachableError("x does not answer", "Wait.")


class Database:
    """Answers, or does not, as it is told; counts how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgres_pulse, "PAUSE_SECONDS", 0.01)
        self.is_away = True
        self.asked = 0
        self.lost = Event()
        self.answered = Event()
        self.pulse = Pulse("x", self._ask, self.lost.set)

    def _ask(self) -> None:
        self.asked += 1
        if self.is_away:
            raise AWAY
        self.answered.set()

    def wait_until_back(self) -> None:
        assert self.answered.wait(5)
        deadline = Event()
        for _ in range(500):
            try:
                self.pulse.check()
            except StoreUnreachableError:
                deadline.wait(0.01)
            else:
                return
        self.pulse.check()


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Database:
    return Database(monkeypatch)


def test_it_is_away_until_it_answers_again(database: Database) -> None:
    """Nobody has to call for that: the thread that found it out goes on asking."""
    pulse = database.pulse
    pulse.check()
    pulse.doubt()
    assert database.lost.wait(5)
    with pytest.raises(StoreUnreachableError, match="does not answer"):
        pulse.check()
    assert pulse.losses == 1

    database.is_away = False
    database.wait_until_back()

    assert pulse.losses == 1
    assert database.asked > 1


def test_doubt_without_a_loss_changes_nothing(database: Database) -> None:
    """A lock explains silence as well; it is not asked again at once."""
    database.is_away = False
    for _ in range(50):
        database.pulse.doubt()
    assert database.answered.wait(5)

    database.pulse.check()

    assert database.pulse.losses == 0
    assert not database.lost.is_set()
    assert database.asked <= 5


def test_the_end_gives_up_what_waits_for_good(database: Database) -> None:
    """A server that ends waits for no database, whether or not it answers."""
    database.is_away = False
    database.pulse.end()
    database.pulse.doubt()

    assert database.lost.is_set()
    with pytest.raises(StoreUnreachableError):
        database.pulse.check()
    assert database.asked == 0
