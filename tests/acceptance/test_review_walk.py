"""A change from branch to service in a real git repository: plan, review, merge, apply, drift."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.acceptance.conftest import Run, an_action, write
from tests.acceptance.test_saved_plans import digest_of
from tests.direct import Direct


def test_from_a_branch_to_the_service_and_back(run: Run, small: Path, tmp_path: Path) -> None:
    """What was reviewed is what is applied; what comes behind its back is found."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        command = ["git", *identity, *arguments]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch", "main")
    git("add", "manifests")
    git("commit", "--quiet", "--message", "Begin")
    assert run("apply", "--auto-approve").code == 0

    git("checkout", "--quiet", "-b", "faster")
    write(small / "greet.yaml", an_action(timeout="5s"))
    git("commit", "--quiet", "--all", "--message", "Greet faster")
    assert run("validate").code == 0
    reviewed = digest_of(run("plan"))

    git("checkout", "--quiet", "main")
    assert run("apply", "--digest", reviewed).code == 4, "it is not merged yet"
    git("merge", "--quiet", "--no-ff", "--message", "Merge faster", "faster")
    applied = run("apply", "--digest", reviewed)
    assert applied.code == 0, applied.all
    assert "0 remaining" in applied.out

    last = run("history", "Action acme/greet", "--format", "json").json["events"][-1]
    assert last["revision"] == git("rev-parse", "HEAD")
    assert last["plan"] == reviewed

    assert run("drift", "--detailed-exitcode").code == 0
    Direct(tmp_path / ".reconciler" / "identity.db").change("greet", timeout="9s")
    drift = run("drift", "--detailed-exitcode")
    assert drift.code == 2
    assert "changed by ana at 20" in drift.out
