"""What a service held before one object changed, after very many events, against a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from bench import generate
from bench.aims import Aim
from bench.measure import apply_in, interleaved, ours, section
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request

MOST = 2.0
AT_ONCE = 1000


def past_section(scratch: Path, count: int, events: int, rounds: int, aims: list[Aim]) -> list[str]:
    """Return the lines of the section; add its aims."""
    folder = scratch / "past"
    generate.write(count, folder / "manifests")
    apply_in(folder)
    with closing(open_sqlite(folder / ".reconciler" / "identity.db")) as service:
        first, *others = _actions(service)
        updates = _updates(others, events)
        while batch := list(islice(updates, AT_ONCE)):
            _send(service, batch)
        moment = datetime.now(UTC).isoformat()
        _send(service, [_update(first, "5s")])
    jobs = [
        ours("plan", folder, "plan"),
        ours("export --at", folder, "export", "--at", moment),
        ours("compare --at", folder, "compare", "--at", moment),
    ]
    series = interleaved(jobs, rounds)
    about = f"{count:,} objects, {events:,} events, and one object changed since the moment."
    lines = section("The past", "| job | s | / plan |", about)
    for job in jobs:
        ratio = series[job.name].median / series["plan"].median
        lines.append(f"| {job.name} | {series[job.name].median:.2f} | {ratio:.2f} |")
        if job.name != "plan":
            about = f"`{job.name}` after {events:,} events, one object changed since / plan"
            aims.append(Aim(about, MOST, ratio))
    return lines


def _actions(service: IdentityService) -> list[dict[str, Any]]:
    """Return the actions of the largest organization, as they are listed."""
    found: list[dict[str, Any]] = []
    for owner in service.call(Request("ListOrgs", {}, caller=EMBEDDED))["result"]:
        cursor, own = "", []
        while True:
            fields = {"organizationId": owner["id"], "cursor": cursor}
            answer = service.call(Request("ListObjects", fields, caller=EMBEDDED))
            own += [{**each, "owner": owner["id"]} for each in answer["objects"]]
            if not (cursor := answer["next"]):
                break
        actions = [each for each in own if each["kind"] == "Action"]
        found = max(found, actions, key=len)
    return found


def _updates(actions: Sequence[dict[str, Any]], events: int) -> Iterator[Request]:
    """Yield updates of actions in turn, there and back: at the end all are as they were."""
    for number in range(events // 2 // len(actions) + 1):
        for timeout in (f"1.{number:09}s", ""):
            for each in actions:
                yield _update(each, timeout or each["spec"]["timeout"])


def _update(held: dict[str, Any], timeout: str) -> Request:
    fields = {"id": held["id"], "name": held["name"], **held["spec"], "timeout": timeout}
    return Request("UpdateAction", fields, caller=EMBEDDED, organization=held["owner"])


def _send(service: IdentityService, batch: Sequence[Request]) -> None:
    for answer in service.call_many(batch):
        if isinstance(answer, Refusal):
            raise SystemExit(f"refused: {answer.message}")
