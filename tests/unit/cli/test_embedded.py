"""The service in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.cli.connection import Connection
from reconciler.cli.embedded import local_caller, open_service, open_wire
from reconciler.errors import ServiceError
from reconciler.resources.call import Call
from reconciler.service.operations.callers import Role
from reconciler.service_client.wire import Answer, WireRefusal


def test_who_may_write_the_file_may_do_everything() -> None:
    caller = local_caller()

    assert caller.role is Role.ADMIN
    assert caller.name.startswith("local:")


def test_a_store_is_made_only_to_write(tmp_path: Path) -> None:
    connection = Connection(f"sqlite:{tmp_path}/new/identity.db")

    with pytest.raises(ServiceError, match="there is no store"), open_service(connection):
        pass
    assert not (tmp_path / "new").exists()

    with open_wire(connection, read_only=False):
        assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"


def test_another_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "identity.db").write_text("not a database, and long enough to be read as one")

    with (
        pytest.raises(ServiceError),
        open_service(Connection(f"sqlite:{tmp_path}/identity.db")),
    ):
        pass


def test_answers_and_refusals_come_in_the_order_of_the_calls(tmp_path: Path) -> None:
    calls = [Call("AddOrg", {"name": name}) for name in ("acme", "acme", "other")]

    with open_wire(Connection(f"sqlite:{tmp_path}/identity.db"), read_only=False) as wire:
        kinds = [type(reply) for reply in wire.send(calls)]

    assert kinds == [Answer, WireRefusal, Answer]
