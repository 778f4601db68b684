"""A team whose workflow is ``git push`` and nothing else: real repositories, real pushes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, ROOT, Ran, Run, an_action, an_application, write


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the hooks find the program and Git is nobody's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "reconciler"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m reconciler "$@"\n', encoding="utf-8"
    )
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
        self._environment = environment

    def __call__(self, *arguments: str) -> Ran:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env=self._environment,
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


@pytest.fixture
def desk(run: Run, tmp_path: Path, environment: dict[str, str]) -> Git:
    """Return a clone, with a bare repository that applies what is pushed to it."""
    assert run("init", "--git-hooks").code == 0
    Git(tmp_path, environment)("init", "-q", "--bare", "-b", "main", "team.git")
    bare = tmp_path / "team.git"
    hook = bare / "hooks" / "post-receive"
    hook.write_bytes((tmp_path / "githooks" / "post-receive").read_bytes())
    hook.chmod(0o755)
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
    hooks = desk.folder / "githooks"
    hooks.mkdir()
    hook = hooks / "pre-push"
    hook.write_bytes((tmp_path / "githooks" / "pre-push").read_bytes())
    hook.chmod(0o755)
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
