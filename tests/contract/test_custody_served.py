"""Custody over the wires of a running server, and what is left in its files afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.service.build import open_sqlite
from tests.examples import Clock
from tests.running import Server
from tests.unit.service.asking import Asking
from tests.wires import WIRES, Answered, GrpcWeb, Json, Refused

RUN = ("x-reconciler-custody", "run-1")


def headers(server: Server, *more: tuple[str, str], by: str = "editor") -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {server.token(by)}"), *more]


def call(server: Server, operation: str, *more: tuple[str, str], **fields: Any) -> dict[str, Any]:
    wire = Json(server)
    outcome = wire.call(operation, fields, headers(server, *more))
    wire.close()
    assert isinstance(outcome, Answered), outcome
    return dict(outcome.fields)


@pytest.mark.parametrize("transport", WIRES)
def test_every_transport_carries_the_run(server: Server, transport: str) -> None:
    """As a header of HTTP, of gRPC-web, or as metadata; without it, nothing is kept."""
    here = {"organizationId": server.known.organization}
    wire = WIRES[transport](server)
    names = [f"{transport}-{number}" for number in range(3)]
    beside = [[], [RUN], [("x-reconciler-custody", "a b")]]
    outcomes = [
        wire.call(
            "AddOIDCApp", {"projectId": server.known.project, "name": name}, headers(server, *more)
        )
        for name, more in zip(names, beside, strict=True)
    ]
    made = outcomes[1]
    assert isinstance(made, Answered)
    target = {"projectId": server.known.project, "appId": made.fields["appId"]}
    newer = wire.call("RegenerateOIDCClientSecret", target, headers(server, RUN))
    wire.close()

    assert isinstance(outcomes[0], Answered)
    assert isinstance(outcomes[2], Refused)
    assert outcomes[2].code == 3
    assert isinstance(newer, Answered)
    listed = call(server, "ListOwedSecrets", **here)["owedSecrets"]
    (owed,) = [found for found in listed if found["name"].startswith(f"{transport}-")]
    assert (owed["name"], owed["run"], owed["madeBy"]) == (names[1], "run-1", "editor")
    lease = call(server, "AcquireLease", organization="acme", holder="me", seconds=60)["lease"]
    secrets = [{"id": owed["id"], "madeAt": owed["madeAt"]}]
    under = ("x-reconciler-lease", lease)
    (claimed,) = call(server, "ClaimSecrets", under, **here, secrets=secrets)["secrets"]
    call(server, "ReleaseLease", organization="acme", lease=lease)
    assert claimed["clientSecret"] == newer.fields["clientSecret"]
    call(server, "AcknowledgeSecrets", **here, secrets=secrets)


def test_answers_with_secrets_are_not_cached_and_not_logged(server: Server) -> None:
    """A proxy on the way, and who reads the log, must not have them."""
    address = f"/management/v1/projects/{server.known.project}/apps/oidc"
    answer = httpx.post(
        server.address + address, json={"name": "cached"}, headers=dict(headers(server, RUN))
    )
    made = answer.json()
    here = f"/reconciler/v1/organizations/{server.known.organization}/owed-secrets/_claim"
    lease = call(server, "AcquireLease", organization="acme", holder="me", seconds=60)["lease"]
    claimed = httpx.post(
        server.address + here,
        json={"secrets": [{"id": made["appId"], "madeAt": made["details"]["sequence"]}]},
        headers=dict(headers(server, ("x-reconciler-lease", lease))),
    )
    call(server, "ReleaseLease", organization="acme", lease=lease)

    secret = claimed.json()["secrets"][0]["clientSecret"]
    assert secret == made["clientSecret"]
    assert [each.headers["cache-control"] for each in (answer, claimed)] == ["no-store"] * 2
    log = server.store.with_name("stderr.txt").read_text(encoding="utf-8")
    assert "ClaimSecrets" in log
    assert secret not in log
    web = GrpcWeb(server)
    posted = web.post("/zitadel.management.v1.ManagementService/Healthz", b"\0\0\0\0\0")
    web.close()
    assert posted.headers["cache-control"] == "no-store"


def test_after_acknowledgement_nothing_is_left_in_the_files(tmp_path: Path) -> None:
    """Neither the secret nor its sealed bytes, in the store or in its log."""
    path = tmp_path / "identity.db"
    with closing(open_sqlite(path, create=True, now=Clock())) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        requests = [
            ask.request("AddOIDCApp", {"projectId": ask.project, "name": name, "custody": "r"})
            for name in "abc"
        ]
        made: list[Any] = list(service.call_many(requests))
        sealed = [sealed_bytes(path)]
        fields = {"organizationId": ask.organization}
        for answer in made:
            secrets = [{"id": answer["appId"], "madeAt": answer["details"]["sequence"]}]
            ask("AcknowledgeSecrets", **fields, secrets=secrets)
            sealed.append(sealed_bytes(path))
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert path.with_name("identity.db-wal").stat().st_size == 0
        content = path.read_bytes()

    assert [bool(each) for each in sealed] == [True, True, True, False]
    assert len(set(sealed)) == 4
    assert not any(each in content for each in sealed if each)
    assert not any(answer["clientSecret"].encode() in content for answer in made)


def sealed_bytes(path: Path) -> bytes:
    """Return the middle of the only seal in a store, or nothing."""
    with closing(sqlite3.connect(path)) as looked_at:
        found = [sealed for (sealed,) in looked_at.execute("SELECT sealed FROM seals")]
    return bytes(found[0][-48:]) if found else b""


def test_a_backup_keeps_what_is_owed_and_not_the_key(tmp_path: Path) -> None:
    """Beside the key of the store, a restored backup gives the secret; alone, it does not."""
    path, copy = tmp_path / "identity.db", tmp_path / "copy" / "identity.db"
    copy.parent.mkdir()
    with closing(open_sqlite(path, create=True, now=Clock())) as service:
        ask = Asking(service, Clock())
        ask.prepare()
        made = ask.an_app(custody="r")
        service.store.backup(copy)
    asked = [{"id": made["appId"], "madeAt": made["details"]["sequence"]}]

    for key in (None, tmp_path / "identity.db.seal-key"):
        with closing(open_sqlite(copy, seal_key_file=key, now=Clock())) as service:
            again = Asking(service, Clock(), ask.organization, ask.project)
            lease = again("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
            fields = {"organizationId": ask.organization, "secrets": asked, "under": lease}
            (claimed,) = again("ClaimSecrets", **fields)["secrets"]
            again("ReleaseLease", named="acme", lease=lease)
        if key is None:
            assert claimed["error"]["code"] == 9
    assert claimed["clientSecret"] == made["clientSecret"]
