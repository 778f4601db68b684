"""A team whose workflow is ``git push`` and nothing else: real repositories, real pushes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, ROOT, Ran, Run, an_action, an_application, write
from tests.running import running_server
from tests.warm_client import warm_program


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the hooks find the program and Git is nobody's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "reconciler"
    program.write_text(warm_program(), encoding="utf-8")
    program.chmod(0o755)
    return {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A Person",
        "GIT_AUTHOR_EMAIL": "person@example.com",
        "GIT_COMMITTER_NAME": "A Person",
        "GIT_COMMITTER_EMAIL": "person@example.com",
    }


class Git:
    """Git in one folder."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment

    def __call__(self, *arguments: str) -> Ran:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def commit(self, message: str) -> None:
        assert self("add", "-A").code == 0
        assert self("commit", "-qm", message).code == 0


def install(tmp_path: Path, hooks: Path, *names: str) -> None:
    """Copy hooks, and what they share, to where Git looks for them."""
    hooks.mkdir(exist_ok=True)
    for name in (*names, "reconciler.sh"):
        shutil.copy(tmp_path / "githooks" / name, hooks)


@pytest.fixture
def desk(run: Run, tmp_path: Path, environment: dict[str, str]) -> Git:
    """Return a clone, with a bare repository that applies what is pushed to it."""
    assert run("init", "--git-hooks").code == 0
    Git(tmp_path, environment)("init", "-q", "--bare", "-b", "main", "team.git")
    bare = tmp_path / "team.git"
    install(tmp_path, bare / "hooks", "post-receive")
    folder = tmp_path / "desk"
    folder.mkdir()
    git = Git(folder, environment)
    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", str(bare))
    write(folder / "manifests" / "o.yaml", ORGANIZATION)
    write(folder / "manifests" / "web.yaml", an_application("web"))
    git.commit("Begin")
    return git


def held(run: Run, tmp_path: Path) -> set[str]:
    """Return the names of the applications and actions that the team's service holds."""
    empty = write(tmp_path / "scope" / "o.yaml", ORGANIZATION)
    store = f"sqlite:{tmp_path}/team.git/.reconciler/identity.db"
    plan = run("plan", str(empty), "--service", store, "--format", "json").json
    return {ref["name"] for ref in plan["unmanaged"]}


def test_a_push_to_main_is_applied(run: Run, desk: Git, tmp_path: Path) -> None:
    """The person who pushes sees the plan and its outcome; nothing else is needed."""
    pushed = desk("push", "-q", "origin", "main")

    assert pushed.code == 0
    assert "Apply complete!" in pushed.err
    assert held(run, tmp_path) == {"web"}
    write(desk.folder / "manifests" / "greet.yaml", an_action())
    desk.commit("Greet")
    assert "1 created" in desk("push", "-q", "origin", "main").err
    assert held(run, tmp_path) == {"web", "greet"}


def test_a_push_to_another_branch_is_not_applied(run: Run, desk: Git, tmp_path: Path) -> None:
    """Only what is on the branch of the team is the truth."""
    desk("checkout", "-qb", "idea")

    pushed = desk("push", "-q", "origin", "idea")

    assert pushed.code == 0
    assert "Apply" not in pushed.err
    assert not (tmp_path / "team.git" / ".reconciler").exists()


def test_wrong_manifests_are_told_to_who_pushed_and_nothing_is_applied(
    run: Run, desk: Git, tmp_path: Path
) -> None:
    """The place is that of the file in the repository."""
    desk("push", "-q", "origin", "main")
    write(desk.folder / "manifests" / "greet.yaml", an_action(timeout="1 minute"))
    desk.commit("Greet")

    pushed = desk("push", "-q", "origin", "main")

    assert "SCHEMA-DURATION" in pushed.err
    assert "manifests/greet.yaml:1:" in pushed.err
    assert held(run, tmp_path) == {"web"}


def test_what_is_pushed_cannot_stand_in_for_the_tool(run: Run, desk: Git, tmp_path: Path) -> None:
    """A module of the tool's own names in the repository is never imported."""
    write(
        tmp_path / "bin" / "reconciler",  # an interpreter of its own, which looks for its modules
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m reconciler "$@"\n',
    )
    for name in ("yaml.py", "sitecustomize.py", "reconciler.py"):
        write(desk.folder / "manifests" / name, f"open({str(tmp_path / 'owned')!r}, 'w')")
        write(desk.folder / name, f"open({str(tmp_path / 'owned')!r}, 'w')")
    desk.commit("Begin")

    assert "Apply complete!" in desk("push", "-q", "origin", "main").err
    assert not (tmp_path / "owned").exists()


def test_the_hook_of_a_clone_stops_wrong_manifests_before_the_push(
    run: Run, desk: Git, tmp_path: Path
) -> None:
    """Finding out at the desk is better than finding out in public."""
    install(tmp_path, desk.folder / "githooks", "pre-push")
    desk("config", "core.hooksPath", "githooks")
    write(desk.folder / "manifests" / "greet.yaml", an_action(timeuot="1s"))
    desk.commit("Greet")

    stopped = desk("push", "-q", "origin", "main")

    assert stopped.code == 1
    assert "timeout" in stopped.all
    assert not (tmp_path / "team.git" / ".reconciler").exists()
    write(desk.folder / "manifests" / "greet.yaml", an_action(timeout="1s"))
    desk.commit("Greet")
    assert desk("push", "-q", "origin", "main").code == 0


@pytest.fixture
def clone(desk: Git, tmp_path: Path) -> Git:
    """Return the desk with the hook of a clone."""
    install(tmp_path, desk.folder / ".git" / "hooks", "pre-push")
    return desk


def test_a_clone_judges_the_commit_and_not_the_working_tree(clone: Git) -> None:
    """Half-finished work at the desk stops no push, and fixes none."""
    greet = clone.folder / "manifests" / "greet.yaml"
    write(greet, an_action(timeout="1 minute"))

    assert clone("push", "-q", "origin", "main").code == 0

    clone.commit("Greet")
    write(greet, an_action(timeout="1s"))
    stopped = clone("push", "-q", "origin", "main")
    assert stopped.code == 1
    assert "manifests/greet.yaml:1:" in stopped.err
    assert "/tree/" not in stopped.err
    assert "main is invalid: not pushed" in stopped.err


def test_a_clone_plans_only_against_a_service_that_is_there(
    run: Run, clone: Git, tmp_path: Path
) -> None:
    """Against an empty store every plan looks like a first one, and no guard can object."""
    first = clone("push", "-q", "origin", "main")
    assert "no service to plan against is named" in first.err
    assert "to create" not in first.err[: first.err.index("remote:")]
    clone("config", "reconciler.service", "sqlite:nowhere/identity.db")
    write(clone.folder / "manifests" / "greet.yaml", an_action())
    clone.commit("Greet")
    assert "no service to plan against" in clone("push", "-q", "origin", "HEAD:idea").err

    clone("config", "reconciler.service", "sqlite:../team.git/.reconciler/identity.db")
    (clone.folder / "manifests" / "o.yaml").write_text(ORGANIZATION.replace("shop", "stop"))
    (clone.folder / "manifests" / "web.yaml").unlink()
    clone.commit("Another project")
    planned = clone("push", "-q", "origin", "HEAD:idea")
    assert planned.code == 0
    assert "Plan: 2 to create" in planned.err
    assert not (clone.folder / "nowhere").exists()


@pytest.fixture
def guarded(desk: Git, tmp_path: Path) -> Git:
    """Return the desk, with a team's repository that judges before it accepts."""
    install(tmp_path, tmp_path / "team.git" / "hooks", "pre-receive")
    assert desk("push", "-q", "origin", "main").code == 0
    return desk


def test_what_is_invalid_is_refused(run: Run, guarded: Git, tmp_path: Path) -> None:
    """The branch that is applied never holds what cannot be applied."""
    before = guarded("ls-remote", "origin", "main").out
    write(guarded.folder / "manifests" / "greet.yaml", an_action(timeout="1 minute"))
    (guarded.folder / ".gitattributes").write_text("manifests/greet.yaml export-ignore\n")
    guarded.commit("Greet")

    refused = guarded("push", "-q", "origin", "main")

    assert refused.code == 1
    assert "manifests/greet.yaml:1:" in refused.err
    assert str(tmp_path) not in refused.err.replace(str(tmp_path / "team.git"), "")
    assert "main is invalid: the push is refused" in refused.err
    assert guarded("ls-remote", "origin", "main").out == before
    assert guarded("push", "-q", "origin", "HEAD:idea").code == 0
    (guarded.folder / "manifests" / "greet.yaml").unlink()
    outside = write(tmp_path / "outside.yaml", "of the server: hunter2")
    (guarded.folder / "manifests" / "greet.yaml").symlink_to(outside)
    guarded.commit("A link")
    linked = guarded("push", "-q", "origin", "main")
    assert (linked.code, "hunter2" in linked.all) == (1, False)


def test_what_a_guard_blocks_is_refused(run: Run, guarded: Git, tmp_path: Path) -> None:
    """Against the service that a push would change, a remote one included."""
    with running_server(tmp_path) as server:
        bare = Git(tmp_path / "team.git", guarded.environment)
        token = write(tmp_path / "token", server.token("admin"))
        token.chmod(0o600)
        bare("config", "reconciler.service", server.address)
        bare("config", "reconciler.tokenFile", "../token")
        bare("config", "reconciler.secretsTo", "file:kept")
        for number in range(12):
            write(guarded.folder / "manifests" / f"a{number}.yaml", an_action(f"a{number}"))
        guarded.commit("Twelve")
        applied = guarded("push", "-q", "origin", "main")
        assert "Apply complete!" in applied.err
        assert (bare.folder / "kept" / "acme.shop.web.json").exists()
        before = guarded("ls-remote", "origin", "main").out
        for number in range(12):
            write(
                guarded.folder / "manifests" / f"a{number}.yaml",
                an_action(f"a{number}", timeout="1s"),
            )
        guarded.commit("All of them")

        refused = guarded("push", "-q", "origin", "main")

        assert refused.code == 1
        assert "the plan of main is blocked: the push is refused" in refused.err
        assert guarded("ls-remote", "origin", "main").out == before


def test_a_push_that_is_not_applied_says_how_to_go_on(run: Run, desk: Git, tmp_path: Path) -> None:
    """The commit is there already; only its apply is tried again."""
    hooks = tmp_path / "team.git" / "hooks"
    bare = Git(tmp_path / "team.git", desk.environment)
    bare("config", "reconciler.secretsTo", "exec:false")
    failed = desk("push", "-q", "origin", "main")
    assert "To apply it again: cd" in failed.err

    bare("config", "reconciler.secretsTo", "file:.reconciler/secrets")
    again = subprocess.run(
        [hooks / "post-receive", "again"], cwd=bare.folder, env=desk.environment,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert again.returncode == 0, again.stdout + again.stderr
    assert "Apply complete!" in again.stdout
    assert held(run, tmp_path) == {"web"}
