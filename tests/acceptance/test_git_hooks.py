"""A team whose workflow is ``git push`` and nothing else: real repositories, real pushes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, ROOT, Ran, Run, an_action, an_application, write
from tests.program import program
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


def test_a_push_shows_its_plan_once(desk: Git, tmp_path: Path) -> None:
    """Whichever hooks judge it on the way."""
    alone = desk("push", "-q", "origin", "main")
    install(tmp_path, tmp_path / "team.git" / "hooks", "pre-receive")
    write(desk.folder / "manifests" / "greet.yaml", an_action())
    desk.commit("Greet")
    both = desk("push", "-q", "origin", "main")
    (tmp_path / "team.git" / "hooks" / "post-receive").unlink()
    write(desk.folder / "manifests" / "later.yaml", an_action("later"))
    desk.commit("Later")
    judged = desk("push", "-q", "origin", "main")

    for pushed, change in (
        (alone, "+ OidcApplication acme/shop/web"),
        (both, "+ Action acme/greet"),
        (judged, "+ Action acme/later"),
    ):
        assert pushed.code == 0
        assert pushed.err.count(change) == 1, pushed.err
        assert "Saved the plan" not in pushed.err  # in a folder that is gone by then


def test_a_push_where_the_branch_that_is_applied_is_not_there_says_so(desk: Git) -> None:
    """As with Git's own name of the first branch: it is not ``main``."""
    desk("branch", "-m", "master")

    first = desk("push", "-q", "origin", "master")
    desk("push", "-q", "origin", "master:main")
    later = desk("push", "-q", "origin", "master:idea")

    assert first.code == 0
    assert (
        "reconciler: nothing is applied: the branch that is applied, main, is not there. Name "
        "another one: git config reconciler.branch NAME" in first.err
    )
    assert "nothing is applied" not in later.err


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
    install_as_the_hook_says(desk, tmp_path)
    write(desk.folder / "manifests" / "greet.yaml", an_action(timeuot="1s"))
    desk.commit("Greet")

    stopped = desk("push", "-q", "origin", "main")

    assert stopped.code == 1
    assert "timeout" in stopped.all
    assert not (tmp_path / "team.git" / ".reconciler").exists()
    write(desk.folder / "manifests" / "greet.yaml", an_action(timeout="1s"))
    desk.commit("Greet")
    assert desk("push", "-q", "origin", "main").code == 0


def install_as_the_hook_says(desk: Git, tmp_path: Path, where: str = ".") -> None:
    """Commit what ``init`` writes, and run the command that the head of the hook names.

    ``where`` is a worktree, from the folder of the clone.
    """
    shutil.copytree(tmp_path / "githooks", desk.folder / "githooks")
    desk.commit("Hooks")
    if where != ".":
        assert desk("worktree", "add", "-q", "--detach", where).code == 0
    text = (desk.folder / "githooks" / "pre-push").read_text(encoding="utf-8")
    (command,) = re.findall(r"^# Install, in a clone:\n# +(.*)$", text, re.MULTILINE)
    assert command in (ROOT / "docs" / "git-hooks.md").read_text(encoding="utf-8")
    folder = desk.folder / where
    subprocess.run(["sh", "-c", command], cwd=folder, env=desk.environment, check=True)


@pytest.mark.parametrize("where", [".", "../worktree"])
def test_the_hook_is_installed_where_no_folder_of_hooks_is(
    desk: Git, tmp_path: Path, where: str
) -> None:
    """Git makes that folder from a template, which a team may have switched off."""
    shutil.rmtree(desk.folder / ".git" / "hooks", ignore_errors=True)
    install_as_the_hook_says(desk, tmp_path, where)

    pushed = desk("push", "-q", "origin", "main")

    assert "no service to plan against is named" in pushed.err


def test_the_hook_of_a_clone_runs_from_a_folder_that_all_clones_share(
    desk: Git, tmp_path: Path
) -> None:
    """As the page says: nothing is copied there, where it would run in every repository."""
    shared = tmp_path / "shared"
    page = (ROOT / "docs" / "git-hooks.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(own=.*)`", page)
    write(shared / "pre-push", f"#!/bin/sh\n{line}\n").chmod(0o755)
    desk("config", "--global", "core.hooksPath", str(shared))
    assert desk("push", "-q", "origin", "main:without-a-hook").code == 0
    install_as_the_hook_says(desk, tmp_path)

    pushed = desk("push", "-q", "origin", "main")

    assert [each.name for each in shared.iterdir()] == ["pre-push"]
    assert "no service to plan against is named" in pushed.err


def test_a_branch_that_is_looked_at_runs_nothing_in_the_clone(desk: Git, tmp_path: Path) -> None:
    """Whoever reviews a branch checks it out, with a token of the service at hand."""
    install_as_the_hook_says(desk, tmp_path)
    desk("checkout", "-qb", "idea")
    for name in ("post-checkout", "pre-push", "reconciler.sh"):
        hook = write(desk.folder / "githooks" / name, f"#!/bin/sh\ntouch {tmp_path}/owned\n")
        hook.chmod(0o755)
    desk.commit("An idea")

    assert desk("checkout", "-q", "main").code == 0
    assert desk("checkout", "-q", "idea").code == 0
    pushed = desk("push", "-q", "origin", "idea")

    assert "no service to plan against is named" in pushed.err
    assert not (tmp_path / "owned").exists()


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


@pytest.fixture
def two(run: Run, tmp_path: Path, environment: dict[str, str]) -> Git:
    """Return a clone with two environments, of which production is protected, and its origin."""
    folder = tmp_path / "desk"
    folder.mkdir()
    Git(tmp_path, environment)("init", "-q", "--bare", "-b", "main", "team.git")
    git = Git(folder, environment)
    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", str(tmp_path / "team.git"))
    assert program(folder)("init", "--environments").code == 0
    return git


def hooks_for(desk: Git, bare: Path, name: str) -> None:
    """Write the hooks of an environment, and put those of the server into place."""
    written = program(desk.folder)("init", "--git-hooks", "--env", name)
    assert written.code == 0, written.all
    for hook in ("pre-receive", "post-receive", "reconciler.sh"):
        shutil.copy(desk.folder / "githooks" / hook, bare / "hooks")


def test_hooks_for_a_configuration_are_for_one_environment(two: Git) -> None:
    """The tree `default` without overlays is none of them."""
    run = program(two.folder)
    none, wrong = run("init", "--git-hooks"), run("init", "--git-hooks", "--env", "stagin")

    assert (none.code, wrong.code) == (1, 1)
    assert "Give --env NAME: hooks without it would apply the tree default" in none.err
    assert "The environments are staging, production." in none.err
    assert "Did you mean staging?" in wrong.err
    (two.folder / "reconciler.yaml").unlink()
    assert (
        "there is no reconciler.yaml for --env"
        in run("init", "--git-hooks", "--env", "staging").err
    )
    assert not (two.folder / "githooks").exists()


def test_a_push_is_applied_in_its_environment(two: Git, tmp_path: Path) -> None:
    """With its overlay, its variables, its tree, and a store that the next push finds again."""
    bare = tmp_path / "team.git"
    hooks_for(two, bare, "staging")
    two.commit("Begin")

    first = two("push", "-q", "origin", "main")

    assert first.code == 0
    assert "Apply complete! 5 created" in first.err, first.err
    assert first.err.count('+ "https://staging.shop.example.com/signin"') == 1
    assert ", tree acme" in first.err
    kept = bare / "reconciler" / "staging"
    store = f"sqlite:{kept}/.reconciler/staging/identity.db"
    plan = program(kept)("plan", "--env", "staging", "--service", store, "--format", "json").json
    assert (plan["summary"]["in_step"], plan["changes"]) == (5, [])
    assert not (bare / ".reconciler").exists()
    overlay = two.folder / "environments" / "staging" / "previews.yaml"
    overlay.unlink()
    # What somebody commits takes the place of no state.
    write(two.folder / ".gitignore", "")
    write(two.folder / ".reconciler" / "staging" / "identity.db", "theirs")
    two("add", "-f", ".reconciler")
    two.commit("Less")

    second = two("push", "-q", "origin", "main")

    assert "No changes" in second.err, second.err
    wrong = write(two.folder / "environments" / "production" / "storefront.yaml", "kind: Nothing\n")
    two.commit("Break production")
    refused = two("push", "-q", "origin", "main")
    assert refused.code == 1
    assert f"environments/production/{wrong.name}:1:" in refused.err
    assert str(tmp_path) not in refused.err.replace(str(bare), "")


def test_the_place_of_a_secret_is_told_whatever_the_repository_is_called(
    two: Git, tmp_path: Path
) -> None:
    """Its folder is left out of what is shown, as a text and not as a pattern."""
    bare = tmp_path / "team.git"
    hooks_for(two, bare, "staging")
    odd = bare.rename(tmp_path / "c# & [old] \\1*.git")
    two("remote", "set-url", "origin", str(odd))
    previews = two.folder / "environments" / "staging" / "previews.yaml"
    write(previews, previews.read_text().replace("authMethodType: NONE", "authMethodType: BASIC"))
    two.commit("Begin")

    pushed = two("push", "-q", "origin", "main")

    assert pushed.code == 0, pushed.err
    places = re.findall(r"secret in (\S+)", pushed.err)
    assert places, pushed.err
    assert all(place.startswith(".reconciler/staging/secrets/") for place in places), pushed.err


def test_hooks_of_a_folder_apply_what_is_in_it(two: Git, tmp_path: Path) -> None:
    """A repository may hold more than the tree."""
    bare, folder = tmp_path / "team.git", two.folder / "services" / "shop"
    two.commit("Begin at the top")
    folder.mkdir(parents=True)
    for path in list(two.folder.iterdir()):
        if path.name not in {".git", "services"}:
            path.rename(folder / path.name)
    written = program(folder)("init", "--git-hooks", "--env", "staging")
    assert written.code == 0, written.all
    for hook in ("pre-receive", "post-receive", "reconciler.sh"):
        shutil.copy(folder / "githooks" / hook, bare / "hooks")
    two("push", "-q", "origin", "main")
    two.commit("Move it")

    pushed = two("push", "-q", "origin", "main")

    assert "Apply complete! 5 created" in pushed.err, pushed.err


def test_a_protected_environment_waits_for_the_digest(two: Git, tmp_path: Path) -> None:
    """A push is no approval. Another digest applies nothing."""
    bare = tmp_path / "team.git"
    hooks_for(two, bare, "production")
    two.commit("Begin")
    store = bare / "reconciler" / "production" / ".reconciler" / "production" / "identity.db"

    def again(*arguments: str) -> Ran:
        done = subprocess.run(
            [bare / "hooks" / "post-receive", "again", *arguments], cwd=bare,
            env=two.environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    pushed = two("push", "-q", "origin", "main")

    assert pushed.code == 0
    assert "production is protected: nothing is applied yet" in pushed.err
    (digest,) = re.findall(r"hooks/post-receive again (sha256:[0-9a-f]{64})", pushed.err)
    assert not store.exists()
    assert again(f"sha256:{'0' * 64}").code != 0
    assert not store.exists()
    applied = again(digest)
    assert applied.code == 0, applied.all
    assert "Apply complete! 4 created" in applied.out
    assert "No changes" in again().out


def test_hooks_without_an_environment_refuse_a_configuration(
    two: Git, run: Run, tmp_path: Path
) -> None:
    """They were written before the repository had one."""
    bare = tmp_path / "team.git"
    assert run("init", "--git-hooks").code == 0
    for name in ("pre-receive", "post-receive", "pre-push"):
        for hook in (bare / "hooks", two.folder / ".git" / "hooks"):
            for file in hook.iterdir():
                file.unlink()
        install(tmp_path, (two.folder / ".git" if name == "pre-push" else bare) / "hooks", name)
        two("commit", "-q", "--allow-empty", "-m", name)
        two.commit("Begin") if two("status", "--short").out else None
        pushed = two("push", "-q", "origin", "main")

        assert pushed.code == (0 if name == "post-receive" else 1), pushed.all
        assert "reconciler init --git-hooks --env NAME" in pushed.err
        assert "has a reconciler.yaml" in pushed.err
    assert not (bare / ".reconciler").exists()


def test_hooks_take_over_where_the_protection_changed(two: Git, tmp_path: Path) -> None:
    """Hooks of an environment that was not protected apply nothing once it is."""
    bare = tmp_path / "team.git"
    hooks_for(two, bare, "staging")
    known = two.folder / "reconciler.yaml"
    known.write_text(
        known.read_text().replace("    overlay: environments/staging", "    protected: true")
    )
    two.commit("Begin")

    pushed = two("push", "-q", "origin", "main")

    assert "staging is protected" in pushed.err, pushed.err
    assert "main is pushed and not applied as a whole" in pushed.err
    assert not list(bare.rglob("identity.db"))


def test_a_held_checkout_is_waited_for(two: Git, tmp_path: Path) -> None:
    """Two pushes at a time would judge each other's files."""
    bare = tmp_path / "team.git"
    hooks_for(two, bare, "staging")
    two.commit("Begin")
    lock = bare / "reconciler" / "staging.lock"
    lock.mkdir(parents=True)
    command = ["git", "push", "-q", "origin", "main"]
    with subprocess.Popen(
        command, cwd=two.folder, env=two.environment, stderr=subprocess.PIPE, text=True
    ) as push:
        with pytest.raises(subprocess.TimeoutExpired):
            push.wait(2)
        lock.rmdir()
        _, err = push.communicate(timeout=60)

    assert "Apply complete!" in err
    assert not lock.exists()
