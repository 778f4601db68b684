"""What CI gets from us: the step of the action, and the files that ``init`` writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import ROOT, Run, an_action, write

ZIZMOR = Path(sys.executable).parent / "zizmor"
STEP = ROOT / ".github" / "actions" / "reconciler" / "run"


def a_step(folder: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """Run the step of the action; return its code, its outputs and its summary."""
    programs = write(
        folder / "bin" / "reconciler",
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m reconciler "$@"\n',
    )
    programs.chmod(0o755)
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


def test_the_action_annotates_findings_and_fails(run: Run, small: Path) -> None:
    """A wrong manifest fails the step, with the finding at its line."""
    write(small / "greet.yaml", an_action(timeout="1 minute"))

    code, _, text = a_step(small.parent, COMMAND="validate")

    assert code == 1
    assert "::error file=manifests/greet.yaml,line=1" in text
    assert a_step(small.parent, COMMAND="plan; touch owned")[0] == 1
    assert not (small.parent / "owned").exists()


@pytest.mark.parametrize("flag", ["--github", "--gitlab", "--git-hooks"])
def test_init_writes_them_once_and_never_over_anything(run: Run, tmp_path: Path, flag: str) -> None:
    """What a team has changed in its workflows stays theirs."""
    written = run("init", flag)

    assert written.code == 0
    names = [line.removeprefix("wrote ") for line in written.out.splitlines()]
    before = {name: (tmp_path / name).read_bytes() for name in names}
    assert names
    assert run("init", flag).code == 1
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    assert not (tmp_path / "manifests").exists()


def test_a_release_is_named_with_a_ci_set_up_only(run: Run, tmp_path: Path) -> None:
    """A folder of manifests installs nothing."""
    refused = run("init", "--from", "https://example.com/x.whl#sha256=0")

    assert refused.code == 1
    assert "--from is for --github and --gitlab" in refused.err
    assert not (tmp_path / "manifests").exists()


def test_the_workflows_that_init_writes_pass_an_audit(run: Run, tmp_path: Path) -> None:
    """Least permissions, full-length pins, no expression where a shell would read it."""
    run("init", "--github")

    audited = subprocess.run(
        [ZIZMOR, "--offline", "--persona=auditor", "--no-progress", ".github"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert audited.returncode == 0, audited.stdout + audited.stderr
    assert "No findings" in audited.stdout + audited.stderr
