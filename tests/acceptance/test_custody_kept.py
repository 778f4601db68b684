"""A run that is killed between a create and its delivery: the service keeps the secret."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from reconciler.cli.embedded import InProcessWire, local_caller
from reconciler.service.build import open_sqlite
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import ServiceClient, Written
from reconciler.state import OwedSecret
from tests.acceptance.conftest import Run
from tests.http_clients import http_client
from tests.running import running_server

AFTER_THE_COMMIT = "C4:3"  # organization, project, and then all that is in them


@contextmanager
def embedded_client(store: Path) -> Iterator[ServiceClient]:
    """Open a client of a store, as another command would."""
    with closing(open_sqlite(store)) as service:
        yield OperationsClient(InProcessWire(service, local_caller()), this_process())


def claim(client: ServiceClient) -> tuple[Sequence[OwedSecret], Sequence[Written]]:
    """Return what is owed in acme, and what claiming it gave."""
    owed = client.observe(["acme"]).owed
    client.acquire(["acme"])
    found = [each for each in client.claim(owed, {"tree": "later"}) if isinstance(each, Written)]
    client.release()
    return owed, found


def kept(owed: dict[str, Any]) -> timedelta:
    return datetime.fromisoformat(owed["expires"]) - datetime.fromisoformat(owed["since"])


def test_an_embedded_store_keeps_the_secret_of_a_killed_run(run: Run, small: Path) -> None:
    """As long as --keep-owed says, sealed, through a rebuild, and with no journal at all."""
    store = small.parent / ".reconciler" / "identity.db"
    killed = run(
        "apply", "--auto-approve", "--keep-owed", "2h", RECONCILER_CRASHPOINT=AFTER_THE_COMMIT
    )
    assert killed.code == -signal.SIGKILL
    assert run("store", "rebuild").code == 0

    with embedded_client(store) as client:
        (owed,), (claimed,) = claim(client)
    assert (owed.ref.name, owed.tree, owed.lost) == ("web", "default", False)
    assert owed.by.startswith("local:")
    assert claimed.client_secret is not None
    secret = claimed.client_secret.reveal()
    assert secret.encode() not in store.read_bytes()
    with closing(open_sqlite(store, read_only=True)) as service, service.store.snapshot() as view:
        (row,) = view.owed([owed.id])
    assert abs(row.expires_at - row.made_at - 2 * 3600 * 10**6) < 60 * 10**6
    history = run("history", "OidcApplication", "acme/shop/web")
    assert "application.secret.claimed" in history.out
    assert "tree later" in history.out
    assert secret not in history.all
    events = json.loads(run("history", "OidcApplication", "acme/shop/web", "--format", "json").out)[
        "events"
    ]
    assert [event["type"] for event in events] == [
        "application.added",
        "application.secret.claimed",
    ]
    assert not any(event["secret_changed"] for event in events)
    assert run("store", "verify").code == 0
    with embedded_client(store) as client:
        client.observe(["acme"])
        client.acknowledge([claimed])
        assert client.observe(["acme"]).owed == ()


def test_a_server_keeps_the_secret_of_a_killed_run(run: Run, small: Path) -> None:
    """Another machine, with nothing but address and token, has it again."""
    folder = small.parent / "served"
    folder.mkdir()
    with running_server(folder, "--keep-owed", "3h") as server:
        told = {"RECONCILER_TOKEN": server.token("admin")}
        service = ("--service", server.address)
        killed = run(
            "apply", "--auto-approve", *service, "--secrets-to", "file:secrets", **told,
            RECONCILER_CRASHPOINT="C4",
        )  # fmt: skip
        assert killed.code == -signal.SIGKILL

        listing = httpx.get(
            f"{server.address}/reconciler/v1/organizations/{server.known.organization}/owed-secrets",
            headers=server.bearer("viewer"),
        ).json()
        (row,) = listing["owedSecrets"]
        assert (row["name"], row["tree"], row["madeBy"]) == ("web", "default", "admin")
        assert abs(kept(row) - timedelta(hours=3)) < timedelta(minutes=1)
        with http_client(server.address, server.token("editor")) as client:
            (owed,), (claimed,) = claim(client)
            assert (owed.id, owed.run) == (row["id"], row["run"])
            assert claimed.client_secret is not None
            client.acknowledge([claimed])
            assert client.observe(["acme"]).owed == ()
        history = run("history", "OidcApplication", "acme/shop/web", *service, **told)
        assert "application.secret.claimed  by editor" in history.out
        log = (folder / "stderr.txt").read_text(encoding="utf-8")
        assert claimed.client_secret.reveal() not in log + history.all


def test_how_long_a_secret_is_kept_is_from_an_hour_to_thirty_days(run: Run) -> None:
    """By flag or environment, of the server as of the commands with a store of their own."""
    for command in (("serve",), ("apply", "--auto-approve"), ("secret", "rotate", "a/b/c")):
        for value in ("59m", "31d", "x"):
            refused = run(*command, RECONCILER_KEEP_OWED=value)
            assert (refused.code, refused.out) == (1, "")
            assert "--keep-owed" in refused.err
            assert run(*command, "--keep-owed", value).err == refused.err
