"""Measures the service: what it answers a second, against an empty route of the same server."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from bench.aims import Aim
from bench.load import ID, NUMBER, Burst
from bench.measure import section
from bench.served import SQLITE, STORES, Store, served
from reconciler.service.operations.table import operations
from reconciler.service.transport.protobuf import METHODS
from tests import http2, wires
from tests.running import Known

ROOT = Path(__file__).parents[1]
HEALTH = "/grpc.health.v1.Health/Check"
EMPTY = "empty route"
OPENING = "GetAction"
HELD = 500
PAGE = 100
LIST_ACTIONS, LIST_OBJECTS = f"ListActions, {PAGE}", f"ListObjects, {PAGE}"
APPLICATION = {
    "projectId": "",
    "name": f"bench-{NUMBER.decode()}",
    "redirectUris": [f"https://app-{NUMBER.decode()}.example.com/callback"],
    "postLogoutRedirectUris": ["https://app.example.com/"],
    "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
    "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
    "accessTokenType": "OIDC_TOKEN_TYPE_JWT",
    "clockSkew": "1.5s",
    "additionalOrigins": ["https://console.example.com"],
}
SCRIPT = "function greet(ctx, api) { api.v1.claims.setClaim('n', ctx.v1.user.%s); }"
ACTION = {
    "name": f"bench-{NUMBER.decode()}",
    "script": SCRIPT % "field",
    "timeout": "5s",
    "allowedToFail": True,
}
CHANGED_ACTION = {
    **ACTION,
    "id": ID.decode(),
    "name": f"held-{ID.decode()}",
    "script": SCRIPT % f"field{NUMBER.decode()}",
}


# What a kind of call should reach over SQLite, with the most connections: the least part of the
# empty route of its transport.
LEAST = (
    ("JSON", "CreateAction", 1 / 3),
    ("JSON", "AddOIDCApp", 1 / 3),
    ("JSON", LIST_ACTIONS, 0.2),
    ("JSON", LIST_OBJECTS, 0.2),
    ("gRPC", "GetAction", 0.5),
)


class Asked(NamedTuple):
    """A kind of call.

    Attributes:
        keyed: Whether it carries an idempotency key, as every create of the program does.
        turns: Fields that differ from call to call: another page, another name.
    """

    operation: str
    fields: Mapping[str, Any]
    keyed: bool = False
    turns: Sequence[Mapping[str, Any]] = ({},)

    def in_turns(self) -> Iterator[Asked]:
        """Yield one call for each of the turns."""
        for turn in self.turns:
            yield self._replace(fields={**self.fields, **turn})


def kinds_of_call(known: Known, held: Sequence[str]) -> Mapping[str, Asked]:
    """Return what is called, by the name it has in the results; ``held`` has ids in their order.

    No two calls of a list that are made at the same time ask for the same page: calls that do are
    answered once.
    """
    application = {**APPLICATION, "projectId": known.project}
    everything = {"organizationId": known.organization, "limit": PAGE}
    starts = range(len(held) - PAGE)
    offsets = [{"query": {"offset": start, "limit": PAGE}} for start in starts]
    names = [{"queries": [{"actionNameQuery": {"name": f"held-{start}"}}]} for start in starts]
    return {
        "CreateAction": Asked("CreateAction", ACTION),
        "AddOIDCApp": Asked("AddOIDCApp", application),
        "AddOIDCApp, keyed": Asked("AddOIDCApp", application, keyed=True),
        "UpdateAction": Asked("UpdateAction", CHANGED_ACTION),
        "GetAction": Asked("GetAction", {"id": ID.decode()}),
        LIST_ACTIONS: Asked("ListActions", {}, turns=offsets),
        "ListActions, by name": Asked("ListActions", {}, turns=names),
        LIST_OBJECTS: Asked(
            "ListObjects", everything, turns=[{"cursor": held[start]} for start in starts]
        ),
    }


class Transport(NamedTuple):
    """How calls go out: as the bytes of a request, or of a header block and its data."""

    encode: Callable[[Asked, str], list[bytes]]
    empty: list[bytes]
    is_http2: bool = False


def _headers(asked: Asked, token: str) -> list[tuple[str, str]]:
    key = [("idempotency-key", f"bench-{NUMBER.decode()}")] if asked.keyed else []
    return [("authorization", f"Bearer {token}"), *key]


def _json(asked: Asked, token: str) -> list[bytes]:
    verb, path = operations()[asked.operation].http[0].split(" ")
    rest = dict(asked.fields)
    for name in asked.fields:
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", rest.pop(name))
    if verb == "GET" and rest:
        path, rest = f"{path}?{urlencode(rest)}", {}
    body = json.dumps(rest).encode() if rest else b""
    return _request(
        verb, path, [*_headers(asked, token), ("content-type", "application/json")], body
    )


def _request(
    verb: str, path: str, headers: Sequence[tuple[str, str]], body: bytes = b""
) -> list[bytes]:
    lines = [f"{verb} {path} HTTP/1.1", "host: localhost", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ["\r\n".join([*lines, "", ""]).encode() + body]


def _message(asked: Asked) -> tuple[str, bytes]:
    path = f"/{operations()[asked.operation].grpc[0]}"
    return path, wires.frame(wires.message_from(METHODS[path].request, asked.fields))


def _grpc(asked: Asked, token: str) -> list[bytes]:
    path, data = _message(asked)
    return [http2.headers(path, _headers(asked, token)), data]


def _grpc_web(asked: Asked, token: str) -> list[bytes]:
    path, data = _message(asked)
    content_type = ("content-type", "application/grpc-web+proto")
    return _request("POST", path, [*_headers(asked, token), content_type], data)


HEALTHZ = _request("GET", "/healthz", ())
TRANSPORTS = {
    "JSON": Transport(_json, HEALTHZ),
    "gRPC": Transport(_grpc, [http2.headers(HEALTH), wires.frame(b"")], is_http2=True),
    "gRPC-web": Transport(_grpc_web, HEALTHZ),
}


class Caller:
    """The process that makes the calls."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._first = count(1, 10_000_000)

    def run(self, burst: Burst) -> dict[str, float]:
        """Have a burst made."""
        if self._process.stdin is None or self._process.stdout is None:
            raise AssertionError("the process has pipes")
        numbered = burst._replace(first=next(self._first))
        self._process.stdin.write(json.dumps(numbered._asdict()) + "\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise SystemExit("the load ended early; what it said is above")
        figures: dict[str, float] = json.loads(said)
        return figures

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def a_caller() -> Iterator[Caller]:
    """Start the process that makes the calls, and end it."""
    caller = Caller()
    try:
        yield caller
    finally:
        caller.close()


@dataclass
class Rates:
    """What came of the bursts of one cell of the results."""

    bursts: list[dict[str, float]] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the median of a figure."""
        return statistics.median(burst[name] for burst in self.bursts)


class Effort(NamedTuple):
    """How long it is measured, and with how many connections."""

    rounds: int
    seconds: float
    connections: tuple[int, ...]


def service_sections(scratch: Path, effort: Effort, aims: list[Aim]) -> list[str]:
    """Return a section of results for each kind of store; add to the aims."""
    lines: list[str] = []
    with a_caller() as caller:
        for name, make in STORES.items():
            folder = scratch / f"service-{name}"
            with make(folder) as store, served(store, folder) as server:
                lines += _head(f"Service over {name}", effort)
                bench = _Bench(caller, store, server.port, effort)
                for transport in TRANSPORTS:
                    lines += bench.rows(transport)
                if name == SQLITE:
                    most = effort.connections[-1]
                    aims += [
                        Aim(
                            f"{call}, {transport}, {most} connections / empty route",
                            least,
                            bench.ratios[transport, call, most],
                            is_least=True,
                        )
                        for transport, call, least in LEAST
                    ]
            lines += ["", f"The load itself took at most {bench.busiest:.0%} of one core."]
    return lines


def _head(title: str, effort: Effort) -> list[str]:
    columns = [f"{number} connections" for number in effort.connections]
    return section(
        title,
        f"| call | transport | {' | '.join(columns)} |",
        "Each cell: ratio to the empty route of the same transport and as many connections",
        "(requests a second; p50 and p99 in milliseconds). Above a third is the aim of creates.",
        f"Each call of a list asks for another page of {PAGE}, or for another name.",
    )


class _Bench:
    """Measures one server."""

    def __init__(self, caller: Caller, store: Store, port: int, effort: Effort) -> None:
        self._caller = caller
        self._port = port
        self._effort = effort
        self._token = store.known.tokens["editor"]
        self._ids = self._made()
        self._asked = kinds_of_call(store.known, self._ids)
        self.busiest = 0.0
        self.ratios: dict[tuple[str, str, int], float] = {}

    def _made(self) -> list[str]:
        """Make the actions that are read and updated."""
        import httpx

        headers = {"authorization": f"Bearer {self._token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{self._port}", headers=headers) as client:
            made = [
                client.post(
                    "/management/v1/actions", json={"name": f"held-{n}", "script": SCRIPT % "a"}
                )
                for n in range(HELD)
            ]
        return [answer.raise_for_status().json()["id"] for answer in made]

    def rows(self, transport: str) -> Iterator[str]:
        """Measure over a transport, and yield a row for each kind of call."""
        cells: dict[str, list[str]] = defaultdict(list)
        for connections in self._effort.connections:
            measured = self._measured(TRANSPORTS[transport], connections)
            empty = measured[EMPTY].median("per_second")
            for name, rates in measured.items():
                ratio = rates.median("per_second") / empty
                self.ratios[transport, name, connections] = ratio
                cells[name].append(_cell(ratio, rates))
        for name, found in cells.items():
            yield f"| {name} | {transport} | {' | '.join(found)} |"

    def _measured(self, transport: Transport, connections: int) -> Mapping[str, Rates]:
        """Make every kind of call in turns, so that what else happens falls on all alike."""
        rates: dict[str, Rates] = defaultdict(Rates)
        bodies = {EMPTY: [transport.empty]} | {
            name: [transport.encode(turn, self._token) for turn in asked.in_turns()]
            for name, asked in self._asked.items()
            if transport.encode is _json or operations()[asked.operation].grpc
        }
        opening = transport.encode(self._asked[OPENING], self._token)
        for _ in range(self._effort.rounds):
            for name, calls in bodies.items():
                made = self._caller.run(
                    Burst(
                        self._port,
                        transport.is_http2,
                        _as_text(opening),
                        [*map(_as_text, calls)],
                        self._ids,
                        0,
                        connections,
                        self._effort.seconds,
                    )
                )
                rates[name].bursts.append(made)
                self.busiest = max(self.busiest, made["busy"])
        return rates


def _as_text(call: Sequence[bytes]) -> list[str]:
    return [b64encode(part).decode() for part in call]


def _cell(ratio: float, rates: Rates) -> str:
    per_second, middle, late = map(rates.median, ("per_second", "p50", "p99"))
    return f"**{ratio:.2f}** ({per_second:,.0f}/s; {middle * 1000:.1f}, {late * 1000:.1f} ms)"
