"""A store file that is taken away under those who use it: told, and no write is lost unseen."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.acceptance.conftest import Run
from tests.raw_http import Raw, exchange, request
from tests.running import Server, running_server

ACTIONS = "/management/v1/actions"


def ask(server: Server, verb: str, path: str, body: bytes = b"") -> Raw:
    headers = {**server.bearer(), "content-type": "application/json"}
    answer = exchange(server.port, request(verb, path, headers, body))
    assert answer is not None
    return answer


def create(server: Server, name: str) -> Raw:
    fields = {"name": name, "script": f"function {name}() {{}}"}
    return ask(server, "POST", ACTIONS, json.dumps(fields).encode())


def test_a_server_without_its_file_acknowledges_nothing_and_goes_on_with_it(tmp_path: Path) -> None:
    """Moved away: 503, not ready, told once, no file made. Moved back: used again at once."""
    with running_server(tmp_path) as server:
        assert create(server, "first").status == 200
        away = server.store.with_name("away.db")
        server.store.rename(away)

        refused = [create(server, f"lost{number}") for number in range(3)]

        assert [answer.status for answer in refused] == [503] * 3
        assert refused[0].json["details"][0]["id"] == "store.unavailable"
        assert str(tmp_path) not in refused[0].body.decode()
        assert ask(server, "GET", "/readyz").status == 503
        assert ask(server, "GET", "/healthz").status == 200
        assert ask(server, "POST", f"{ACTIONS}/_search").status == 503
        assert not server.store.exists()
        said = (tmp_path / "stderr.txt").read_text()
        assert said.count("was deleted, moved or replaced") == 1
        assert "Put the file back under its name" in said

        away.rename(server.store)

        assert ask(server, "GET", "/readyz").status == 200
        assert create(server, "second").status == 200
        server.store.unlink()
        assert create(server, "third").status == 503
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        assert not server.store.exists()


def test_an_apply_whose_store_is_deleted_meanwhile_says_so(run: Run, small: Path) -> None:
    """Its log stays: no command takes the store for a new one, and it is not played into one."""
    store = small.parent / ".reconciler" / "identity.db"
    thief = f"exec:sh -c 'cat > /dev/null; rm -f {store}'"  # runs once the secret is made

    told = run("apply", "--auto-approve", "--secrets-to", thief)

    assert "SECRET-NOT-ACKNOWLEDGED" in told.out
    assert "was deleted, moved or replaced" in told.out
    assert not store.exists()
    for command in (["plan"], ["apply", "--auto-approve"], ["drift"], ["store", "verify"]):
        again = run(*command)
        assert again.code == 1
        assert "is missing, but its log is still there" in again.err
    looked = run("doctor")
    assert looked.code == 1
    assert "is missing, but its log is still there" in " ".join(looked.out.split())
    store.with_name(store.name + "-wal").unlink()
    assert run("apply", "--auto-approve").code == 0
