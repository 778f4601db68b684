"""The service has too much to do, stands still, or is gone for a while."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, World, a_server, faults, is_write, undisturbed

ENDS = frozenset({0, 1, 5})
LONG = 0.2
UNTOLD = ("", "0", "-5", "soon", "1", "0.5", "99999999999999999999")
STATUS = {500: b"Internal", 502: b"Gateway", 503: b"Unavailable", 504: b"Timeout", 429: b"Busy"}


class Busy:
    """Answers a share of all requests with a busy status and some form of Retry-After."""

    def __init__(self, dice: random.Random, share: float) -> None:
        self._dice = dice
        self._share = share
        self.count = 0

    def spoil(self, first: bytes, whole: bytes) -> bytes:
        """Return the answer, or another; a write was carried out all the same."""
        if self._dice.random() >= self._share:
            return whole
        self.count += 1
        status = self._dice.choice((502, 503, 504) if is_write(first) else (429, 502, 503, 504))
        if self._dice.random() < 0.02:
            status = 500
        soon = datetime.now(UTC) + timedelta(seconds=1)
        after = self._dice.choice((*UNTOLD[:4], soon.strftime("%a, %d %b %Y %H:%M:%S GMT")))
        if self._dice.random() < 0.02:
            after = self._dice.choice(UNTOLD)
        head = b"HTTP/1.1 %d %s\r\nretry-after: %s\r\ncontent-length: 0\r\n\r\n"
        return head % (status, STATUS[status], after.encode())


def too_much_to_do(dice: random.Random, folder: Path) -> int:
    """Apply while a share of all answers says to come back later."""
    with a_server(dice, folder) as world:
        assert world.proxy
        busy = Busy(dice, dice.uniform(0.1, 0.4))
        usual, world.proxy.spoil = world.proxy.spoil, busy.spoil
        while not busy.count:
            world.tree.edit(6)
            ran = world.run(*APPLY)
            must(ran.code in ENDS, "I10", ran.all)
        world.proxy.spoil = usual
        world.settle()
    return busy.count


def cut_off(world: World) -> None:
    """Cut every connection that is used, for a while."""
    assert world.proxy
    world.proxy.choose = lambda _: "reset before"
    time.sleep(world.dice.uniform(0.1, 3))
    world.proxy.choose = undisturbed


def stand_still(world: World) -> None:
    """Let the server stop in the middle of whatever it does, for a while."""
    assert world.server
    world.server.process.send_signal(signal.SIGSTOP)
    time.sleep(world.dice.uniform(0.1, 3))
    world.server.process.send_signal(signal.SIGCONT)


ABSENCES: tuple[Callable[[World], None], ...] = (cut_off, stand_still)


def gone_for_a_while(dice: random.Random, folder: Path) -> int:
    """Let the service be gone and come back while an apply runs, or not be known at all."""
    with a_server(dice, folder) as world:
        unknown = world.run(*APPLY, RECONCILER_SERVICE="https://nobody.invalid")
        must(unknown.code == 1, "I10", unknown.all)
        absences = dice.randint(1, 3)
        for _ in range(absences):
            world.tree.edit(8)
            world.tree.declare(*["action"] * 60)
            absence = threading.Timer(dice.uniform(0.3, 0.8), dice.choice(ABSENCES), (world,))
            absence.start()
            ran = world.run(*APPLY)
            absence.join()
            must(ran.code in ENDS, "I10", ran.all)
        world.settle()
        return absences + 1 + faults(world.proxy)


def slow(dice: random.Random, folder: Path) -> int:
    """Let the server work a little and stand still a lot, once perhaps for very long."""
    with a_server(dice, folder) as world:
        world.tree.edit(8)
        world.tree.declare(*["action"] * 20)
        over = threading.Event()
        crawling = threading.Thread(target=_crawl, args=(world, over))
        crawling.start()
        try:
            ran = world.run(*APPLY)
        finally:
            over.set()
            crawling.join()
        must(ran.code in ENDS, "I10", ran.all)
        world.settle()
    return 1


def _crawl(world: World, over: threading.Event) -> None:
    """Let the server work for moments only, until the program is done."""
    assert world.server
    long = world.dice.randint(0, 2) if world.dice.random() < LONG else -1
    for turn in count():
        world.server.process.send_signal(signal.SIGSTOP)
        over.wait(world.dice.uniform(*((15, 70) if turn == long else (0.2, 1.5))))
        world.server.process.send_signal(signal.SIGCONT)
        if over.wait(world.dice.uniform(0.01, 0.05)):
            return


ROWS = (
    Row("F4", "the service says to come back later", too_much_to_do, 1),
    Row("F4b", "the service crawls, or is silent for long", slow, 1),
    Row("F12", "the service is gone for a while", gone_for_a_while, 1),
)
