"""What goes wrong in the first hour against a service elsewhere, each with words of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from tests.acceptance.conftest import Run, an_action, write
from tests.running import Server, running_server

WRONG = "rct_that-nobody-made"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with the organization acme, and a token that has expired."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        with closing(open_sqlite(running.store)) as service, service.store.transaction() as tx:
            for row in tx.tokens():
                if row.name == "editor":
                    tx.put_token(row._replace(expires_at=1))
        yield running


@pytest.fixture
def manifests(tree: Path) -> Path:
    """Return manifests with one action of the organization acme."""
    write(tree / "greet.yaml", an_action())
    return tree


def test_an_expired_token_and_an_unknown_one_are_two_messages(
    run: Run, manifests: Path, server: Server
) -> None:
    """The one is made again, the other was copied wrong."""
    expired = run(
        "plan", RECONCILER_SERVICE=server.address, RECONCILER_TOKEN=server.token("editor")
    )
    unknown = run("plan", RECONCILER_SERVICE=server.address, RECONCILER_TOKEN=WRONG)

    assert (expired.code, unknown.code) == (7, 7)
    assert "the token has expired" in expired.err
    assert "`reconciler token create`" in expired.err
    assert "the token is not known to this service" in unknown.err


def test_a_refused_connection_and_an_unknown_host_are_two_messages(
    run: Run, manifests: Path
) -> None:
    """The one needs a service that runs, the other the right name."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    refused = run("plan", RECONCILER_SERVICE=f"http://127.0.0.1:{port}", RECONCILER_TOKEN=WRONG)
    unknown = run("plan", RECONCILER_SERVICE="https://id.invalid", RECONCILER_TOKEN=WRONG)

    assert (refused.code, unknown.code) == (1, 1)
    assert "connection refused, no server listens there" in refused.err
    assert "correct the host and the port in --service" in refused.err
    assert "the host id.invalid is unknown" in unknown.err
    assert "Correct the host in --service." in unknown.err
