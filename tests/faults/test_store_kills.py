"""A kill at every step of a write: what was acknowledged is there, and nothing twice."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from reconciler.service.projections.maintenance import verify
from tests.examples import Clock
from tests.unit.service.asking import Asking
from tests.warm import SECONDS, Copy

WRITER = """
import json, sys
from pathlib import Path
from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request

path, *calls = sys.argv[1:]
service = open_sqlite(Path(path))
for call in calls:
    operation, fields, key = json.loads(call)
    answer = service.call(Request(operation, fields, caller=EMBEDDED, idempotency_key=key))
    sys.stdout.write(json.dumps(answer) + chr(10))
    sys.stdout.flush()
"""
POINTS = ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"]


Calls: TypeAlias = list[tuple[str, dict[str, object], str]]


def write(path: Path, calls: Calls) -> list[object]:
    """Carry out calls on a store that is opened for them; return what it answered."""
    with closing(open_sqlite(path)) as service:
        return [
            service.call(Request(operation, fields, caller=EMBEDDED, idempotency_key=key))
            for operation, fields, key in calls
        ]


def write_until(path: Path, calls: Calls, point: str) -> list[object]:
    """Carry out calls in a process that is killed at a point; return what it acknowledged."""
    code, out, err = written_by_another(WRITER, path, calls, point)
    assert err == ""
    assert code == -signal.SIGKILL
    return [json.loads(line) for line in out.splitlines()]


def written_by_another(script: str, path: Path, calls: Calls, point: str) -> tuple[int, str, str]:
    """Carry out calls in another process, with a crash point; return its exit code and output."""
    file = path.with_name("writer.py")
    file.write_text(script, encoding="utf-8")
    process = Copy(
        [str(file), str(path), *map(json.dumps, calls)],
        path.parent,
        {"RECONCILER_CRASHPOINT": point},
    )
    out, err = process.communicate(SECONDS)
    return process.wait(), out, err


def calls_of(ask: Asking, what: str, make: str) -> Calls:
    """Return three calls of a kind."""
    update = {"idpId": make, "jwtEndpoint": "a", "issuer": "b", "keysEndpoint": "c"}
    kinds: dict[str, Calls] = {
        "app": [
            ("AddOIDCApp", {"projectId": ask.project, "name": f"a{n}"}, f"k{n}") for n in range(3)
        ],
        "idp": [
            ("UpdateOrgIDPJWTConfig", {**update, "headerName": f"h{n}"}, f"k{n}") for n in range(3)
        ],
    }
    return kinds[what]


@pytest.mark.parametrize("what", ["app", "idp"])
@pytest.mark.parametrize("visit", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_nothing_that_was_acknowledged_and_a_retry_doubles_nothing(
    tmp_path: Path, point: str, visit: int, what: str
) -> None:
    """Event, object and answer commit together or not at all; the store opens as if nothing was."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        idp = ask.an_idp()["idpId"]
        before = ask.event_count()
    calls = calls_of(ask, what, idp)

    acknowledged = write_until(path, calls, f"{point}:{visit}")

    assert len(acknowledged) == visit - 1
    with closing(open_sqlite(path)) as service:
        assert verify(service.store) == []
        again = Asking(service, Clock(), ask.organization, ask.project)
        committed = again.event_count() - before
        assert committed == visit - (point != "S8")

    answers = write(path, calls)

    assert answers[: visit - 1] == acknowledged
    with closing(open_sqlite(path)) as service:
        assert verify(service.store) == []
        again = Asking(service, Clock(), ask.organization, ask.project)
        assert again.event_count() - before == 3
    assert write(path, calls) == answers


def test_a_kill_in_a_batch_leaves_none_of_it(tmp_path: Path) -> None:
    """A batch is one commit."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        before = ask.event_count()
    batch = WRITER.replace(
        "for call in calls:",
        "service.call_many([Request(*json.loads(call)[:2], caller=EMBEDDED) for call in calls])\n"
        "for call in ():",
    )

    code, _, _ = written_by_another(batch, path, calls_of(ask, "app", ""), "S5:3")

    assert code == -signal.SIGKILL
    with closing(open_sqlite(path)) as service:
        assert verify(service.store) == []
        assert Asking(service, Clock()).event_count() == before


def test_a_crash_point_that_no_test_names_is_nothing(tmp_path: Path) -> None:
    """An ordinary run never meets one, nor one whose visit does not come."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        ask = Asking(service, Clock())
        ask.prepare()
    calls = calls_of(ask, "app", "")

    code, _, _ = written_by_another(WRITER, path, calls, "S4:9")

    assert code == 0
