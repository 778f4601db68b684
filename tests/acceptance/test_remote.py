"""The main job against a server: on SQLite and PostgreSQL, and through a crash of the server."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, ROOT, Run, an_action, an_application, write
from tests.program import started
from tests.served import Served, a_token, serving
from tests.warm import Copy

MANIFESTS = str(ROOT / "manifests")


@pytest.fixture(params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """Serve each kind of store that a server can have."""
    if request.param == "sqlite":
        with serving(tmp_path, "sqlite:served/identity.db") as server:
            yield server
        return
    address = request.getfixturevalue("postgres").new_address()
    with serving(tmp_path, address, "--seal-key-file", str(tmp_path / "seal-key")) as server:
        yield server


def test_the_example_is_applied_with_a_token_of_one_organization(
    run: Run, served: Served, tmp_path: Path
) -> None:
    """The organization is there already; its team needs no rights beyond it."""
    organization = f"{MANIFESTS}/acme/organization.yaml"
    admin = a_token(run, served, "--name", "root", "--role", "admin")
    made = run("apply", organization, "--auto-approve", "--service", served.address,
               RECONCILER_TOKEN=admin)  # fmt: skip
    assert made.code == 0, made.all
    editor = a_token(run, served, "--name", "team", "--role", "editor", "--organization", "acme")
    remote = {"RECONCILER_TOKEN": editor, "RECONCILER_SERVICE": served.address}

    planned = run("plan", MANIFESTS, "--detailed-exitcode", **remote)
    refused = run("apply", MANIFESTS, "--auto-approve", **remote)
    applied = run("apply", MANIFESTS, "--auto-approve", "--secrets-to", "file:kept", **remote)
    again = run("plan", MANIFESTS, "--detailed-exitcode", **remote)

    assert planned.code == 2
    assert "SECRET-NO-SINK" in planned.err
    assert refused.code == 3
    assert applied.code == 0, applied.all
    assert "16 created" in applied.out
    assert again.code == 0
    assert len(list((tmp_path / "kept").glob("*.json"))) == 2
    assert len(run("outputs", MANIFESTS, "--format", "json", **remote).json["applications"]) == 8


def test_the_server_is_killed_in_the_middle_of_an_apply_and_it_ends_well(
    run: Run, served: Served, tree: Path, tmp_path: Path
) -> None:
    """The apply waits, asks again with the same keys, and nothing is lost or made twice."""
    write(tree / "o.yaml", ORGANIZATION)
    for number in range(120):
        write(tree / f"app{number}.yaml", an_application(f"app{number}"))
        write(tree / f"act{number}.yaml", an_action(f"act{number}"))
    admin = a_token(run, served, "--name", "root", "--role", "admin")
    remote = {"RECONCILER_TOKEN": admin, "RECONCILER_SERVICE": served.address}

    applying = started(tmp_path, "apply", "--auto-approve", "--secrets-to", "file:kept", **remote)
    for _ in range(3):
        _wait_for_growth(tmp_path / "kept", applying)
        served.stop(signal.SIGKILL)
        served.start()
    said = "".join(applying.communicate(120))

    assert applying.returncode == 0, said[-3000:]
    assert "0 remaining" in said
    assert "Traceback" not in said
    assert run("plan", "--detailed-exitcode", **remote).code == 0
    assert len(list((tmp_path / "kept").glob("*.json"))) == 120
    verified = run("store", "verify", "--service", served.service)
    assert verified.code == 0, verified.all


def _wait_for_growth(folder: Path, applying: Copy) -> None:
    """Wait until some more secrets were delivered, or the apply is done."""
    before = len(list(folder.glob("*.json"))) if folder.exists() else 0
    deadline = time.monotonic() + 30
    while applying.poll() is None and time.monotonic() < deadline:
        if folder.exists() and len(list(folder.glob("*.json"))) > before:
            return
        time.sleep(0.005)
