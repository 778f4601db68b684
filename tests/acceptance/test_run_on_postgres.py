"""The loop without a person, against a server on PostgreSQL."""

from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path

from reconciler.service.build import open_postgres
from reconciler.service.projections.maintenance import verify
from tests.acceptance.conftest import Run, an_action
from tests.acceptance.test_run import SMALL, WITHIN, Loop, following
from tests.direct import DirectDatabase
from tests.postgres_server import PostgresServer
from tests.repository import Repository
from tests.served import a_token, serving

MANY = [f"a{number}" for number in range(12)]


def test_a_run_follows_its_branch_on_a_server_with_a_database(
    run: Run, tmp_path: Path, postgres: PostgresServer
) -> None:
    """Pushes, edits by hand, a pause and a kill, in one life of a tree; then every chain holds."""
    key, store = tmp_path / "seal-key", postgres.new_address()
    repository = Repository.new(tmp_path / "origin")
    first_commit = repository.commit(
        SMALL | {f"manifests/{name}.yaml": an_action(name) for name in MANY}
    )
    with serving(tmp_path, store, "--seal-key-file", str(key)) as served:
        token = a_token(run, served, "--name", "robot", "--role", "admin")
        known = {"RECONCILER_TOKEN": token}
        loop = Loop(repository, tmp_path, DirectDatabase(store, key), run, served.address, known)
        leads = following(loop, "apply", "--interval", "1s")
        leads.until(lambda state: state["commit_applied"] == first_commit)
        watches = following(loop, "apply", "--interval", "1s", state="other")
        watches.until(lambda state: state["conditions"] == ["watching"])

        good = loop.push({"manifests/greet.yaml": an_action(timeout="5s")})
        leads.until(lambda state: state["commit_applied"] == good and not state["conditions"])
        assert loop.applied() == good
        for condition, files in {
            "invalid": {"manifests/greet.yaml": an_action(timeout="soon")},
            "blocked": {f"manifests/{name}.yaml": an_action(name, timeout="6s") for name in MANY}
            | {"manifests/greet.yaml": an_action(timeout="5s")},
        }.items():
            loop.push(files)
            leads.until(lambda state, condition=condition: condition in state["conditions"])
            loop.direct.change("greet", timeout="1s")
            leads.until(lambda _: loop.held("greet")["spec"]["timeout"] == "5s")
            assert loop.applied() == good
            assert loop.held("a0")["spec"]["timeout"] == "20s"

        here = {**known, "RECONCILER_SERVICE": served.address}
        paused = run("pause", "--reason", "incident", "--for", "1h", **here)
        assert paused.code == 0, paused.all
        leads.until(lambda state: "paused" in state["conditions"])
        back = {f"manifests/{name}.yaml": an_action(name) for name in MANY}
        wanted = loop.push(back | {"manifests/greet.yaml": an_action(timeout="7s")})
        loop.direct.change("greet", timeout="2s")
        leads.until(lambda state: state["commit_seen"] == wanted)
        assert loop.held("greet")["spec"]["timeout"] == "2s"
        assert loop.applied() == good
        assert run("resume", **here).code == 0
        leads.until(lambda state: state["commit_applied"] == wanted)
        assert loop.held("greet")["spec"]["timeout"] == "7s"

        leads.process.send_signal(signal.SIGKILL)
        leads.process.wait(WITHIN)
        last = loop.push({"manifests/greet.yaml": an_action(timeout="9s")})
        watches.until(lambda state: state["commit_applied"] == last)
        assert loop.held("greet")["spec"]["timeout"] == "9s"
        assert loop.applied() == last
        watches.process.send_signal(signal.SIGTERM)
        assert watches.process.wait(WITHIN) == 128 + signal.SIGTERM

    with closing(open_postgres(store, seal_key_file=key)) as service:
        assert list(verify(service.store)) == []
