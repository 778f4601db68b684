"""Four servers on one PostgreSQL, and sixty-four writers who all want the same names."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx

from reconciler.service.build import open_postgres
from reconciler.service.projections.maintenance import verify
from tests.acceptance.conftest import Run
from tests.plain_http import NO_TRUST, plain_client
from tests.postgres_server import PostgresServer
from tests.served import a_token, serving

# Three rounds let each name be asked for in both spellings, by writers of every server.
SERVERS, WRITERS, ORGANIZATIONS, NAMES, ROUNDS = 4, 64, 8, 5, 3
MADE, TAKEN, MOVED_ON = 200, 409, 409


class Writer(threading.Thread):
    """Makes and changes actions in one organization, over one of the servers."""

    def __init__(self, number: int, address: str, token: str, organizations: list[str]) -> None:
        super().__init__()
        self._number = number
        self._address = address
        self._headers = {
            "authorization": f"Bearer {token}",
            "x-service-orgid": organizations[number % ORGANIZATIONS],
        }
        self.seen: Counter[int] = Counter()
        self.made: list[str] = []

    def run(self) -> None:
        with plain_client(self._address, headers=self._headers, timeout=60) as client:
            for turn in range(ROUNDS):
                name = f"contended-{(self._number // ORGANIZATIONS + turn) % NAMES}"
                body = {"name": name.upper() if turn % 2 else name, "script": "function f() {}"}
                answer = client.post("/management/v1/actions", json=body)
                self.seen[answer.status_code] += 1
                if answer.status_code == MADE:
                    self._change(client, answer.json())

    def _change(self, client: httpx.Client, made: dict[str, Any]) -> None:
        """Change what was made twice from the same state: only one of the two may count."""
        self.made.append(made["id"])
        expected = {"if-match": f'"{made["details"]["sequence"]}"'}
        codes = []
        for script in ("one()", "two()"):
            body = {"name": f"mine-{made['id']}", "script": script}
            answer = client.put(f"/management/v1/actions/{made['id']}", json=body, headers=expected)
            codes.append(answer.status_code)
        assert codes == [MADE, MOVED_ON]


def test_four_servers_agree_under_sixty_four_writers(
    run: Run, tmp_path: Path, postgres: PostgresServer
) -> None:
    """No name is held twice, no version is missing, and every chain holds."""
    address, key = postgres.new_address(), tmp_path / "seal-key"
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(tmp_path, address, "--seal-key-file", str(key)))
            for _ in range(SERVERS)
        ]
        token = a_token(run, servers[0], "--name", "root", "--role", "admin")
        admin = {"authorization": f"Bearer {token}"}
        organizations = [
            httpx.post(
                f"{servers[0].address}/management/v1/orgs",
                json={"name": f"o{n}"},
                headers=admin,
                verify=NO_TRUST,
            ).json()["id"]
            for n in range(ORGANIZATIONS)
        ]
        writers = [
            Writer(number, servers[number % SERVERS].address, token, organizations)
            for number in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(120)

    seen = sum((writer.seen for writer in writers), Counter())
    made = [one for writer in writers for one in writer.made]
    assert set(seen) <= {MADE, TAKEN}
    assert sum(seen.values()) == WRITERS * ROUNDS
    assert len(made) == len(set(made)) == seen[MADE] > 0
    with closing(open_postgres(address, seal_key_file=None, create=False, read_only=True)) as held:
        assert list(verify(held.store)) == []
        with held.store.snapshot() as view:
            names = Counter((row.parent, row.folded) for row in view.all_objects())
            versions = {one: [e.version for e in view.read_stream(one)] for one in made}
    assert set(names.values()) == {1}
    assert set(map(tuple, versions.values())) == {(1, 2, 3)}  # added, renamed, changed
