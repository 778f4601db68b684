"""What CI gets from us: the step of the action, and the files that ``init`` writes."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.resources.installation import WHEEL
from tests.acceptance.conftest import ROOT, Ran, Run, an_action, write
from tests.program import program
from tests.release import wheel
from tests.warm_client import warm_program

ZIZMOR = Path(sys.executable).parent / "zizmor"
WRITTEN = "written"
"""The folder beside an audit with the workflows that ``init`` wrote."""
STEP = ROOT / ".github" / "actions" / "reconciler" / "run"


def a_step(folder: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the step of the action; return its code, its outputs and its summary."""
    write(folder / "bin" / "reconciler", warm_program()).chmod(0o755)
    outputs, summary = folder / "outputs", folder / "summary"
    outputs.touch()
    summary.touch()
    done = subprocess.run(
        [STEP],
        cwd=folder,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(folder),
            **inputs,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = dict(line.split("=", 1) for line in outputs.read_text().splitlines())
    return done.returncode, told, summary.read_text() + done.stdout + done.stderr


def test_the_action_tells_numbers_and_digest_to_later_steps(run: Run, small: Path) -> None:
    """A workflow decides by outputs, and applies exactly what was planned."""
    code, outputs, text = a_step(small.parent, COMMAND="plan")

    assert code == 0, text
    assert {name: outputs[name] for name in ("changes", "to-create", "to-update", "to-delete")} == {
        "changes": "true", "to-create": "6", "to-update": "0", "to-delete": "0",
    }  # fmt: skip
    assert "reconciler" in text
    assert Path(outputs["plan-path"]).exists()
    applied, _, text = a_step(small.parent, COMMAND="apply", DIGEST=outputs["digest"])
    assert applied == 0, text
    assert run("plan", "--detailed-exitcode").code == 0
    code, outputs, _ = a_step(small.parent, COMMAND="plan", PRUNE="true")
    assert (code, outputs["changes"]) == (0, "false")


def test_a_blocked_plan_fails_the_step_and_is_in_its_summary(run: Run, small: Path) -> None:
    """Green would mean that apply goes through."""
    assert run("apply", "--auto-approve").code == 0
    write(small / "greet.yaml", an_action(timeout="5s"))

    other = {"RECONCILER_TREE": "other", "RECONCILER_NO_ADOPT": "1"}
    code, outputs, text = a_step(small.parent, COMMAND="plan", **other)

    assert code == 3
    assert (outputs["changes"], outputs["owed"]) == ("true", "0")
    assert "**Blocked by 1 guard" in text
    assert "::error title=The plan is blocked::" in text


def test_the_action_annotates_findings_and_fails(run: Run, small: Path) -> None:
    """A wrong manifest fails the step, with the finding at its line."""
    write(small / "greet.yaml", an_action(timeout="1 minute"))

    code, _, text = a_step(small.parent, COMMAND="validate")

    assert code == 1
    assert "::error file=manifests/greet.yaml,line=1" in text
    assert a_step(small.parent, COMMAND="plan; touch owned")[0] == 1
    assert not (small.parent / "owned").exists()


def written_by(init: Ran) -> list[str]:
    """Return the files that ``init`` says it wrote."""
    return re.findall(r"^wrote (.*)$", init.out, re.MULTILINE)


@pytest.mark.parametrize("flag", ["--github", "--gitlab", "--git-hooks"])
def test_init_writes_them_once_and_never_over_anything(run: Run, tmp_path: Path, flag: str) -> None:
    """What a team has changed in its workflows stays theirs."""
    written = run("init", flag)

    assert written.code == 0
    names = written_by(written)
    assert (
        "\nNext: the comments at the top of these files say what to set up once.\n" in written.out
    )
    before = {name: (tmp_path / name).read_bytes() for name in names}
    assert names
    assert run("init", flag).code == 1
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    assert not (tmp_path / "manifests").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--from", "https://example.com/x.whl#sha256=0"], "--from is for --github or --gitlab"),
        (["--published"], "--published is for --github or --gitlab"),
        (["--on-unreviewed", "apply"], "--on-unreviewed is for --github or --gitlab"),
        (["--git-hooks", "--on-unreviewed", "stop"], "--on-unreviewed is for --github or --gitlab"),
        (["--env", "staging"], "--env is for --git-hooks"),
    ],
)
def test_a_flag_that_belongs_to_another_is_refused_alone(
    run: Run, tmp_path: Path, flags: list[str], said: str
) -> None:
    """A folder of manifests has no jobs, and is for no environment."""
    refused = run("init", *flags)

    assert refused.code == 1
    assert said in refused.err
    assert not (tmp_path / "manifests").exists()


@pytest.mark.parametrize("flag", ["--github", "--gitlab", "--git-hooks", "--environments"])
def test_what_is_for_the_current_folder_takes_no_other_one(
    run: Run, tmp_path: Path, flag: str
) -> None:
    """Nothing is written, neither there nor here; the remedy is a command for a shell."""
    (tmp_path / "live acme").mkdir()
    before = [*tmp_path.rglob("*")]
    refused = run("init", flag, "live acme")

    assert refused.code == 1
    assert "written into the current folder, not into live acme" in refused.err
    assert "cd 'live acme'" in refused.err
    assert [*tmp_path.rglob("*")] == before


@pytest.mark.parametrize("folder", [".", "manifests", "./manifests/"])
def test_the_current_folder_and_that_of_its_manifests_may_be_named(
    run: Run, tmp_path: Path, folder: str
) -> None:
    """Both are meant without a word as well."""
    assert run("init", "--git-hooks", folder).code == 0
    assert (tmp_path / "githooks").is_dir()


def a_repository(folder: Path, *commands: str) -> None:
    """Make a repository by commands of Git."""
    for command in ("init --quiet -b trunk", *commands):
        told = ["-c", "user.name=a", "-c", "user.email=a@example.com", *command.split()]
        subprocess.run(["git", *told], cwd=folder, check=True, capture_output=True)


COMMIT = "commit --quiet --allow-empty --message Begin"


@pytest.mark.parametrize(
    ("commands", "branch"),
    [
        ((), "trunk"),  # nothing is committed yet
        ((COMMIT,), "trunk"),
        ((COMMIT, "checkout --quiet -b master", "checkout --quiet -b idea"), "master"),
        ((COMMIT, "branch main", "pack-refs --all", "checkout --quiet -b idea"), "main"),
        ((COMMIT, "checkout --quiet --detach"), "main"),
        (
            (COMMIT, "branch main", "update-ref refs/remotes/origin/release/1.0 HEAD",
             "symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/release/1.0"),
            "release/1.0",
        ),
        ((COMMIT, "branch -m release/main"), "release/main"),
    ],
)  # fmt: skip
def test_the_workflows_are_for_the_default_branch(
    run: Run, tmp_path: Path, commands: tuple[str, ...], branch: str
) -> None:
    """That of origin; else main or master; else the one at hand. Also in a second worktree."""
    a_repository(tmp_path, *commands)

    assert run("init", "--github").code == 0

    written = tmp_path / ".github" / "workflows"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in written.iterdir()}
    for name, event in (("plan", "pull_request"), ("apply", "push")):
        assert yaml.safe_load(texts[f"reconciler-{name}"])[True][event]["branches"] == [branch]
    at = branch.replace("/", "%2F")
    assert f'"repos/$REPOSITORY/git/trees/{at}" \\' in texts["reconciler-apply"]
    assert f"::notice::{branch} has other manifests by now" in texts["reconciler-apply"]
    rest = "".join(texts.values()).replace(branch, "")
    assert branch == "main" or not re.search(r"\bmain\b", rest)


@pytest.mark.parametrize("has_environments", [False, True])
def test_what_is_called_main_and_is_no_branch_keeps_its_name(
    tmp_path: Path, *, has_environments: bool
) -> None:
    """A folder or an environment of another name has no changes: nothing would be applied."""
    folder = tmp_path / "apps" / "main"
    folder.mkdir(parents=True)
    a_repository(tmp_path)  # on trunk
    if has_environments:
        write(
            folder / "reconciler.yaml",
            "apiVersion: reconciler/v1\nkind: Configuration\nenvironments:\n"
            "  main: {service: https://id.example.com, overlay: over/main}\n",
        )
        write(folder / "over" / "main" / "a.yaml", "")

    written = program(folder)("init", "--github")

    assert written.code == 0, written.all
    made = tmp_path / ".github" / "workflows"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(made.iterdir()))
    assert '"apps/main/manifests/**"' in text
    assert "refs/heads/trunk" in text
    assert "contents/apps/main?ref=trunk" in text
    assert "apps/trunk" not in text
    if has_environments:
        assert '"apps/main/over/main/**"' in text
        assert "--env main " in text
        assert "--env trunk" not in text


@pytest.mark.parametrize(
    ("names", "said"),
    [(("a$(b)", "trunk"), "the folder a$(b)"), (("a", "x`id`"), "the branch x`id`")],
)
def test_a_name_that_a_script_could_obey_is_refused(
    tmp_path: Path, names: tuple[str, str], said: str
) -> None:
    folder = tmp_path / names[0]
    folder.mkdir()
    a_repository(tmp_path, f"symbolic-ref HEAD refs/heads/{names[1]}")

    refused = program(folder)("init", "--github")

    assert refused.code == 1
    assert f"no jobs can be written for {said}" in refused.err
    assert not (tmp_path / ".github").exists()


def test_the_pipeline_brings_nothing_global_along(run: Run, tmp_path: Path) -> None:
    """Stages and variables would be those of every job of the team."""
    assert run("init", "--gitlab").code == 0

    text = (tmp_path / ".gitlab" / "reconciler.gitlab-ci.yml").read_text(encoding="utf-8")
    keys = re.findall(r"^([^ #\n][^:\n]*):", text, re.MULTILINE)
    assert len(keys) == 11
    assert [key for key in keys if not key.startswith((".reconciler", "reconciler "))] == []
    assert set(re.findall(r"^  stage: (.*)$", text, re.MULTILINE)) == {"test", "deploy"}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as the site of a release does; yield its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_a_release_is_installed_if_it_has_the_hash(
    run: Run, tmp_path: Path, *, right: bool
) -> None:
    """From the address that was given, without an index, and only those bytes."""
    content = wheel().read_bytes()
    (tmp_path / WHEEL).write_bytes(content)
    digest = hashlib.sha256(content if right else b"").hexdigest()
    with served(tmp_path) as address:
        release = f"{address}/{WHEEL}#sha256={digest}"
        assert run("init", "--github", "--from", release).code == 0
        written = tmp_path / ".github" / "reconciler" / "requirements.txt"
        lines = written.read_text(encoding="utf-8").splitlines(keepends=True)
        (tool,) = [line for line in lines if line.startswith("identity-reconciler @ ")]
        installed = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes",
             "--only-binary", ":all:", "--target", "installed",
             "--requirement", write(tmp_path / "tool.txt", tool)],
            cwd=tmp_path,
            env={**os.environ, "PIP_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )  # fmt: skip

    assert not list((tmp_path / ".github" / "reconciler").glob("*.whl"))
    assert (installed.returncode == 0) is right, installed.stderr
    assert (tmp_path / "installed" / "reconciler" / "requirements.txt").exists() is right
    assert right or "DO NOT MATCH THE HASHES" in installed.stderr


@dataclass(frozen=True)
class GitHub:
    """What ``init --github`` wrote into a folder, and what it said."""

    folder: Path
    init: Ran

    @property
    def jobs(self) -> dict[str, Any]:
        """Return each job, by its workflow and name."""
        return {
            f"{path.stem} {name}": job
            for path in sorted((self.folder / ".github" / "workflows").iterdir())
            for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()
        }


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> GitHub:
    """Write the set-up for GitHub, which no test changes."""
    folder = tmp_path_factory.mktemp("github")
    made = GitHub(folder, program(folder)("init", "--github"))
    assert made.init.code == 0
    return made


@pytest.fixture
def audited(tmp_path: Path, github: GitHub) -> Path:
    """Return a folder with the audit, the workflows of this repository, and those of ``init``."""
    (tmp_path / ".ci").mkdir()
    shutil.copy2(ROOT / ".ci" / "audit-workflows", tmp_path / ".ci")
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copytree(github.folder / ".github" / "workflows", tmp_path / WRITTEN)
    return tmp_path


def audit(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run what ``make lint`` runs, which audits what ``init`` writes itself."""
    return subprocess.run(
        [folder / ".ci" / "audit-workflows", WRITTEN],
        env={**os.environ, "ZIZMOR": str(ZIZMOR)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_workflow_passes_an_audit(audited: Path) -> None:
    """Least permissions, full-length pins, no expression where a shell would read it."""
    passed = audit(audited)

    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert ".ci/audit-workflows" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("reconciler-plan.yml", "persist-credentials: false", "persist-credentials: true"),
        ("reconciler-drift.yml", "@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7"),
        ("reconciler-apply.yml", '"$DIGEST"', '"${{ github.event.head_commit.message }}"'),
        ("reconciler-plan.yml", "permissions: {}", "permissions: write-all"),
    ],
)
def test_a_fault_in_a_workflow_is_noticed(audited: Path, file: str, right: str, wrong: str) -> None:
    """An audit that reads none of them would pass as well."""
    path = audited / WRITTEN / file
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong, 1), encoding="utf-8")

    failed = audit(audited)

    assert failed.returncode != 0
    assert file in failed.stdout


def test_no_template_names_a_registry_or_an_unpinned_action(github: GitHub) -> None:
    """Each action is a commit, and says which release it is."""
    written = (github.folder / ".github").rglob("*.yml")
    texts = [path.read_text(encoding="utf-8") for path in written]
    uses = re.findall(r"uses: (.*)", "".join(texts))

    assert len(texts) == 3
    assert len(uses) > 20
    pinned = r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    assert [used for used in uses if not re.fullmatch(pinned, used)] == []
    assert "index-url" not in "".join(texts)


def test_the_page_lists_every_file_and_every_job(github: GitHub) -> None:
    """A reader who sets it up by the page misses none."""
    written = set(written_by(github.init))
    page = (ROOT / "docs" / "ci-github.md").read_text(encoding="utf-8")
    jobs = {tuple(job.removeprefix("reconciler-").split()) for job in github.jobs}

    assert set(re.findall(r"^\| `(\.github/[^`]+)` \|", page, re.MULTILINE)) == written
    assert set(re.findall(r"^\| (\w+), `(\w+)` \|", page, re.MULTILINE)) == jobs


def test_a_job_with_a_token_installs_from_the_target_branch(github: GitHub) -> None:
    """What a pull request changes in the tool's files counts only after its merge."""
    jobs = {name: job for name, job in github.jobs.items() if "secrets." in str(job)}

    assert len(jobs) == 4
    for name, job in jobs.items():
        sources = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        commits = {source["path"]: source.get("ref") for source in sources}
        base = "github.event.pull_request.base.sha || github.event.merge_group.base_sha"
        pull = base if "reconciler-plan " in name else "github.sha"
        assert commits == {"trusted": f"${{{{ {pull} }}}}", "proposed": None}
        (install,) = [step for step in job["steps"] if "pip install" in step.get("run", "")]
        assert install["working-directory"] == "trusted/.github/reconciler"


def test_no_job_may_write_and_holds_a_token_of_the_service(github: GitHub) -> None:
    """A job that is taken over can do one thing at most."""
    for name, job in github.jobs.items():
        writes = {right for right, level in job["permissions"].items() if level != "read"}
        assert not (writes and "secrets." in str(job)), name
        assert ("environment" in job) == ("secrets." in str(job)), name
