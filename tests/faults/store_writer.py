"""A process that writes to a store and tells what it was acknowledged, for faults to strike.

Run as a script, with ``arguments``; what is told goes to stdout, a line for each call, once the
call is durable. Told to begin again, it makes the same calls, under the same keys.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from reconciler.resources import files
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore import sqlite_files
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from tests.faults.catalogue import must
from tests.faults.tracing import wait_for_tracer

Answer = dict[str, Any]
JWT = {"jwtEndpoint": "https://a.example.com", "issuer": "a", "keysEndpoint": "k"}
ORGANIZATION, PROJECT, IDP = range(3)
STDOUT = 1


def request(number: int, answers: Sequence[Answer]) -> Request:
    """Return the call of a number; ``answers`` are those of the calls before it, or the first."""
    organization = answers[ORGANIZATION]["id"] if number else ""
    operation, fields = _asked(number, answers)
    key = "" if operation == "UpdateOrgIDPJWTConfig" else f"key-{number}"
    return Request(
        operation, fields, caller=EMBEDDED, organization=organization, idempotency_key=key
    )


def _asked(number: int, answers: Sequence[Answer]) -> tuple[str, dict[str, Any]]:
    if number == ORGANIZATION:
        return "AddOrg", {"name": "acme"}
    if number == PROJECT:
        return "AddProject", {"name": "shop"}
    if number == IDP:
        return "AddOrgJWTIDP", {"name": "partner", **JWT, "headerName": "h"}
    return (
        ("CreateAction", {"name": f"a{number}", "script": _script(number)}),
        ("AddOIDCApp", {"name": f"a{number}", "projectId": answers[PROJECT]["id"]}),
        (
            "UpdateOrgIDPJWTConfig",
            {"idpId": answers[IDP]["idpId"], **JWT, "headerName": f"h{number}"},
        ),
    )[number % 3]


def _script(number: int) -> str:
    return f"function a{number}() {{ /* {'x' * (number * 89 % 1500)} */ }}"


def check_acknowledged(service: IdentityService, answers: Sequence[Answer]) -> None:
    """Check that what was acknowledged is there, and answered again as it was (I1, I3)."""
    asked = [request(number, answers) for number in range(len(answers))]
    with service.store.snapshot() as view:
        held = {event.sequence: event for event in view.read_all(limit=100_000)}
    for number, answer in enumerate(answers):
        event = held.get(int(answer["details"]["sequence"]))
        must(event is not None, "I1", f"the event of call {number} is gone")
        if event is not None and not asked[number].idempotency_key:
            must(f'"h{number}"' in event.payload, "I1", f"call {number} wrote something else")
    keyed = [number for number, call in enumerate(asked) if call.idempotency_key]
    again = service.call_many([asked[number] for number in keyed])
    for number, other in zip(keyed, again, strict=True):
        must(other == answers[number], "I3", f"call {number} is answered otherwise: {other!r}")


def told(out: str) -> list[Answer]:
    """Return the answers that a writer told, in the order of the calls."""
    return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]


def arguments(path: Path, **options: object) -> list[str]:
    """Return the arguments of a writer; its options by keyword."""
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [str(path), *given]


def main() -> None:
    """Make calls, one batch after the other, and tell each batch once it is durable."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--calls", type=int, default=24)
    parser.add_argument("--batch", type=int, default=1, help="calls that share a commit")
    parser.add_argument(
        "--reopen", type=int, default=1_000_000, help="batches until it is reopened"
    )
    parser.add_argument("--pragma", default="", help="a setting of SQLite that is not the store's")
    parser.add_argument("--settle", type=int, default=1, help="0: files are named, never synced")
    parser.add_argument("--traced", type=int, default=0, help="1: begin once it is traced")
    chosen = parser.parse_args()
    if chosen.traced:
        wait_for_tracer()
    if chosen.pragma:
        sqlite_files.connect = _with_pragma(sqlite_files.connect, chosen.pragma)
    if not chosen.settle:
        files.sync = _not_at_all
    answers: list[Answer] = []
    while len(answers) < chosen.calls:
        with closing(open_sqlite(chosen.path, create=True)) as service:
            for _ in range(min(chosen.reopen, chosen.calls - len(answers))):
                _one_batch(service, answers, min(chosen.batch, chosen.calls - len(answers)))


def _one_batch(service: IdentityService, answers: list[Answer], size: int) -> None:
    first = len(answers)
    size = size if first > IDP else min(size, 1)  # whatever follows needs the ids of the first
    calls = [request(number, answers) for number in range(first, first + size)]
    for answer in service.call_many(calls):
        if isinstance(answer, Refusal):
            raise answer
        answers.append(answer)
    os.write(STDOUT, "".join(json.dumps(answer) + "\n" for answer in answers[first:]).encode())


def _with_pragma(
    connect: Callable[..., sqlite3.Connection], pragma: str
) -> Callable[..., sqlite3.Connection]:
    def connected(path: Path, *sizes: int) -> sqlite3.Connection:
        connection = connect(path, *sizes)
        connection.execute(f"PRAGMA {pragma}")
        return connection

    return connected


def _not_at_all(path: Path) -> None:
    """Leave it to chance whether a file survives."""


if __name__ == "__main__":
    main()
