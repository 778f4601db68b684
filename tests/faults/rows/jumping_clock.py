"""The clock of the service jumps, under everything that goes by it."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from reconciler.cli.embedded import InProcessWire
from reconciler.errors import ReconcilerError
from reconciler.resources.ref import Kind
from reconciler.service.build import IdentityService
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import TokenRow
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.eventstore.sqlite_files import create
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import make_token
from reconciler.service.operations.custody import KEPT
from reconciler.service.operations.dispatch import Incoming
from reconciler.service_client.client import RemoteService, client_of
from reconciler.service_client.locks import this_process
from tests.builders import a_ref, an_action, an_application, declared, desired
from tests.examples import NOON, Clock
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_events, check_store
from tests.http_clients import apply_with, plan_with
from tests.memory_store import MemoryEventStore, new_key
from tests.unit.service.asking import Asking

HOUR = 3600 * MICROSECONDS
YEAR_2038 = (1 << 31) * MICROSECONDS
LEASE_SECONDS = 60
JUMPS: tuple[Callable[[int], int], ...] = (
    lambda true: true - HOUR,
    lambda true: true - 25 * HOUR,
    lambda true: true - 1,
    lambda true: true + LEASE_SECONDS * MICROSECONDS,
    lambda true: true + 24 * HOUR,
    lambda true: max(true, YEAR_2038),
)  # fmt: skip


class JumpingClock(Clock):
    """A clock that jumps away from the true time, and back to it.

    Attributes:
        jumps: How often it did so far.
    """

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self._dice = dice
        self._lock = threading.Lock()
        self._ways: list[Callable[[int], int]] = [
            *dice.sample(JUMPS, dice.randint(1, 3)),
            lambda true: true,
        ]
        self._share = dice.uniform(0.005, 0.1)
        self._away = 0
        self._shown = [NOON]
        self.jumps = 0

    def __call__(self) -> int:
        """Show a time."""
        with self._lock:
            self.time += self._dice.choice((0, 1, 1000, MICROSECONDS))
            if self._dice.random() < self._share:
                self._away = self._dice.choice(self._ways)(self.time) - self.time
                self.jumps += 1
            self._shown.append(self.time + self._away)
            return self._shown[-1]

    def wait(self, seconds: int) -> None:
        """Let time go by."""
        with self._lock:
            self.time += seconds * MICROSECONDS

    def mark(self) -> int:
        """Return where what is shown from now on begins."""
        return len(self._shown)

    def since(self, mark: int) -> tuple[int, int]:
        """Return the least and the most that was shown since."""
        shown = self._shown[mark:]
        return min(shown), max(shown)

    def settle(self) -> None:
        """Jump no more, and stay ahead of all that was shown."""
        with self._lock:
            self._share = 0.0
            self._away = max(self._shown) + HOUR - self.time


def everything_goes_by_a_jumping_clock(dice: random.Random, folder: Path) -> int:
    """Create, lease, sign in and apply at once; then apply in peace."""
    clock = JumpingClock(dice)
    store = folder / "identity.db" if dice.random() < 0.5 else None
    with closing(_service(store, clock)) as service:
        asked = [_furnished(service, clock, name) for name in ("keyed", "leased", "acme")]
        works = (creates_with_keys, leases, tokens, applies)
        with ThreadPoolExecutor(len(works)) as pool:
            done = [
                pool.submit(work, ask, random.Random(dice.random()), folder)
                for work, ask in zip(works, [*asked[:2], asked[0], asked[2]], strict=True)
            ]
        for each in done:
            each.result()
        clock.settle()
        applies(asked[2], dice, folder, in_peace=True)
        _check_sequences(service)
        check_events(service.store)
    if store:
        check_store(store)
    return clock.jumps


def _service(path: Path | None, clock: JumpingClock) -> IdentityService:
    """Return a service whose wall clock jumps; no process can set the clock since boot."""
    store: EventStore = MemoryEventStore(clock)
    if path:
        create(path)
        store = SqliteEventStore(path, clock)
    return IdentityService(store, new_key(), clock, steady=lambda: clock.time)


def _furnished(service: IdentityService, clock: JumpingClock, name: str) -> Asking:
    ask = Asking(service, clock)
    ask.organization = ask("AddOrg", name=name)["id"]
    ask.project = ask("AddProject", organization=ask.organization, name="shop")["id"]
    return ask


def _clock(ask: Asking) -> JumpingClock:
    assert isinstance(ask.clock, JumpingClock)
    return ask.clock


def _answer(ask: Asking, operation: str, **fields: Any) -> dict[str, Any] | Refusal:
    try:
        return ask(operation, **fields)
    except Refusal as refusal:
        return refusal


def creates_with_keys(ask: Asking, dice: random.Random, folder: Path) -> None:
    """Create under keys, and again: within the time of a key it is the same answer."""
    del folder
    clock, last = _clock(ask), 0
    made: list[tuple[dict[str, Any], Any, int, int]] = []
    for number in range(60):
        fields = {"projectId": ask.project, "name": f"app{number}",
                  "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
                  "idempotency_key": f"key{number}"}  # fmt: skip
        mark = clock.mark()
        first = _answer(ask, "AddOIDCApp", **fields)
        must(isinstance(first, dict), "I1", first)
        made.append((fields, first, mark, clock.since(mark)[0]))
        sequence = int(made[-1][1]["details"]["sequence"])
        must(sequence > last, "I5", f"{sequence} after {last}")
        last = sequence
        for fields, wanted, begun, least in dice.choices(made, k=3):
            again = _answer(ask, "AddOIDCApp", **fields)
            told = clock.since(begun)[1] < least + KEPT or isinstance(again, dict)
            must(not told or again == wanted, "I2", f"{again} and not {wanted}")


def leases(ask: Asking, dice: random.Random, folder: Path) -> None:
    """Take a lease in turns: it lasts its time, whatever the wall clock shows."""
    del folder
    clock, fence = _clock(ask), 0
    named = {"named": "leased", "seconds": LEASE_SECONDS}
    for number in range(60):
        began = clock.time
        held = _answer(ask, "AcquireLease", holder=f"holder{number}", **named)
        if isinstance(held, Refusal):
            clock.wait(LEASE_SECONDS)
            continue
        must(int(held["fence"]) > fence, "I6", held)
        fence = int(held["fence"])
        least, most = (end + LEASE_SECONDS * MICROSECONDS for end in (began, clock.time))
        clock.wait(dice.choice((0, LEASE_SECONDS * 2 // 3, LEASE_SECONDS)))
        other = _answer(ask, "AcquireLease", holder="other", **named)
        must(clock.time >= least or isinstance(other, Refusal), "I6", other)
        if isinstance(other, dict):
            fence = int(other["fence"])
        renewal = clock.time
        renewed = _answer(ask, "RenewLease", lease=held["lease"], **named)
        must(isinstance(renewed, dict) or clock.time >= least, "I6", renewed)
        is_over = isinstance(other, dict) or renewal >= most
        must(not is_over or isinstance(renewed, Refusal), "I6", renewed)
        if dice.random() < 0.5:
            _answer(ask, "ReleaseLease", named="leased", lease=held["lease"])


def tokens(ask: Asking, dice: random.Random, folder: Path) -> None:
    """Sign in with tokens that expire: what the clock shows decides, and nothing remembered."""
    del folder
    clock, store = _clock(ask), ask.service.store
    made: list[tuple[int, str]] = []
    for number in range(40):
        now = clock()
        expires_at = now + dice.choice((MICROSECONDS, 60 * MICROSECONDS, HOUR, 48 * HOUR))
        row = TokenRow(f"token{number}", "admin", "", b"", now, expires_at, 0)
        token = make_token(store, row, os.urandom)
        assert token
        made.append((expires_at, token.reveal()))
        for ends, text in dice.choices(made, k=4):
            mark = clock.mark()
            call = Incoming("ListOrgs", {}, {"authorization": [f"Bearer {text}"]})
            (received,) = ask.service.dispatcher.receive([call])
            least, most = clock.since(mark)
            is_in = isinstance(received.answer, dict)
            must(is_in or most >= ends, "I12", f"{received.answer} before {ends}")
            must(not is_in or least < ends, "I12", f"a token is valid at {least}, after {ends}")


def applies(ask: Asking, dice: random.Random, folder: Path, *, in_peace: bool = False) -> None:
    """Apply over and over; in peace there is nothing left to do afterwards."""
    wire = InProcessWire(ask.service)
    client = client_of(RemoteService(wire, this_process(), "reconciler", "here", folder))
    for _ in range(1 if in_peace else 4):
        state = desired(
            *(
                declared(a_ref(name=f"app{number}"), an_application(devMode=dice.random() < 0.5))
                for number in range(6)
            ),
            *(
                declared(
                    a_ref(Kind.ACTION, f"action{number}"),
                    an_action(timeout=f"{dice.randint(1, 9)}s"),
                )
                for number in range(6)
            ),
        )
        try:
            with suppress(*(() if in_peace else (ReconcilerError,))):
                client.acquire(["acme"])
                report = apply_with(client, state, folder)
                must(not in_peace or report.remaining == 0, "I7", report)
        finally:
            client.release()
    must(not in_peace or not plan_with(client, state).changes, "I7", "the plan is not empty")


def _check_sequences(service: IdentityService) -> None:
    """Check that sequences grow in every organization."""
    by_owner: dict[str, list[int]] = {}
    with service.store.snapshot() as view:
        for event in view.read_all(limit=1_000_000):
            by_owner.setdefault(event.organization, []).append(event.sequence)
    for owner, sequences in by_owner.items():
        must(all(a < b for a, b in pairwise(sequences)), "I5", f"{owner} {sequences}")


ROWS = (Row("F10", "the clock jumps", everything_goes_by_a_jumping_clock, 4),)
