"""What else the repository declares is not deleted, through the real command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acceptance.conftest import ORGANIZATION, Ran, Run, an_action, an_application, write
from tests.acceptance.zitadel import a_zitadel
from tests.running import running_server
from tests.zitadel.stand_in import NEWEST, OLDER

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
        write(tmp_path / ".git" / "HEAD", "")
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


GREET = Path("team-b/deep/greet.yaml")
HIDDEN = [
    pytest.param("team-b", ".team-b", id="a folder that begins with a dot"),
    pytest.param(GREET, "team-b/.greet.yml", id="a file that begins with a dot"),
    pytest.param(GREET, ".a/b/.c/greet.yaml", id="folders in folders"),
    pytest.param(GREET, "team-b/deep/greet", id="a file without an ending"),
    pytest.param(GREET, ".greet", id="a hidden file without an ending"),
    pytest.param(GREET, "team-b/deep/greet.YAML", id="an ending in capitals"),
    pytest.param(GREET, "greet.yaml.bak", id="one ending more"),
]


@pytest.mark.parametrize("teams", ["git", "no git"], indirect=True)
@pytest.mark.parametrize(("before", "after"), HIDDEN)
def test_what_the_reader_passes_over_is_searched(
    run: Run, teams: Path, before: str, after: str
) -> None:
    """A manifest inside PATHS that was moved where it is not read still declares its object."""
    (teams / after).parent.mkdir(parents=True, exist_ok=True)
    (teams / before).rename(teams / after)
    hidden = after if (teams / after).is_file() else f"{after}/deep/greet.yaml"

    blocked = prune(run)
    applied = run("apply", "--prune", "--auto-approve")
    left_out = prune(run, "--other-tree", f"manifests/{after}")

    assert (blocked.code, applied.code, left_out.code) == (3, 3, 2)
    (block,) = blocks(blocked)
    assert (block["code"], block["file"]) == ("GUARD-PARTIAL-TREE", f"manifests/{hidden}")
    (teams / after).rename(teams / "shown.yaml" if (teams / after).is_file() else teams / "shown")
    assert prune(run).code == 0


def test_a_hidden_manifest_has_the_owner_of_the_defaults_around_it(run: Run, teams: Path) -> None:
    """Also where these are in a folder that the run read."""
    manifest = json.loads(an_action())
    del manifest["metadata"]["organization"]
    (teams / GREET).unlink()
    defaults = {"apiVersion": "reconciler/v1", "kind": "Defaults", "metadata": {}}
    write(teams / "team-b" / "defaults.yaml", json.dumps({**defaults, "metadata": {
        "organization": "acme"}}))  # fmt: skip
    write(teams / "team-b" / ".deep" / "greet.yaml", json.dumps(manifest))

    (block,) = blocks(prune(run))

    assert block["file"] == "manifests/team-b/.deep/greet.yaml"


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("place", ["manifests/.team/greet.yaml", "other/deep/greet.yml"])
def test_a_file_in_another_encoding_blocks(
    run: Run, teams: Path, tmp_path: Path, place: str, encoding: str
) -> None:
    """PowerShell's ``>`` writes UTF-16; without a mark of the byte order it is one, too."""
    (teams / GREET).unlink()
    moved = write(tmp_path / place, "")
    moved.write_bytes("# Of another tool".encode(encoding))
    assert prune(run).code == 2
    moved.write_bytes(an_action().encode(encoding))

    blocked = prune(run)
    applied = run("apply", "--prune", "--auto-approve")

    assert (blocked.code, applied.code) == (3, 3)
    (block,) = blocks(blocked)
    assert (block["code"], block["file"]) == ("GUARD-PARTIAL-TREE", place)
    assert prune(run, "--other-tree", place).code == 2
    moved.write_bytes(an_action().encode())
    (declared,) = blocks(prune(run))
    assert "is declared in" in str(declared["remedy"])


def test_a_manifest_in_utf_16_says_how_to_save_it(run: Run, teams: Path) -> None:
    (teams / GREET).write_bytes(an_action().encode("utf-16"))

    ran = run("apply", "--prune", "--auto-approve")

    assert ran.code == 1
    assert f"manifests/{GREET}:1:1: error YAML-ENCODING: the file is UTF-16" in ran.err
    assert "Out-File -Encoding utf8" in ran.err
    assert "u{0}" not in ran.err  # its lines, read as UTF-8
    assert "iconv -f UTF-16 -t UTF-8" in ran.err


def test_what_is_of_git_or_no_manifest_of_ours_blocks_nothing(
    run: Run, teams: Path, tmp_path: Path
) -> None:
    """Nor does a page that quotes a manifest, and a large file is not read to its end."""
    (teams / GREET).unlink()
    write(tmp_path / ".git" / "greet.yaml", an_action())
    write(teams / ".git" / "greet.yaml", an_action())
    write(teams / "README.md", f"# Manifests\n\n```json\n{an_action()}\n```\n- a: - b\n")
    (teams / ".link.yaml").symlink_to(write(tmp_path.parent / "outside.yaml", an_action()))
    (teams / ".binary").write_bytes(bytes(range(256)) * 8 + b"reconciler/v1")
    with (teams / ".large").open("wb") as large:
        large.truncate(1 << 40)

    assert prune(run).code == 2


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


@pytest.fixture(params=["serve", NEWEST, OLDER])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Serve, by our server and by a stand-in of each generation; yield what names it."""
    with ExitStack() as stack:
        if request.param == "serve":
            (tmp_path / "server").mkdir()
            server = stack.enter_context(running_server(tmp_path / "server"))
            yield {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token()}
        else:
            yield stack.enter_context(a_zitadel(version=request.param))[1]


def test_what_is_hidden_is_searched_for_a_service_elsewhere_too(
    run: Run, tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    """A service that knows no owners deletes with another flag, after the same search."""
    write(tmp_path / ".git" / "HEAD", "")
    teams = applied(run, tmp_path / "manifests", **elsewhere)
    (teams / "team-b").rename(teams / ".team-b")
    applying = ("apply", "--prune-unmanaged", "--auto-approve")

    hidden = run(*applying, **elsewhere)
    shutil.move(teams / ".team-b" / "deep" / "greet.yaml", tmp_path / "greet.yaml")
    (tmp_path / "greet.yaml").write_bytes(an_action().encode("utf-16"))
    encoded = run(*applying, **elsewhere)
    (teams / ".team-b" / "greet.yaml").write_text(an_action())
    (teams / ".team-b").rename(teams / "team-b")

    assert [(ran.code, "GUARD-PARTIAL-TREE" in ran.err) for ran in (hidden, encoded)] == [
        (3, True)
    ] * 2
    assert run("plan", "--detailed-exitcode", **elsewhere).code == 0


def test_the_repository_is_searched_for_a_service_elsewhere_too(run: Run, tmp_path: Path) -> None:
    """The manifests are here, wherever the service is."""
    (tmp_path / "server").mkdir()
    write(tmp_path / ".git" / "HEAD", "")
    with running_server(tmp_path / "server") as server:
        known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token()}
        applied(run, tmp_path / "manifests", **known)

        assert prune(run, *PART, **known).code == 3
        assert run("apply", *PART, "--prune", "--auto-approve", **known).code == 3
        assert prune(run, *PART, *LEFT_OUT, **known).code == 2
        assert prune(run, **known).code == 0
