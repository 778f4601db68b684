"""How long the service keeps the secret of a killed run: as ``--keep-owed`` says."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from tests.acceptance.conftest import Run
from tests.running import running_server

HOUR = 3600 * 10**6
AFTER_THE_COMMIT = "C4:3"  # organization, project, and then all that is in them


def hours_kept(store: Path) -> float:
    """Return for how long the one secret is kept that is owed."""
    with closing(open_sqlite(store, read_only=True)) as service, service.store.snapshot() as view:
        owners = {row.organization for row in view.all_objects()}
        (owed,) = [row for owner in owners for row in view.owed_page(owner)]
    return (owed.expires_at - owed.made_at) / HOUR


def test_an_embedded_store_keeps_a_secret_for_as_long_as_is_said(run: Run, small: Path) -> None:
    keeping = ("apply", "--auto-approve", "--keep-owed", "2h")

    killed = run(*keeping, RECONCILER_CRASHPOINT=AFTER_THE_COMMIT)

    assert killed.code == -signal.SIGKILL
    store = small.parent / ".reconciler" / "identity.db"
    assert hours_kept(store) == pytest.approx(2, abs=1 / 60)


def test_a_server_keeps_a_secret_for_as_long_as_is_said(run: Run, small: Path) -> None:
    folder = small.parent / "served"
    folder.mkdir()
    with running_server(folder, "--keep-owed", "3h") as server:
        killed = run(
            "apply", "--auto-approve", "--service", server.address, "--secrets-to", "file:secrets",
            RECONCILER_TOKEN=server.token("admin"), RECONCILER_CRASHPOINT="C4",
        )  # fmt: skip

        assert killed.code == -signal.SIGKILL
        assert hours_kept(server.store) == pytest.approx(3, abs=1 / 60)
