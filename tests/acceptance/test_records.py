"""The record that a commit was applied: by a complete apply of a clean commit, and no other."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from reconciler.service_client.client import OperationsClient
from tests.acceptance.conftest import Run, an_action, write
from tests.http_clients import http_client
from tests.program import program
from tests.rows import each_row
from tests.running import running_server
from tests.unit.cli.test_manifests import git

Record = Mapping[str, Any]


@pytest.fixture
def commit(small: Path) -> Callable[[], str]:
    """Make a repository of the tree's folder; return what commits all of it."""
    top = small.parent
    git(top, "init", "--quiet", "--initial-branch", "main")
    write(top / ".gitignore", ".reconciler\n")

    def all_of_it() -> str:
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--allow-empty", "--message", "a change")
        return git(top, "rev-parse", "HEAD")

    return all_of_it


def records(folder: Path) -> Sequence[Record]:
    """Return what every record in the log says, oldest first."""
    with closing(sqlite3.connect(folder / ".reconciler" / "identity.db")) as store:
        rows = store.execute(
            "SELECT payload, context FROM events WHERE type = 'organization.tree.applied'"
            " ORDER BY position"
        )
        return [{**json.loads(payload), "of": json.loads(context)} for payload, context in rows]


def said(folder: Path) -> Sequence[tuple[str, str, str]]:
    return [(each["tree"], each["commit"], each["outcome"]) for each in records(folder)]


def test_a_commit_is_recorded_once_it_is_applied(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """Once for each: also one that changes nothing, and one that only removes a manifest."""
    top, first = small.parent, commit()
    assert run("apply", "--auto-approve").code == 0
    assert run("apply", "--auto-approve").code == 0
    (top / "README").write_text("x")
    second = commit()
    assert run("apply", "--auto-approve", "--tree", "default").code == 0
    (small / "greet.yaml").unlink()
    third = commit()
    assert run("apply", "manifests", "--auto-approve").code == 0

    assert said(top) == [
        ("default", first, "changed"),
        ("default", second, "unchanged"),
        ("default", third, "unchanged"),
    ]
    assert records(top)[0]["of"]["revision"] == first
    assert records(top)[0]["of"]["plan"].startswith("sha256:")
    assert run("store", "verify").code == 0
    history = run("history", "Organization", "acme").out
    assert f"tree default, commit {third}, revision {third}, plan sha256:" in history


def test_the_record_is_of_the_commit_and_not_of_what_a_job_claims(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """A revision is a remark, from the command line or the surroundings of a job."""
    head = commit()

    run("apply", "--auto-approve", "--revision", "f" * 40, GITHUB_SHA="e" * 40)

    assert said(small.parent) == [("default", head, "changed")]
    assert records(small.parent)[0]["of"]["revision"] == "f" * 40


def _edited(small: Path) -> tuple[str, ...]:
    write(small / "greet.yaml", an_action("greet", timeout="3s"))
    return ()


def _not_added(small: Path) -> tuple[str, ...]:
    write(small / "new.yaml", an_action("added"))
    return ()


def _edited_elsewhere(small: Path) -> tuple[str, ...]:
    (small.parent / ".gitignore").write_text(".reconciler\n*.log\n")
    return ()


def _ignored(small: Path) -> tuple[str, ...]:
    git(small.parent, "config", "core.excludesFile", str(small.parent / ".git" / "ignored"))
    (small.parent / ".git" / "ignored").write_text("local.yaml\n")
    write(small / "local.yaml", an_action("local"))
    return ()


def _ignored_json(small: Path) -> tuple[str, ...]:
    (small.parent / ".git" / "info" / "exclude").write_text("local.json\n")
    write(small / "local.json", an_action("local"))
    return ()


def _ignored_script(small: Path) -> tuple[str, ...]:
    (small.parent / ".git" / "info" / "exclude").write_text("scripts/\n")
    action = json.loads(an_action("local"))
    write(small / "local.yaml", json.dumps({**action, "spec": {"scriptFile": "scripts/local.js"}}))
    write(small / "scripts" / "local.js", "function local() {}\n")
    return _committed(small)


def _committed(small: Path) -> tuple[str, ...]:
    git(small.parent, "add", "--all")
    git(small.parent, "commit", "--quiet", "--message", "another change")
    return ()


def _ignored_configuration(small: Path) -> tuple[str, ...]:
    (small.parent / ".git" / "info" / "exclude").write_text("reconciler.yaml\n")
    return _configuration_not_added(small)


def _configuration_not_added(small: Path) -> tuple[str, ...]:
    configuration = {"apiVersion": "reconciler/v1", "kind": "Configuration", "tree": "default"}
    write(small.parent / "reconciler.yaml", json.dumps(configuration))
    return ()


def _ignored_repository(small: Path) -> tuple[str, ...]:
    (small.parent / ".git" / "info" / "exclude").write_text("inner/\n")
    return _a_repository_within(small)


def _a_repository_within(small: Path) -> tuple[str, ...]:
    write(small / "inner" / "local.yaml", an_action("local"))
    git(small / "inner", "init", "--quiet")
    git(small / "inner", "add", "--all")
    git(small / "inner", "commit", "--quiet", "--message", "inner")
    return ()


def _a_submodule(small: Path) -> tuple[str, ...]:
    _a_repository_within(small)
    git(small.parent, "add", "manifests/inner")
    git(small.parent, "commit", "--quiet", "--message", "outer")
    return _edited_in(small / "inner" / "local.yaml")


def _edited_in(path: Path) -> tuple[str, ...]:
    write(path, an_action("local", timeout="3s"))
    return ()


def _assumed_unchanged(small: Path) -> tuple[str, ...]:
    git(small.parent, "update-index", "--assume-unchanged", "manifests/greet.yaml")
    return _edited(small)


def _skipped(small: Path) -> tuple[str, ...]:
    git(small.parent, "update-index", "--skip-worktree", "manifests/greet.yaml")
    return _edited(small)


def _left_out(small: Path) -> tuple[str, ...]:
    git(small.parent, "update-index", "--skip-worktree", "manifests/greet.yaml")
    (small / "greet.yaml").unlink()
    return ()


def _a_shard(small: Path) -> tuple[str, ...]:
    return ("--shard", "1/1")


def _a_part(small: Path) -> tuple[str, ...]:
    return ("--target", "*/acme/*")


def _a_file(small: Path) -> tuple[str, ...]:
    return ("manifests/organization.yaml",)


def _no_repository(small: Path) -> tuple[str, ...]:
    (small.parent / ".git").rename(small.parent / "git")
    return ()


def _filters(small: Path) -> tuple[str, ...]:
    git(small.parent, "config", "filter.x.clean", "cat")
    return ()


@each_row(
    "change",
    [
        *(_edited, _not_added, _edited_elsewhere, _ignored, _ignored_json),
        *(_ignored_script, _ignored_configuration, _configuration_not_added),
        *(_ignored_repository, _a_repository_within, _a_submodule),
        *(_assumed_unchanged, _skipped, _left_out),
        *(_a_shard, _a_part, _a_file, _no_repository, _filters),
    ],
)
def test_anything_else_is_applied_and_not_recorded(
    change: Callable[[Path], tuple[str, ...]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Edited, ignored or left out: a later run would heal towards what was never applied."""
    from tests.acceptance.conftest import write_small

    top = tmp_path_factory.mktemp("records")
    small = write_small(top / "manifests")
    git(top, "init", "--quiet", "--initial-branch", "main")
    write(top / ".gitignore", ".reconciler\n")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "a change")

    ran = program(top)("apply", *change(small), "--auto-approve")

    assert ran.code == 0, ran.all
    assert records(top) == []


def test_an_apply_that_is_not_complete_is_not_recorded(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """A secret that could not be delivered, a guard that blocks."""
    commit()
    assert run("apply", "--auto-approve").code == 0
    for name in ("web", "spa"):
        (small / f"{name}.yaml").unlink()
    commit()

    blocked = run("apply", "--auto-approve", "--prune", "--allow-deletes", "0")

    assert blocked.code == 3
    assert len(records(small.parent)) == 1


def test_a_context_that_claims_a_commit_is_no_record(run: Run, small: Path) -> None:
    """Any writer may claim any revision."""
    run("apply", "--auto-approve", "--revision", "a" * 40)

    assert records(small.parent) == []


def test_a_kill_between_the_lease_and_the_record_is_healed(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """The next apply takes the leadership of the dead one, and writes the record alone."""
    head = commit()
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C20")
    assert killed.code == -signal.SIGKILL
    assert records(small.parent) == []

    again = run("apply", "--auto-approve")

    assert (again.code, said(small.parent)) == (0, [("default", head, "unchanged")])


def test_a_job_records_although_a_controller_leads(
    tmp_path_factory: pytest.TempPathFactory, small: Path, commit: Callable[[], str]
) -> None:
    """The controller notices that its leadership was elsewhere, and looks again."""
    elsewhere = tmp_path_factory.mktemp("server")
    with running_server(elsewhere) as server:
        service = {
            "RECONCILER_SERVICE": server.address,
            "RECONCILER_TOKEN": server.token("admin"),
        }
        sink = ("--secrets-to", f"file:{elsewhere}/secrets")
        run = program(small.parent)
        with http_client(server.address, server.token("admin")) as controller:
            assert isinstance(controller, OperationsClient)
            control = controller.trees()
            assert control is not None
            control.lead("default", ["acme"], 60)
            head = commit()

            ran = run("apply", *sink, "--auto-approve", **service)

            assert ran.code == 0, ran.all
            assert "APPLY-COMMIT-NOT-RECORDED" not in ran.all
            heads = controller.heads()
            assert heads is not None
            (record,) = heads.organizations["acme"].applied
            assert (record.commit, record.writer) == (head, "admin")
            control.resign()


def test_records_and_pauses_are_in_a_backup(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """A restored service is at the commit, and as paused, as it was then."""
    write(small.parent / ".gitignore", ".reconciler\n*.db\n")
    first = commit()
    assert run("apply", "--auto-approve").code == 0
    assert run("pause", "--reason", "incident 7").code == 0
    assert run("store", "backup", "then.db").code == 0
    assert run("resume").code == 0
    commit()
    assert run("apply", "--auto-approve").code == 0
    assert len(records(small.parent)) == 2

    assert run("store", "restore", "then.db", "--auto-approve").code == 0

    assert said(small.parent) == [("default", first, "changed")]
    assert "incident 7" in run("plan").all
    assert run("apply", "--auto-approve").code == 3
    for command in ("rebuild", "verify"):
        assert run("store", command).code == 0
    assert run("apply", "--auto-approve").code == 3


def test_a_record_is_not_taken_for_a_write_of_the_plan(
    run: Run, small: Path, commit: Callable[[], str]
) -> None:
    """A plan file that is given again is done already, also where it made the organization."""
    commit()
    write(small.parent / ".gitignore", ".reconciler\nplan.json\n")
    commit()
    digest = run("plan", "--out", "plan.json", "--format", "json").json["digest"]
    assert run("apply", "plan.json").code == 0
    assert len(records(small.parent)) == 1

    again = run("apply", "plan.json")

    assert again.code == 0
    assert "Every change of this plan is done already." in again.err
    assert "carried out in part: 6 object(s)" in run("apply", "--digest", digest).err
