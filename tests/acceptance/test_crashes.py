"""A kill at every step of apply, then apply again: nothing twice, nothing lost."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run, an_application, an_idp, write
from tests.acceptance.test_guards import with_metadata

RECONCILER_POINTS = ["C1", "C2", "C4", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C13", "C18"]
SERVICE_POINTS = ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"]


def events(folder: Path) -> list[tuple[str, str, dict[str, object]]]:
    """Return stream, type and payload of every event in the store."""
    with closing(sqlite3.connect(folder / ".reconciler" / "identity.db")) as store:
        rows = store.execute("SELECT stream, type, payload FROM events ORDER BY position")
        return [(stream, kind, json.loads(payload)) for stream, kind, payload in rows]


def applications(folder: Path) -> dict[str, str]:
    """Return the id of every application in the store, by client id."""
    with closing(sqlite3.connect(folder / ".reconciler" / "identity.db")) as store:
        return dict(store.execute("SELECT client_id, id FROM objects WHERE client_id != ''"))


def left_to(folder: Path) -> bytes:
    """Return what the journals have open: a killed run left it to its machine alone."""
    return b"".join(path.read_bytes() for path in (folder / ".reconciler").glob("apply-*.jsonl"))


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
        if kind.startswith("application.") and payload.get("secret_hash")
    }
    clients = applications(folder)
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
    """The one-time secret survives a crash at any point, and no journal has to tell of it."""
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)
    if point not in {"C1", "C12", "C13"}:  # these need a store that is there already
        assert killed.code == -signal.SIGKILL

    assert left_to(small.parent) == b""
    assert_nothing_is_lost_or_twice(run, small.parent)


WHOLE: dict[str, str] = {}
SHARD, OTHER_SHARD = ({"RECONCILER_SHARD": shard} for shard in ("2/2", "3/3"))  # acme is in each


# Every point from a shard to the whole; of the other ways, points on both sides of the write.
@pytest.mark.parametrize(
    ("before", "after", "point"),
    [
        *((SHARD, WHOLE, point) for point in ("C2", "C4", "C6", "C10", "C11")),
        *((SHARD, OTHER_SHARD, point) for point in ("C2", "C6")),
        *((WHOLE, SHARD, point) for point in ("C4", "C10")),
    ],
)
def test_a_kill_in_one_shard_is_healed_by_whoever_looks_after_the_organization_next(
    run: Run, small: Path, before: dict[str, str], after: dict[str, str], point: str
) -> None:
    """The number of jobs changes from one run to the next; a kill while taking over is one more.

    What is made to be inactive is in the journal, and so it is taken over.
    """
    write(small / "off.yaml", with_metadata(an_idp("off"), active=False))
    third = f"{point}:3"  # the batch with the applications
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=third, **before)
    assert killed.code == -signal.SIGKILL
    again = run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C14", **after)
    assert again.code == (0 if point == "C11" else -signal.SIGKILL)

    assert_nothing_is_lost_or_twice(partial(run, **after), small.parent)

    journals = list((small.parent / ".reconciler").glob("apply-*.jsonl"))
    assert len(journals) == 2
    assert [path.read_bytes() for path in journals] == [b"", b""]


# Every point in the batch with the applications, and in the others one on each side of the write.
@pytest.mark.parametrize(
    ("point", "visit"),
    [
        *((point, 3) for point in ("C2", "C4", "C6", "C10", "C11", "S4", "S8")),
        *((point, visit) for point in ("C2", "S8") for visit in (2, 4)),
    ],
)
def test_a_kill_in_a_later_batch_is_healed_too(
    run: Run, small: Path, point: str, visit: int
) -> None:
    """Organizations, projects and the rest are batches of their own."""
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT=f"{point}:{visit}")

    assert_nothing_is_lost_or_twice(run, small.parent)


@pytest.mark.parametrize(
    "point",
    [*RECONCILER_POINTS, "S4", "S8"],  # a commit is the same whatever it writes: see the creates
)
def test_a_kill_while_an_application_moves_to_a_secret_is_healed(
    run: Run, small: Path, point: str
) -> None:
    """Between the update and its secret, nobody could sign in; the next apply mends that."""
    run("apply", "--auto-approve")
    write(small / "spa.yaml", an_application("spa"))

    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)

    assert (killed.code, left_to(small.parent)) == (-signal.SIGKILL, b"")
    assert_nothing_is_lost_or_twice(run, small.parent)


def test_a_second_kill_leaves_the_rest_of_a_create_to_the_third_run(run: Run, small: Path) -> None:
    """What is made to be inactive may still be deactivated: no guard asks about it."""
    run("apply", "--auto-approve")
    write(small / "off.yaml", with_metadata(an_idp("off"), active=False, critical=True))
    for point in ("C4", "C2"):
        assert run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point).code == -signal.SIGKILL

    assert_nothing_is_lost_or_twice(run, small.parent)
    assert left_to(small.parent) == b""


def test_a_crash_leaves_no_lock_that_keeps_the_next_apply_out(run: Run, small: Path) -> None:
    """A dead process on this machine holds nothing."""
    run("apply", "--auto-approve")
    write(small / "extra.yaml", an_application("extra"))
    run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C1")

    assert run("apply", "--auto-approve").code == 0


def test_no_secret_of_a_run_is_anywhere_but_in_the_sink(run: Run, small: Path) -> None:
    """Not in the store, the journal, a plan, or any output: raw or encoded, nor for a moment."""
    state = small.parent / ".reconciler"
    contents: list[bytes] = []
    secrets: set[str] = set()

    def note(*arguments: str, **more: str) -> None:
        contents.append(run(*arguments, **more).all.encode())
        for path in [path for path in state.rglob("*") if path.is_file()]:
            if path.parent.name == "secrets" and path.suffix == ".json":
                secrets.add(json.loads(path.read_text())["client_secret"])
            else:
                contents.append(path.read_bytes())

    note("apply", "--auto-approve", "--format", "json", RECONCILER_CRASHPOINT="C6")
    note("apply", "--auto-approve")
    write(small / "spa.yaml", an_application("spa"))
    note("plan", "--format", "json")
    note("apply", "--auto-approve", RECONCILER_CRASHPOINT="C10")
    note("apply", "--auto-approve", "--format", "json")
    note("outputs", "--format", "json")
    note("store", "verify")
    assert len(secrets) == 2, "that of web and that of spa, delivered twice"

    for secret in secrets:
        for form in _forms(secret):
            assert not any(form in content for content in contents)


def _forms(secret: str) -> list[bytes]:
    import base64

    raw = secret.encode()
    return [raw, base64.b64encode(raw)[:-2], raw.hex().encode(), raw[::-1]]
