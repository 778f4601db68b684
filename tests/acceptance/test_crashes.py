"""A kill at every step of apply, then apply again: nothing twice, nothing lost."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_application, write

RECONCILER_POINTS = ["C1", "C2", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13"]
SERVICE_POINTS = ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"]


def events(folder: Path) -> list[tuple[str, str, dict[str, object]]]:
    """Return stream, type and payload of every event in the store."""
    with closing(sqlite3.connect(folder / ".reconciler" / "identity.db")) as store:
        rows = store.execute("SELECT stream, type, payload FROM events ORDER BY position")
        return [(stream, kind, json.loads(payload)) for stream, kind, payload in rows]


def assert_nothing_is_lost_or_twice(run: Run, folder: Path) -> None:
    """Check what must hold after a crash and one more apply."""
    after = run("apply", "--auto-approve")
    assert after.code == 0, after.all
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("store", "verify").code == 0
    history = events(folder)
    added = Counter(
        (kind, str(payload["name"]).casefold())
        for _, kind, payload in history
        if kind.endswith(".added")
    )
    assert set(added.values()) == {1}
    hashes = {
        stream: payload["secret_hash"]
        for stream, kind, payload in history
        if kind.startswith("app.") and payload.get("secret_hash")
    }
    outputs = run("outputs", "--format", "json").json["applications"]
    clients = {app["client_id"]: app["id"] for app in outputs}
    delivered = {}
    for path in (folder / ".reconciler" / "secrets").glob("*.json"):
        content = json.loads(path.read_text())
        digest = hashlib.sha256(content["client_secret"].encode()).hexdigest()
        delivered[clients[content["client_id"]]] = digest
        assert path.stat().st_mode & 0o777 == 0o600
    assert delivered == hashes


@pytest.mark.parametrize("point", [*RECONCILER_POINTS, *SERVICE_POINTS])
def test_a_kill_while_everything_is_created_is_healed_by_the_next_apply(
    run: Run, small: Path, point: str
) -> None:
    """The one-time secret of a create survives a crash at any point."""
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)
    if point not in {"C1", "C12", "C13"}:  # these need a store that is there already
        assert killed.code == -signal.SIGKILL

    assert_nothing_is_lost_or_twice(run, small.parent)


@pytest.mark.parametrize("visit", [2, 3, 4])
@pytest.mark.parametrize("point", ["C2", "C4", "C6", "C10", "C11", "S4", "S8"])
def test_a_kill_in_a_later_batch_is_healed_too(
    run: Run, small: Path, point: str, visit: int
) -> None:
    """Organizations, projects and the rest are batches of their own."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT=f"{point}:{visit}")

    assert_nothing_is_lost_or_twice(run, small.parent)


@pytest.mark.parametrize(
    "point",
    [*RECONCILER_POINTS, *(point for point in SERVICE_POINTS if point != "S6")],  # no key, no S6
)
def test_a_kill_while_an_application_moves_to_a_secret_is_healed(
    run: Run, small: Path, point: str
) -> None:
    """Between the update and its secret, nobody could sign in; the next apply mends that."""
    run("apply", "--auto-approve")
    write(small / "spa.yaml", an_application("spa"))

    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)

    assert killed.code == -signal.SIGKILL
    assert_nothing_is_lost_or_twice(run, small.parent)


def test_a_crash_leaves_no_lock_that_keeps_the_next_apply_out(run: Run, small: Path) -> None:
    """A dead process on this machine holds nothing."""
    run("apply", "--auto-approve")
    write(small / "extra.yaml", an_application("extra"))
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C1")

    assert run("apply", "--auto-approve").code == 0


def test_no_secret_of_a_run_is_anywhere_but_in_the_sink(run: Run, small: Path) -> None:
    """Not in the store, the journal, a plan, or any output: raw or encoded."""
    printed = run("apply", "--auto-approve", "--format", "json", RECONCILER_CRASHPOINT="C6").all
    printed += run("apply", "--auto-approve").all
    write(small / "spa.yaml", an_application("spa"))
    printed += run("plan", "--format", "json").all
    printed += run("apply", "--auto-approve", "--format", "json").all
    printed += run("outputs", "--format", "json").all + run("store", "verify").all
    state = small.parent / ".reconciler"
    secrets = [
        json.loads(path.read_text())["client_secret"] for path in (state / "secrets").iterdir()
    ]
    assert len(secrets) == 2

    others = [path for path in state.rglob("*") if path.is_file() and path.parent.name != "secrets"]
    contents = [printed.encode(), *(path.read_bytes() for path in others)]

    for secret in secrets:
        for form in _forms(secret):
            assert not any(form in content for content in contents)


def _forms(secret: str) -> list[bytes]:
    import base64

    raw = secret.encode()
    return [raw, base64.b64encode(raw)[:-2], raw.hex().encode(), raw[::-1]]
