"""A server that is attacked while honest callers call: what it held, whom it refused, how soon.

Honest callers first call in quiet, then beside the attack, then on. What must hold of an outcome
is said here once, for the quick tests, the soak and the bench.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from tests.faults.attacks import Combination, Done, Order
from tests.faults.honest import Call, Called
from tests.faults.workers import Worker
from tests.running import Server

EVERY = 0.01  # seconds between two looks at the memory of the server
GIVEN_BACK = 20 << 20  # bytes more than in quiet that are no growth
GIVEN_BACK_WITHIN = 60.0
SLICE = 0.5  # seconds whose calls are judged together after the attack
NORMAL = 2.0  # times what a call takes in quiet, and
SLACK = 0.005  # seconds
# The aim is ten times what a call takes in quiet, which the bench measures. A test has a bound for
# servers that stand still: no busy machine makes half of all calls so slow.
TIMES, AT_LEAST = 50.0, 2.0


class Times(NamedTuple):
    """How long it is quiet, attacked, and called afterwards; in seconds."""

    quiet: float
    attacked: float
    after: float


QUICK = Times(0.6, 1.5, 0.4)
LONG = Times(2.0, 5.0, 3.0)


@dataclass
class Held:
    """Memory of a server, in bytes.

    Attributes:
        back: Seconds from the end of the attack until the memory was given back; infinite if it
            was not.
    """

    most: int
    quiet: int = 0
    peak: int = 0
    after: int = 0
    back: float = math.inf


@dataclass
class Outcome:
    """What an attack came to."""

    combination: Combination
    done: Done
    held: Held
    began: float
    ended: float
    calls: Sequence[Call] = field(repr=False)

    def callers(self) -> list[str]:
        """Return the names of the honest callers."""
        return sorted({call.caller for call in self.calls})

    def refused(self) -> list[str]:
        """Return how calls were refused, with when, in seconds from the start of the attack."""
        return [
            f"{call.caller} at {call.began - self.began:.2f} s: {call.refused}"
            for call in self.calls
            if call.refused
        ]

    def in_quiet(self, caller: str) -> float:
        """Return the median that a caller's calls took before the attack, in seconds."""
        return self._median(caller, -math.inf, self.began)

    def beside_it(self, caller: str) -> float:
        """Return the median that a caller's calls took which began while it was attacked."""
        return self._median(caller, self.began, self.ended)

    def slowed(self, caller: str) -> float:
        """Return how many times as long a caller's calls took beside the attack."""
        return self.beside_it(caller) / self.in_quiet(caller)

    def normal_after(self) -> float:
        """Return the seconds from the end of the attack until no caller's calls were slow."""
        return max(self._slow_for(caller) for caller in self.callers())

    def _slow_for(self, caller: str) -> float:
        """Return how long half of the answers in each slice were late, or there was none."""
        usual = self.in_quiet(caller) * NORMAL + SLACK
        slices: dict[int, list[float]] = {}
        for call in self.calls:
            late = call.began + call.took - self.ended
            if call.caller == caller and late > 0 and not call.refused:
                slices.setdefault(int(late / SLICE), []).append(call.took)
        for number in range(max(slices, default=0) + 1):
            if number in slices and statistics.median(slices[number]) <= usual:
                return number * SLICE
        return math.inf

    def _median(self, caller: str, start: float, end: float) -> float:
        took = [
            call.took
            for call in self.calls
            if call.caller == caller and start <= call.began < end and not call.refused
        ]
        return statistics.median(took) if took else math.inf

    def findings(self) -> Iterator[tuple[str, str]]:
        """Yield what must hold and did not: an invariant, and a sentence."""
        held, refused = self.held, self.refused()
        if held.peak > held.most:
            yield "I14", f"held {_mib(held.peak)} of at most {_mib(held.most)}"
        if held.back > GIVEN_BACK_WITHIN:
            yield "I14", f"still holds {_mib(held.after)}, {_mib(held.quiet)} in quiet"
        if refused:
            yield "I13", f"{len(refused)} of {len(self.calls)} calls refused: {refused[:3]}"
        for caller in self.callers():
            allowed = max(self.in_quiet(caller) * TIMES, AT_LEAST)
            if self.beside_it(caller) > allowed:
                found = f"{self.beside_it(caller):.3f} of at most {allowed:.3f} s"
                yield "I13", f"{caller}: half of the calls took more than {found}"
            if not any(call.began >= self.ended for call in self.calls if call.caller == caller):
                yield "I13", f"{caller}: no call after the attack"

    def __str__(self) -> str:
        held = self.held
        times = ", ".join(
            f"{caller} {1000 * self.in_quiet(caller):.1f} to {1000 * self.beside_it(caller):.1f} ms"
            for caller in self.callers()
        )
        return (
            f"{self.combination}: {self.done.sent >> 20} MB on {self.done.opened} connections, "
            f"{self.done.ended} ended; memory {_mib(held.quiet)}, at most {_mib(held.peak)}, "
            f"back after {held.back:.1f} s; {len(self.refused())} refused; "
            f"normal after {self.normal_after():.2f} s; p50 {times}"
        )


def _mib(count: int) -> str:
    return f"{count >> 20} MiB"


class Field:
    """The processes of attackers and of honest callers, and what they do to a server."""

    def __init__(self, attackers: Worker, honest: Worker) -> None:
        self._attackers = attackers
        self._honest = honest

    def run(self, server: Server, combination: Combination, times: Times) -> Outcome:
        """Attack a server in one way while honest callers call it."""
        order = Order(
            attack=combination.attack,
            strength=combination.strength,
            seconds=times.attacked,
            port=server.port,
            is_tls=combination.is_tls,
            token=server.token("stranger"),
        )
        called = Called(server.port, combination.is_tls, server.token("editor"))
        held = Held(server.most_memory())
        self._honest.tell(asdict(called))
        self._honest.answer()  # what the first calls take is no growth, however slow the machine
        time.sleep(times.quiet)
        held.quiet = server.memory()
        began = time.monotonic()
        self._attackers.tell(asdict(order))
        while not self._attackers.has_answered(EVERY):
            held.peak = max(held.peak, server.memory())
        done, ended = Done(**self._attackers.answer()), time.monotonic()
        _watch(server, held, ended, times.after)
        self._honest.tell("end")
        calls = [Call(*call) for call in self._honest.answer()]
        while math.isinf(held.back) and time.monotonic() < ended + GIVEN_BACK_WITHIN:
            _watch(server, held, ended, time.monotonic() - ended + EVERY)
        return Outcome(combination, done, held, began, ended, calls)


def _watch(server: Server, held: Held, ended: float, until: float) -> None:
    """Look at the memory until so many seconds after the end of the attack."""
    while (late := time.monotonic() - ended) < until:
        held.after = server.memory()
        held.peak = max(held.peak, held.after)
        if held.after <= held.quiet + GIVEN_BACK:
            held.back = min(held.back, late)
        time.sleep(EVERY)


@contextmanager
def a_field() -> Iterator[Field]:
    """Start the processes of attackers and of honest callers."""
    with Worker("tests.faults.attacks") as attackers, Worker("tests.faults.honest") as honest:
        yield Field(attackers, honest)
