"""What else the repository declares is not deleted, through the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Ran, Run, an_action, an_application, write
from tests.running import running_server

NONE = "OIDC_AUTH_METHOD_TYPE_NONE"
PART = ("manifests/common", "manifests/team-a")
LEFT_OUT = ("--other-tree", "manifests/team-b")
# Spelt as no search for a line of text would find it.
ODD = """\
{"kind": Action, "apiVersion": "reconciler\\x2Fv1",
 metadata: {organization: ACME, name: "G\\x72eet"}, spec: {script: "let greet;"}}
"""


@pytest.fixture
def teams(request: pytest.FixtureRequest, run: Run, tmp_path: Path) -> Path:
    """Return a folder of three folders that are applied as one tree, in Git unless told."""
    if getattr(request, "param", "git") == "git":
        (tmp_path / ".git").mkdir()
    return applied(run, tmp_path / "manifests")


def applied(run: Run, manifests: Path, **known: str) -> Path:
    """Write three folders and apply them."""
    write(manifests / "common" / "organization.yaml", ORGANIZATION)
    write(manifests / "team-a" / "web.yaml", an_application("web", authMethodType=NONE))
    for name in ("keep", "stay"):
        write(manifests / "team-a" / f"{name}.yaml", an_action(name))
    write(manifests / "team-b" / "deep" / "greet.yaml", an_action())
    assert run("apply", "--auto-approve", **known).code == 0
    return manifests


def prune(run: Run, *arguments: str, **known: str) -> Ran:
    return run("plan", *arguments, "--prune", "--detailed-exitcode", "--format", "json", **known)


def blocks(ran: Ran) -> list[dict[str, object]]:
    return [found for found in ran.json["diagnostics"] if found["severity"] == "error"]


@pytest.mark.parametrize(
    ("teams", "spelling"), [("git", ODD), ("no git", an_action())], indirect=["teams"]
)
def test_what_a_folder_beside_declares_is_not_deleted(run: Run, teams: Path, spelling: str) -> None:
    """However it is spelt: the file is named, and how to leave its folder out."""
    write(teams / "team-b" / "deep" / "greet.yaml", spelling)

    blocked = prune(run, *PART)
    left_out = prune(run, *PART, *LEFT_OUT)

    assert blocked.code == 3
    (block,) = blocks(blocked)
    assert block["code"] == "GUARD-PARTIAL-TREE"
    assert block["file"] == "manifests/team-b/deep/greet.yaml"
    assert block["line"] == (2 if spelling == ODD else 1)
    assert "--other-tree manifests/team-b/deep/greet.yaml." in str(block["remedy"])
    assert [change["cause"]["kind"] for change in blocked.json["changes"]] == ["declared_elsewhere"]
    refused = run("apply", *PART, "--prune", "--auto-approve")
    assert refused.code == 3
    assert "    # declared in a manifest that this run did not read\n" in refused.out
    assert "declared nowhere" not in refused.out
    assert (left_out.code, blocks(left_out)) == (2, [])
    assert left_out.json["digest"] != blocked.json["digest"]
    assert [change["change"] for change in left_out.json["changes"]] == ["delete"]


def test_what_no_manifest_declares_any_more_is_deleted(run: Run, teams: Path) -> None:
    """The rest of the repository is looked at, and holds nothing of it."""
    (teams / "team-a" / "keep.yaml").unlink()

    assert prune(run).code == 2
    assert run("apply", "--prune", "--auto-approve").code == 0
    assert prune(run).code == 0


def test_a_file_that_cannot_be_read_blocks_where_it_may_be_a_manifest(
    run: Run, teams: Path
) -> None:
    """A template of something else does not."""
    write(teams / "team-b" / "deep" / "greet.yaml", "a: {{ template }}\n" * 3)
    assert prune(run, *PART).code == 2

    write(teams / "team-b" / "deep" / "greet.yaml", "a: {{ reconciler/v1 }}\n" * 3)
    blocked = prune(run, *PART)

    assert blocked.code == 3
    (block,) = blocks(blocked)
    assert block["file"] == "manifests/team-b/deep/greet.yaml"
    assert "--other-tree manifests/team-b/deep/greet.yaml." in str(block["remedy"])
    assert prune(run, *PART, *LEFT_OUT).code == 2


def test_a_rename_by_id_in_a_folder_beside_counts(run: Run, teams: Path) -> None:
    """The object is declared there, under another name."""
    held = run("plan", "manifests/common", "--format", "json").json["unmanaged"]
    (found,) = [each for each in held if each["name"] == "greet"]
    manifest = json.loads(an_action("hello"))
    manifest["metadata"]["id"] = found["id"]
    write(teams / "team-b" / "deep" / "greet.yaml", json.dumps(manifest))

    (block,) = blocks(prune(run, *PART))

    assert str(block["remedy"]).startswith("Action acme/greet is declared in manifests/team-b/")


def test_a_saved_plan_keeps_what_was_left_out(run: Run, teams: Path) -> None:
    """Without the flag it is another plan."""
    saving = ("plan", *PART, "--prune", *LEFT_OUT, "--out", "plan.json")
    assert run(*saving).code == 0

    without = run("apply", "plan.json", *PART, "--prune")
    given = run("apply", "plan.json", *PART, "--prune", "--other-tree", "./manifests/team-b/")

    assert without.code == 4
    assert "with --other-tree" in without.err
    assert given.code == 0, given.all


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("manifests/team-c", "does not exist"),
        ("manifests", "overlaps the PATHS"),
        ("manifests/team-a/web.yaml", "overlaps the PATHS"),
        ("/", "overlaps the PATHS"),
    ],
)
def test_a_folder_that_cannot_be_left_out_is_wrong_usage(
    run: Run, tmp_path: Path, path: str, problem: str
) -> None:
    """It would hide what the run itself declares, or nothing at all."""
    manifests = tmp_path / "manifests"
    write(manifests / "common" / "organization.yaml", ORGANIZATION)
    write(manifests / "team-a" / "web.yaml", an_application("web"))

    ran = run("plan", *PART, "--other-tree", path)

    assert ran.code == 1
    assert ran.err.startswith(f"Error: --other-tree {path} ")
    if path != "/":
        assert problem in ran.err


def test_the_repository_is_searched_for_a_service_elsewhere_too(run: Run, tmp_path: Path) -> None:
    """The manifests are here, wherever the service is."""
    (tmp_path / "server").mkdir()
    (tmp_path / ".git").mkdir()
    with running_server(tmp_path / "server") as server:
        known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token()}
        applied(run, tmp_path / "manifests", **known)

        assert prune(run, *PART, **known).code == 3
        assert run("apply", *PART, "--prune", "--auto-approve", **known).code == 3
        assert prune(run, *PART, *LEFT_OUT, **known).code == 2
        assert prune(run, **known).code == 0
