"""Clients that do not give up, and what must hold of what they were answered.

Each asks for one thing after the other over JSON, with an idempotency key where a thing is made,
and asks again until it is answered. So whatever happens to the server, in the end everything that
was asked for is there, once.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from reconciler.service.build import open_sqlite
from reconciler.service.domain.refusal import Code
from reconciler.service.eventstore.rows import StoredEvent
from tests.contract.story import JWT
from tests.faults.catalogue import must
from tests.faults.invariants import check_store
from tests.plain_http import plain_client
from tests.raw_http import request as raw_request
from tests.running import Known, prepare
from tests.served import Served, a_free_port

STORE = "identity.db"
PATIENCE = 60.0
PAUSE = 0.02
MAY_BE_REFUSED = frozenset({Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE})
KINDS = ("action", "app", "idp")


@dataclass
class Wish:
    """One thing that a client asks for.

    Attributes:
        mark: A text that the event of this wish has, and no other.
        key: Its idempotency key; empty for an update.
        answer: What was answered in the end; empty as long as nothing was.
    """

    mark: str
    verb: str
    path: str
    fields: Mapping[str, Any]
    key: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the id of what was made or changed."""
        return next((str(self.answer[name]) for name in ("id", "appId") if name in self.answer), "")


class Line:
    """One client's connection to a server that comes and goes."""

    def __init__(self, served: Served, known: Known) -> None:
        self._client = plain_client(served.address, timeout=10)
        self._bearer = known.tokens["editor"]
        self.refused: Counter[int] = Counter()
        self.wrong: list[str] = []

    def ask(self, wish: Wish) -> Mapping[str, Any] | None:
        """Ask once; return the answer, or None if there was none or it was a refusal."""
        headers = {"authorization": f"Bearer {self._bearer}"}
        if wish.key:
            headers["idempotency-key"] = wish.key
        try:
            got = self._client.request(
                wish.verb, wish.path, json=dict(wish.fields), headers=headers
            )
        except httpx.TransportError:
            return None
        said: dict[str, Any] = got.json()
        if got.status_code == 200:
            return said
        self.refused[said["code"]] += 1
        if said["code"] not in MAY_BE_REFUSED or set(said) != {"code", "message", "details"}:
            self.wrong.append(got.text)
        return None

    def read(self, path: str) -> int:
        """Return the status of a read; 0 if there was no answer."""
        try:
            return self._client.post(
                path, json={}, headers={"authorization": f"Bearer {self._bearer}"}
            ).status_code
        except httpx.TransportError:
            return 0

    def close(self) -> None:
        """Hang up."""
        self._client.close()


class Client(threading.Thread):
    """Asks for one thing after the other until it is told to finish."""

    def __init__(self, number: int, served: Served, known: Known, kinds: Sequence[str]) -> None:
        super().__init__(daemon=True)
        self.line = Line(served, known)
        self.wishes: list[Wish] = []
        self._number = number
        self._known = known
        self._kinds = kinds
        self._idp = ""
        self._over = threading.Event()
        self._at_once = threading.Event()

    def finish(self, *, at_once: bool = False) -> None:
        """Ask for nothing new; ``at_once``: nor again for what was not answered yet."""
        self._over.set()
        if at_once:
            self._at_once.set()

    def run(self) -> None:
        with suppress(TimeoutError):
            while not self._over.is_set():
                self.fulfil(self.next_wish())

    def next_wish(self, kind: str = "") -> Wish:
        """Return the next thing to ask for, of some kind or the one whose turn it is."""
        number = len(self.wishes)
        mark = f"w{self._number}x{number}x"
        kind = kind or self._kinds[number % len(self._kinds)]
        if kind == "idp" and self._idp:
            path = f"/management/v1/idps/{self._idp}/jwt_config"
            return Wish(mark, "PUT", path, {**JWT, "headerName": mark})
        if kind == "idp":
            return Wish(mark, "POST", "/management/v1/idps/jwt", {"name": mark, **JWT}, mark)
        if kind == "app":
            path = f"/management/v1/projects/{self._known.project}/apps/oidc"
            return Wish(mark, "POST", path, {"name": mark}, mark)
        script = f"function {mark}() {{ /* {'x' * (number * 89 % 1500)} */ }}"
        return Wish(mark, "POST", "/management/v1/actions", {"name": mark, "script": script}, mark)

    def fulfil(self, wish: Wish) -> None:
        """Ask until answered.

        Raises:
            TimeoutError: it was not answered, or told to finish at once.
        """
        if wish not in self.wishes:
            self.wishes.append(wish)
        deadline = time.monotonic() + PATIENCE
        while (answer := self.line.ask(wish)) is None:
            if self._at_once.is_set() or time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(PAUSE)
        wish.answer = answer
        self._idp = str(answer.get("idpId", self._idp))


@dataclass
class Load:
    """A server under the load of clients."""

    served: Served
    known: Known
    clients: Sequence[Client]

    @property
    def wishes(self) -> Sequence[Wish]:
        return [wish for client in self.clients for wish in client.wishes]

    @property
    def refused(self) -> Counter[int]:
        """Return how often each code was answered."""
        return sum((client.line.refused for client in self.clients), Counter())

    def finish(self, *, at_once: bool = False) -> None:
        """Let every client finish; each must have been answered everything, unless at once."""
        for client in self.clients:
            client.finish(at_once=at_once)
        for client in self.clients:
            if client.ident:
                client.join(PATIENCE + 20)
            must(not client.line.wrong, "I13", client.line.wrong[:3])
        if not at_once:
            waiting = [wish.mark for wish in self.wishes if not wish.answer]
            must(not waiting, "I10", f"never answered: {waiting}")

    def check_replays(self, dice: random.Random, count: int = 20) -> None:
        """Check that who asks again under the same key is answered the same (I3)."""
        line = Line(self.served, self.known)
        kept = [wish for wish in self.wishes if wish.key and wish.answer]
        for wish in dice.sample(kept, min(count, len(kept))):
            again = line.ask(wish)
            must(again == wish.answer, "I3", f"{wish.mark} is answered otherwise: {again!r}")
        line.close()

    def check(self) -> None:
        """Check that everything answered is there, and nothing twice (I1, I2, I4, I5, I9)."""
        path = self.served.folder / STORE
        check_store(path)
        log = (self.served.folder / "serve.log").read_text(encoding="utf-8")
        must("Traceback" not in log, "I13", log[-3000:])
        check_wishes(self.wishes, path)


def check_wishes(wishes: Sequence[Wish], path: Path) -> None:
    """Check each wish against the log of a SQLite store."""
    with closing(open_sqlite(path, read_only=True)) as service, service.store.snapshot() as view:
        check_answers(wishes, view.read_all(limit=1_000_000))


def check_answers(wishes: Sequence[Wish], events: Sequence[StoredEvent]) -> None:
    """Check each wish: answered, its event is there as it was answered; otherwise at most once."""
    by_mark: dict[str, list[Any]] = {wish.mark: [] for wish in wishes}
    for event in events:
        payload = json.loads(event.payload)
        said = payload.get("name") or payload.get("spec", {}).get("headerName", "")
        if said in by_mark:
            by_mark[said].append(event)
    for wish in wishes:
        found = by_mark[wish.mark]
        must(len(found) <= 1, "I2", f"{wish.mark} is there {len(found)} times")
        if wish.answer:
            must(found, "I1", f"{wish.mark} was acknowledged and is gone")
            sequence = wish.answer["details"]["sequence"]
            must(int(sequence) == found[0].sequence, "I4", f"{wish.mark} is at another sequence")
            must(wish.id in {"", found[0].stream}, "I1", f"{wish.mark} has another id")
            script = wish.fields.get("script", "")
            must(script in json.dumps(json.loads(found[0].payload)), "I1", f"{wish.mark} differs")


@contextmanager
def under_load(
    folder: Path, clients: int = 4, *, kinds: Sequence[str] = KINDS, **more: Any
) -> Iterator[Load]:
    """Run a server with clients at it; ``more`` is for ``Served``. In the end all are gone."""
    known = prepare(folder / STORE)
    served = Served(folder, f"sqlite:{folder / STORE}", a_free_port(), **more)
    with at_work(served, known, clients, kinds) as load:
        yield load


@contextmanager
def at_work(
    served: Served, known: Known, clients: int, kinds: Sequence[str] = KINDS
) -> Iterator[Load]:
    """Start a server and clients at it; in the end all are gone."""
    load = Load(served, known, [Client(n, served, known, kinds) for n in range(clients)])
    try:
        served.start()
        for client in load.clients:
            client.start()
        yield load
    finally:
        for client in load.clients:
            client.finish(at_once=True)
        if served.process is not None and served.process.poll() is None:
            served.process.kill()
            served.process.wait()
        for client in load.clients:
            if client.ident:
                client.join(20)
            client.line.close()


def read_and_hang_up(served: Served, known: Known, wish: Wish, count: int) -> bytes:
    """Ask for a thing, and hang up after so many bytes of the answer."""
    body = json.dumps(wish.fields).encode()
    head = {
        "authorization": f"Bearer {known.tokens['editor']}",
        "content-type": "application/json",
        "idempotency-key": wish.key,
    }
    with socket.create_connection(("127.0.0.1", served.port), PATIENCE) as connection:
        connection.sendall(raw_request(wish.verb, wish.path, head, body))
        return connection.recv(count)


def ended_well(served: Served) -> None:
    """End a server as an operator would, and check that it went."""
    served.stop(signal.SIGTERM)
    assert served.process is not None
    must(served.process.returncode == 0, "I10", served.process.returncode)
