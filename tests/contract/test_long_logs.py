"""Long logs and long objects: what one call reads and answers is bounded, over every store.

Work is counted in rows and characters that a store hands out; a store in memory hands out none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations import history
from reconciler.service.operations.commit import answered
from reconciler.service.operations.runtime import Batch
from reconciler.service.operations.texts import (
    MAX_LIST_BYTES,
    READ_AT_ONCE,
    answer_bytes,
    json_bytes,
)
from tests.unit.service.asking import Asking

LONG = 200_000  # characters of one version of an application
VERSIONS = 3 * MAX_LIST_BYTES // LONG
LOGIN, PRE_CREATION = "3", "2"


@dataclass
class Work:
    """The rows that a store handed out, and the characters in those of each read."""

    rows: int = 0
    characters: list[int] = field(default_factory=list)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count what is read from now on."""
    counted = Work()
    read = Snapshot._all  # every read of several rows goes through it

    def counting(self: Snapshot, *asked: Any) -> Any:
        rows = read(self, *asked)
        counted.rows += len(rows)
        texts = (value for row in rows for value in row if isinstance(value, str))
        counted.characters.append(sum(map(len, texts)))
        return rows

    monkeypatch.setattr(Snapshot, "_all", counting)
    return counted


def a_long_app(ask: Asking, versions: int) -> str:
    """Make an application of so many long versions."""
    app = str(ask.an_app()["appId"])
    for number in range(1, versions):
        uris = [f"https://shop.example.com/{number}/{'x' * LONG}"]
        ask("UpdateOIDCAppConfig", projectId=ask.project, appId=app, redirectUris=uris)
    return app


def pages(ask: Asking, operation: str, cursor: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """Yield all pages of a call in process."""
    following = ""
    while True:
        yield (page := ask(operation, **fields, **{cursor: following} if following else {}))
        following = page["next"]
        if not following:
            return


def test_a_history_is_cut_by_bytes(ask: Asking, work: Work) -> None:
    """250 versions of a large application were one answer of 247 MB."""
    app = a_long_app(ask, VERSIONS)
    work.characters.clear()

    found = list(pages(ask, "GetObjectHistory", "after", id=app))

    versions = [event["version"] for page in found for event in page["events"]]
    assert versions == list(range(1, VERSIONS + 1))
    assert len(found) > 2
    for page in found:
        assert sum(len(json_bytes(event)) for event in page["events"]) <= MAX_LIST_BYTES
    assert max(work.characters, default=0) <= READ_AT_ONCE * (LONG + 10_000)


def test_a_history_as_text_is_the_same(ask: Asking) -> None:
    """Over JSON, the page is cut and written at once."""
    app = a_long_app(ask, VERSIONS)
    request = ask.request("GetObjectHistory", {"id": app})
    with ask.service.store.snapshot() as view:
        runtime: Any = None
        plain = answered(view, request, runtime, Batch())
        text = answered(view, replace(request, encode=answer_bytes), runtime, Batch())

    assert isinstance(plain, dict)
    assert isinstance(text, dict)
    assert answer_bytes(text) == json_bytes(plain)
    assert text["next"] == plain["next"] != ""


def test_a_single_event_may_be_longer_than_a_page(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is answered alone: a page without it would never end."""
    monkeypatch.setattr("reconciler.service.operations.texts.MAX_LIST_BYTES", 10)
    made = ask.an_action()["id"]
    ask("UpdateAction", id=made, name="b", script="x")
    ask("DeleteAction", id=made)

    events = list(pages(ask, "GetObjectHistory", "after", id=made))
    removals = list(pages(ask, "ListRemovals", "cursor", organizationId=ask.organization))

    assert [len(page["events"]) for page in events] == [1, 1, 1, 1]
    assert [removal["name"] for page in removals for removal in page["removals"]] == ["b"]


def test_removals_are_found_without_reading_long_updates(ask: Asking, work: Work) -> None:
    """An answer of 25 bytes took 813 MB."""
    app = a_long_app(ask, 20)
    work.characters.clear()
    assert ask("ListRemovals", organizationId=ask.organization) == {"removals": [], "next": ""}
    ask("UpdateApp", projectId=ask.project, appId=app, name="renamed")
    ask("RemoveApp", projectId=ask.project, appId=app)

    (removal,) = ask("ListRemovals", organizationId=ask.organization)["removals"]

    assert (removal["name"], removal["projectId"]) == ("renamed", ask.project)
    reads = sorted(work.characters)
    assert sum(reads) < 3 * LONG, "the update that named it, and its removal, at most"


def test_removals_of_flows_take_work_in_proportion(ask: Asking, work: Work) -> None:
    """Each removal replayed the flow from its first event: 2,000 changes took 68 s."""
    rows = [rows_of_removals(ask, work, name) for name in ("a", "b", "c")]

    assert rows[2] - rows[1] <= 1.2 * (rows[1] - rows[0])


def rows_of_removals(ask: Asking, work: Work, name: str) -> int:
    """Set and empty a flow 20 times more; return how many rows its removals take to tell."""
    changes = 20
    action = ask.an_action(name, context='{"tree":"gone"}')["id"]
    flow = {"organization": ask.organization, "flowType": LOGIN, "triggerType": PRE_CREATION}
    for number in range(changes):
        context = f'{{"tree":"t{number}"}}'
        ask("SetTriggerActions", **flow, actionIds=[action], context=context)
        ask("SetTriggerActions", **flow)
    work.rows = 0

    removals = ask("ListRemovals", organizationId=ask.organization)["removals"]

    assert len(removals) % changes == 0
    assert [removal["trees"] for removal in removals[-changes:]] == [
        [f"t{number}"] for number in range(changes)
    ]
    return work.rows


def test_a_call_replays_no_more_than_its_share(
    ask: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest is for the calls after it."""
    monkeypatch.setattr(history, "AT_ONCE", 2)
    for number in range(4):
        made = ask.an_action(f"a{number}")["id"]
        ask("UpdateAction", id=made, name=f"b{number}", script="x")
        ask("DeleteAction", id=made)

    found = list(pages(ask, "ListRemovals", "cursor", organizationId=ask.organization))

    assert max(len(page["removals"]) for page in found) == 1
    names = [removal["name"] for page in found for removal in page["removals"]]
    assert names == ["b0", "b1", "b2", "b3"]


def test_changes_of_a_removed_object_take_work_in_proportion(
    ask: Asking, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page replayed it: 25,000 updates and a removal would have taken a quarter of an hour."""
    monkeypatch.setattr(history, "AT_ONCE", 10)
    rows = []
    for versions in (40, 80, 160):
        made = ask.an_action()["id"]
        for number in range(versions):
            ask("UpdateAction", id=made, name="greet", script=f"x{number}")
        ask("DeleteAction", id=made)
        cursor = ask("GetObjectHistory", id=made)["events"][0]["sequence"]
        asked = {"organizationId": ask.organization, "limit": 10}
        work.rows = 0
        while cursor:
            cursor = ask("ListChanges", **asked, cursor=cursor)["next"]
        rows.append(work.rows)

    assert rows[2] - rows[1] <= 2.4 * (rows[1] - rows[0])
