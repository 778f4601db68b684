"""The service in this process."""

from __future__ import annotations

from pathlib import Path

from reconciler.cli.connection import Connection
from reconciler.cli.embedded import local_caller, open_wire
from reconciler.service.operations.callers import Role


def test_who_may_write_the_file_may_do_everything() -> None:
    caller = local_caller()

    assert caller.role is Role.ADMIN
    assert caller.name.startswith("local:")


def test_the_folder_of_a_new_store_is_kept_out_of_git(tmp_path: Path) -> None:
    with open_wire(Connection(f"sqlite:{tmp_path}/new/identity.db"), read_only=False):
        assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"
