"""A server that is killed at every step of a write to PostgreSQL."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_postgres
from reconciler.service.projections.maintenance import verify
from tests.faults.writers import call
from tests.postgres_server import PostgresServer
from tests.warm import SECONDS, Copy

WRITER = """
import json, sys
from pathlib import Path
from reconciler.service.build import open_postgres
from tests.faults.writers import call

address, key, project = sys.argv[1:]
service = open_postgres(address, seal_key_file=Path(key))
for number in range(3):
    request = call("AddOIDCApp", "", f"k{number}", projectId=project, name=f"a{number}")
    print(json.dumps(service.call(request)), flush=True)
"""


@pytest.mark.parametrize("point", ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8"])
def test_a_kill_loses_nothing_that_was_acknowledged_and_a_retry_doubles_nothing(
    postgres: PostgresServer, tmp_path: Path, point: str
) -> None:
    """The second of three writes is where it happens; the next server does them all."""
    address, key = postgres.new_address(), tmp_path / "seal-key"
    writer = tmp_path / "writer.py"
    writer.write_text(WRITER, encoding="utf-8")
    with closing(open_postgres(address, seal_key_file=key, create=True)) as service:
        acme = str(service.call(call("AddOrg", name="acme"))["id"])
        project = service.call(call("AddProject", acme, name="shop"))["id"]

        killed = Copy(
            [str(writer), address, str(key), project],
            tmp_path,
            {"RECONCILER_CRASHPOINT": f"{point}:2"},
        )
        out, _ = killed.communicate(SECONDS)
        acknowledged = [json.loads(line) for line in out.splitlines()]
        answers = [
            service.call(call("AddOIDCApp", "", f"k{n}", projectId=project, name=f"a{n}"))
            for n in range(3)
        ]

        assert killed.returncode == -signal.SIGKILL
        assert len(acknowledged) == 1
        assert answers[0] == acknowledged[0]
        assert all(answer["clientSecret"] for answer in answers)
        assert verify(service.store) == []
        with service.store.snapshot() as view:
            assert view.head(acme).events == 5
