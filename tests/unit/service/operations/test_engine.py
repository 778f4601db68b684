"""What the engine does when it goes wrong: ids in use, keys gone, callers mixed, threads racing."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.engine import Engine, expected_lookups
from reconciler.service.operations.request import Request
from reconciler.service.operations.runtime import Identifiers, LeaseClock, Runtime
from reconciler.service.projections.maintenance import verify
from reconciler.service.seal import KeyFile
from tests.examples import Clock
from tests.memory_store import MemoryEventStore, new_key, open_memory
from tests.rows import each_row
from tests.unit.service.asking import ADMIN, Asking


class Scripted(Identifiers):
    """Gives out the ids that a test says."""

    def __init__(self, *ids: str) -> None:
        self._ids = iter(ids)

    def next(self) -> str:
        return next(self._ids)


def with_ids(*ids: str) -> tuple[Engine, Asking]:
    """Return an engine that makes these ids, and a way to write calls for it."""
    clock = Clock()
    store = MemoryEventStore(clock)
    runtime = Runtime(clock, Scripted(*ids), bytes, new_key(), LeaseClock(clock, clock))
    return Engine(store, runtime), Asking(IdentityService(store, new_key(), clock), clock)


def test_an_id_that_is_in_use_is_not_used_again() -> None:
    """Two servers may make the same id once in ages; the second one asks for another."""
    engine, ask = with_ids("1", "1", "2")
    made = [ask.request("AddOrg", {"name": name}) for name in ("acme", "globex")]

    answers = engine.run(made)

    assert [answer["id"] if isinstance(answer, dict) else answer for answer in answers] == [
        "1",
        "2",
    ]


def test_a_writer_who_never_gets_through_is_told_to_come_again() -> None:
    """Nothing of theirs is left."""
    engine, ask = with_ids(*["1"] * 9)
    made = [ask.request("AddOrg", {"name": name}) for name in ("acme", "globex")]

    _, refused = engine.run(made)

    assert isinstance(refused, Refusal)
    assert refused.code == 10
    assert ask.event_count() == 1


def test_calls_after_a_refused_one_are_not_tried() -> None:
    """To take a lease and give it back would move the fence under another run."""
    _, ask = with_ids()
    ask("AcquireLease", named="beta", holder="other", seconds=60)
    names = ("acme", "beta", "corp")
    calls = [
        ask.request("AcquireLease", {"named": name, "holder": "me", "seconds": 60})
        for name in names
    ]

    taken, refused = ask.service.call_until_refused(calls)

    assert not isinstance(taken, Refusal)
    assert isinstance(refused, Refusal)
    assert refused.details["holder"] == "other"
    with ask.service.store.snapshot() as view:
        leases = [view.lease(name) for name in names]
    assert [lease.fence if lease else 0 for lease in leases] == [1, 1, 0]


@pytest.mark.parametrize("moved", [False, True])
def test_a_secret_is_answered_again_only_by_who_has_the_key(tmp_path: Path, *, moved: bool) -> None:
    """Without it the caller is told so, not given half an answer or a second application."""
    path, key = tmp_path / "identity.db", tmp_path / "key"
    with closing(open_sqlite(path, create=True, seal_key_file=key)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        first = ask.an_app(idempotency_key="k")
    if moved:
        key.rename(tmp_path / "kept")
    with closing(open_sqlite(path, seal_key_file=tmp_path / "kept")) as service:
        again = Asking(service, Clock(), ask.organization, ask.project)
        if moved:
            assert again.an_app(idempotency_key="k") == first
            return
        with pytest.raises(Refusal) as caught:
            again.an_app(idempotency_key="k")
        assert (caught.value.code, caught.value.reason) == (9, "idempotency.secret_gone")
        assert len(again.objects()) == 1


DAMAGED = {
    "its answer": "UPDATE records SET answer = replace(answer, 'Id\":\"1', 'Id\":\"3')",
    "whose secret it is": "UPDATE records SET slot = 1 - slot",
    "which seal it is in": "UPDATE records SET seal = NULL",
}


@pytest.mark.parametrize("statement", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_kept_answer_that_was_damaged_is_not_given(tmp_path: Path, statement: str) -> None:
    """Half an answer, or the secret of another application, is worse than none."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        apps = [
            ask.request("AddOIDCApp", {"projectId": ask.project, "name": name})
            for name in ("web", "api")
        ]
        calls = [replace(call, idempotency_key=f"k{n}") for n, call in enumerate(apps)]
        service.call_many(calls)
        with closing(sqlite3.connect(path)) as other:
            assert other.execute(statement).rowcount == 2
            other.commit()

        answers = service.call_many(calls)

    assert [answer.code for answer in answers if isinstance(answer, Refusal)] == [9, 9]


def test_what_one_caller_may_see_is_not_shown_to_the_next_of_a_batch() -> None:
    """Calls of several callers share a commit and what was looked up, never what is allowed."""
    ask = Asking(open_memory(), Clock())
    ask.prepare()
    stranger = Caller("stranger", Role.ADMIN, frozenset({"1"}))
    fields = {"projectId": ask.project, "name": "a"}
    action = {"organization": ask.organization, "name": "a", "script": "x"}
    calls = [
        ask.request(operation, {**asked, "by": by})
        for by in (ADMIN, stranger)
        for operation, asked in (("AddOIDCApp", fields), ("CreateAction", action))
    ]

    answers = ask.service.call_many(calls)

    codes = [answer.code if isinstance(answer, Refusal) else 0 for answer in answers]
    assert codes == [0, 0, 5, 5]


def test_a_sealing_key_that_is_no_key_stops_the_write(tmp_path: Path) -> None:
    """An application whose secret could not be had again is not made."""
    (tmp_path / "key").write_text("no key")
    (tmp_path / "key").chmod(0o600)
    service = IdentityService(MemoryEventStore(Clock()), KeyFile(tmp_path / "key"), Clock())
    ask = Asking(service, Clock())
    ask.prepare()

    with pytest.raises(StoreError):
        ask.an_app(idempotency_key="k")

    assert ask.objects() == []
    assert ask.an_app()["clientSecret"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_many_threads_write_and_read_at_once(tmp_path: Path, kind: str) -> None:
    """One writer at a time, readers undisturbed, nothing lost."""
    service = (
        open_memory() if kind == "memory" else open_sqlite(tmp_path / "identity.db", create=True)
    )
    ask = Asking(service, Clock())
    ask.prepare()
    failed: list[BaseException] = []

    def work(thread: int) -> None:
        try:
            for number in range(10):
                ask.an_action(f"a{thread}-{number}")
                listed = ask("ListActions", organization=ask.organization)["result"]
                assert len(listed) >= number + 1
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with closing(service):
        assert failed == []
        assert len(ask.objects()) == 80
        assert verify(service.store) == []


def test_a_store_in_memory_is_not_backed_up(tmp_path: Path) -> None:
    """Silence would look like a backup."""
    with pytest.raises(StoreError):
        open_memory().store.backup(tmp_path / "saved.db")
    assert list(tmp_path.iterdir()) == []


UNCHANGED_PLAN = """
import sys
from pathlib import Path
from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
service = open_sqlite(Path(sys.argv[1]), read_only=True)
name = {"name": "ACME", "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
service.call(Request("GetServiceInfo", {}, caller=EMBEDDED))
found = service.call(Request("ListOrgs", {"queries": [{"nameQuery": name}]}, caller=EMBEDDED))
fields = {"organizationId": found["result"][0]["id"], "cursor": "", "limit": 1000}
listed = service.call(Request("ListObjects", fields, caller=EMBEDDED))["objects"]
heavy = {"pydantic", "pyrage", "grpc", "starlette", "httpx", "secrets", "uuid"}
sys.stdout.write(f"{len(listed)} {sorted(heavy & sys.modules.keys())}")
"""


@pytest.mark.slow
@pytest.mark.untraced
def test_what_an_unchanged_plan_asks_loads_no_models(tmp_path: Path) -> None:
    """Loading them would cost more than the whole listing."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        Asking(service, Clock()).prepare()

    run = subprocess.run(
        [sys.executable, "-c", UNCHANGED_PLAN, str(path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[4],
    )

    assert run.stdout == "2 []"


CI = Caller("ci", Role.EDITOR, frozenset({"1"}))


def an_update(fields: dict[str, Any], **beside: Any) -> Request:
    return Request("UpdateAction", fields, caller=CI, **beside)


@each_row(
    ("fields", "objects", "names"),
    [
        ({"projectId": "2", "name": "Shop"}, {"1", "2"}, {("1", "shop"), ("2", "shop")}),
        ({"projectId": "2", "appId": "3"}, {"1", "2", "3"}, set()),
        ({"idpId": "3"}, {"1", "3"}, set()),
        ({"id": "3", "name": "É"}, {"1", "3"}, {("1", "é"), ("3", "é")}),
        ({"id": 3, "name": None}, {"1"}, set()),
        ({"id": "a\0b", "name": "\ud800"}, {"1"}, set()),
        ({"id": "x" * 301, "name": ""}, {"1"}, set()),
    ],
)
def test_objects_and_names_that_calls_name_are_looked_up(
    fields: dict[str, Any], objects: set[str], names: set[tuple[str, str]]
) -> None:
    """What no store could hold is left out; it is refused later, in words."""
    expected = expected_lookups([an_update(fields)])

    assert (set(expected.objects), set(expected.names)) == (objects, names)


def test_keys_are_looked_up_for_each_caller() -> None:
    expected = expected_lookups(
        [an_update({}, idempotency_key=key) for key in ("a", "", "b", "\0")]
    )

    assert expected.records == {(CI.account, "a"), (CI.account, "b")}
    assert expected.events == 4


@each_row(
    ("role", "seen", "named", "locked"),
    [
        (Role.EDITOR, None, "7", {"7"}),
        (Role.EDITOR, {"7"}, "", {"7"}),
        (Role.EDITOR, {"8"}, "7", set()),
        (Role.VIEWER, None, "7", set()),
        (Role.EDITOR, None, "", set()),
        (Role.EDITOR, None, "no id", set()),
    ],
)
def test_an_organization_is_locked_for_those_who_may_write_there(
    role: Role, seen: set[str] | None, named: str, locked: set[str]
) -> None:
    """Anybody else would keep its writers waiting, or learn that it is there."""
    caller = Caller("ci", role, None if seen is None else frozenset(seen))
    request = Request("UpdateAction", {}, caller=caller, organization=named)

    assert expected_lookups([request]).organizations == locked
