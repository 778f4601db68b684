"""The rights of each role, as docs/roles.md lists them and as a served service grants them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.table import operations
from tests.acceptance.conftest import ORGANIZATION, ROOT, Run, an_action, an_application, write
from tests.program import program
from tests.running import Server, running_server

PAGE = (ROOT / "docs" / "roles.md").read_text(encoding="utf-8")
ROLES = [role.value for role in Role]
ARGUMENTS = {
    "plan": ["plan"],
    "drift": ["drift"],
    "outputs": ["outputs"],
    "export": ["export", "--organization", "acme"],
    "history": ["history", "Action/acme/greet"],
    "secret list": ["secret", "list"],
    "apply": ["apply", "--auto-approve"],
    "undo --out": ["undo", "--last", "--out", "undo.plan"],
    "undo": ["undo", "--last", "--auto-approve"],
    "pause, resume": ["pause", "--reason", "x", "--organization", "acme"],
    "secret deliver": ["secret", "deliver"],
    "secret rotate": ["secret", "rotate", "acme/shop/web", "--auto-approve", "--despite-pause"],
    "apply, with a new organization": ["apply", "new", "--auto-approve"],
}


def rows_under(heading: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of the table in a section: its first cell, and the others by role."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        first, *others = [cell.strip() for cell in line.strip("|").split(" | ")]
        if re.match(r"\| `", line):
            yield first.replace("`", ""), dict(zip(ROLES, others, strict=True))


def test_the_table_of_operations_is_that_of_the_code() -> None:
    """A permission that moves to another role moves there, too."""
    may = {
        row.name: {
            role.value: "yes" if Caller("x", role).may(row.permission) else "no" for role in Role
        }
        for row in operations().values()
    }

    assert dict(rows_under("Operations")) == may, "run `make api`"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve a store to which the tree was applied."""
    folder = tmp_path_factory.mktemp("roles")
    manifests = folder / "tree" / "manifests"
    write(manifests / "o.yaml", ORGANIZATION)
    write(manifests / "web.yaml", an_application("web"))
    write(manifests / "greet.yaml", an_action())
    write(folder / "tree" / "new" / "o.yaml", ORGANIZATION.replace("acme", "umbrella"))
    with running_server(folder) as running:
        run = against(running, "admin", folder / "tree")
        assert run("apply", "--auto-approve").code == 0
        yield running


def against(server: Server, role: str, folder: Path) -> Run:
    return partial(
        program(folder), RECONCILER_SERVICE=server.address, RECONCILER_TOKEN=server.token(role),
        RECONCILER_SECRETS_TO="file:kept",
    )  # fmt: skip


def test_the_table_of_commands_is_what_a_service_does(server: Server) -> None:
    """Each command with a token of each role: what is refused ends with 7 and names the role."""
    told = dict(rows_under("Commands"))
    assert set(told) == set(ARGUMENTS)
    folder = server.store.parent / "tree"

    for command, arguments in ARGUMENTS.items():
        if command == "secret deliver":  # only where a secret is owed is there something to refuse
            admin = against(server, "admin", folder)
            admin(*ARGUMENTS["secret rotate"], RECONCILER_CRASHPOINT="C6")
        for role in ROLES:
            write(folder / "manifests" / "greet.yaml", an_action(timeout=f"{ROLES.index(role)}s"))
            ran = against(server, role, folder)(*arguments)

            may = told[command][role] == "yes"
            assert (ran.code != 7) is may, (command, role, ran.all)
            if may:
                assert ran.code == 0, (command, role, ran.all)
            else:
                assert re.search(r"with the role (editor|admin)", ran.err), ran.err


def test_the_first_token_is_one_that_makes_the_organization(run: Run, tmp_path: Path) -> None:
    """A token for an organization cannot be made before it; after it, an editor's will do."""
    create = ("token", "create", "--service", "sqlite:identity.db", "--name")
    write(tmp_path / "manifests" / "o.yaml", ORGANIZATION)
    early = run(*create, "ci", "--role", "editor", "--organization", "acme")
    assert (early.code, "Apply its manifest first" in early.err) == (1, True)

    with running_server(tmp_path) as server:
        known = {"RECONCILER_SERVICE": server.address, "RECONCILER_SECRETS_TO": "file:kept"}
        write(tmp_path / "manifests" / "o.yaml", ORGANIZATION.replace("acme", "umbrella"))
        admin = run(*create, "first", "--role", "admin", "--expires", "1h").out.strip()
        assert run("apply", "--auto-approve", RECONCILER_TOKEN=admin, **known).code == 0
        scoped = ("--organization", "umbrella")
        editor = run(*create, "apply", "--role", "editor", *scoped).out.strip()
        viewer = run(*create, "plan", "--role", "viewer", *scoped).out.strip()
        greet = an_action().replace("acme", "umbrella")
        write(tmp_path / "manifests" / "greet.yaml", greet)
        assert run("plan", RECONCILER_TOKEN=viewer, **known).code == 0
        assert run("apply", "--auto-approve", RECONCILER_TOKEN=editor, **known).code == 0
