"""A plan that was approved is applied, or nothing is: through the real command line."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconciler.plan.integrity import SEAL, sealed
from reconciler.plan.planfile import FORMAT, FORMAT_VERSION
from tests.acceptance.conftest import (
    ORGANIZATION,
    Ran,
    Run,
    an_action,
    an_application,
    write,
    write_small,
)
from tests.direct import Direct
from tests.program import program


def events(run: Run, **more: str) -> int:
    """Return how many events the store has; what was refused has written none."""
    return int(run("store", "verify", "--format", "json", **more).json["events"])


def digest_of(ran: Ran) -> str:
    return next(line for line in ran.out.splitlines() if line.startswith("Digest: "))[8:]


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for copies: a tree that is applied, changed after that, and planned again."""
    folder = tmp_path_factory.mktemp("planned")
    run, tree = program(folder), write_small(folder / "manifests")
    assert run("apply", "--auto-approve").code == 0
    write(tree / "greet.yaml", an_action(timeout="5s"))
    write(tree / "other.yaml", an_action("other"))
    assert run("plan", "--out", "plan.json").code == 0
    return folder


@pytest.fixture
def approved(small: Path, tmp_path: Path, planned: Path) -> Path:
    """Return a plan file: an action is updated, another is made, in a tree that is applied."""
    shutil.copytree(planned, tmp_path, dirs_exist_ok=True)
    return tmp_path / "plan.json"


def test_an_approved_plan_is_applied_without_a_question(run: Run, approved: Path) -> None:
    """The review was the question."""
    applied = run("apply", "plan.json")

    assert applied.code == 0
    assert "Apply complete! 1 created, 1 updated, 0 deleted. 0 remaining." in applied.out
    assert run("plan", "--detailed-exitcode").code == 0


def test_a_plan_is_applied_once(run: Run, approved: Path) -> None:
    """Applied again it has nothing to do, until somebody else wrote to what it changed."""
    run("apply", "plan.json")
    count = events(run)

    again = run("apply", "plan.json")

    assert again.code == 0
    assert "Every change of this plan is done already." in again.err
    assert events(run) == count

    change_the_service(run, approved.parent)
    write(approved.parent / "theirs" / "greet.yaml", an_action(timeout="5s"))
    assert run("apply", "theirs", "--tree", "theirs", "--auto-approve").code == 0
    stale = run("apply", "plan.json")

    assert stale.code == 4
    assert "Action acme/greet: in step since, changed on the service by local:" in stale.err


def test_plan_tells_how_to_apply_exactly_what_it_saved(run: Run, approved: Path) -> None:
    """With every option that was given, and the folder of the manifests."""
    told = run("plan", "manifests", "--prune", "--tree", "default", "--out", "a b.json").err

    assert "reconciler apply 'a b.json' manifests" in told
    assert "--prune" in told
    assert "--tree default" in told
    assert "--out" not in told


def test_the_command_that_plan_prints_names_objects_as_apply_takes_them(
    run: Run, approved: Path
) -> None:
    """With their kind, which no other word of the command tells."""
    options = ("--tree", "theirs", "--take-over", "Action/acme/greet")
    told = run("plan", *options, "--out", "theirs.json")

    *_, command = told.err.splitlines()
    _, *words = shlex.split(command)
    applied = run(*words)

    assert "--take-over Action/acme/greet" in command
    assert applied.code == 0, applied.err


def test_a_plan_file_is_private_and_holds_no_secret(run: Run, approved: Path) -> None:
    """It travels through artifacts and chats."""
    text = approved.read_text(encoding="utf-8")
    sink = approved.parent / ".reconciler" / "secrets"
    secrets = [json.loads(path.read_text())["client_secret"] for path in sink.glob("*.json")]

    assert approved.stat().st_mode & 0o777 == 0o600
    assert secrets
    assert not any(secret in text for secret in secrets)


def test_show_tells_what_plan_told(run: Run, approved: Path) -> None:
    """In every form, and without manifests or a service."""
    text, fields = run("plan").out, run("plan", "--format", "json").json
    shutil.rmtree(approved.parent / "manifests")
    shutil.rmtree(approved.parent / ".reconciler")

    assert run("show", "plan.json").out == text
    shown = run("show", "plan.json", "--format", "json").json
    assert shown == fields


def change_a_manifest(run: Run, folder: Path) -> None:
    write(folder / "manifests" / "greet.yaml", an_action(timeout="6s"))


def change_what_is_in_step(run: Run, folder: Path) -> None:
    (folder / "manifests" / "partner.yaml").unlink()


def change_the_service(run: Run, folder: Path) -> None:
    write(folder / "theirs" / "greet.yaml", an_action(timeout="7s"))
    assert run("apply", "theirs", "--tree", "theirs", "--auto-approve").code == 0


def make_it_already(run: Run, folder: Path) -> None:
    write(folder / "theirs" / "other.yaml", an_action("other", timeout="7s"))
    assert run("apply", "theirs", "--tree", "theirs", "--auto-approve").code == 0


def remove_it(run: Run, folder: Path) -> None:
    direct = Direct(folder / ".reconciler" / "identity.db")
    direct("DeleteAction", id=direct.objects()["greet"]["id"])


@pytest.mark.parametrize(
    ("move", "told"),
    [
        (change_a_manifest, "Action acme/greet: declared differently"),
        (change_what_is_in_step, "was in step, and is no longer declared"),
        (change_the_service, "Action acme/greet: changed on the service since, by local:"),
        (make_it_already, "Action acme/other: the service holds it since, made by local:"),
        (remove_it, "Action acme/greet: gone from the service"),
    ],
)
def test_a_plan_that_would_come_out_differently_is_refused_by_name(
    run: Run, approved: Path, move: Callable[[Run, Path], None], told: str
) -> None:
    """Whatever moved, on either side, is named, and nothing is written."""
    move(run, approved.parent)
    count = events(run)

    stale = run("apply", "plan.json")

    assert stale.code == 4
    assert told in stale.err
    assert "Nothing was written." in stale.err
    assert events(run) == count


def test_a_service_that_no_longer_fits_the_manifests_makes_a_plan_stale(
    run: Run, small: Path
) -> None:
    """A pinned object that is gone is no error of the manifests that were approved."""
    run("apply", "--auto-approve")
    held = run("outputs", "--format", "json").json["applications"]
    pinned = json.loads(an_application("shopfront"))
    pinned["metadata"]["id"] = next(app["id"] for app in held if app["ref"]["name"] == "web")
    write(small / "web.yaml", json.dumps(pinned))
    run("plan", "--out", "plan.json")
    write(small.parent / "empty" / "o.yaml", ORGANIZATION)
    run("apply", "empty", "--auto-approve", "--prune-unmanaged", "--allow-deletes", "9")

    stale = run("apply", "plan.json")

    assert stale.code == 4
    assert "PLAN-ID-NOT-HELD" in stale.err


def test_comments_and_file_names_make_no_plan_stale(run: Run, approved: Path) -> None:
    """What is declared was approved, not how it is written."""
    manifest = approved.parent / "manifests" / "greet.yaml"
    write(manifest, f"# looked at twice\n{manifest.read_text()}")
    manifest.rename(manifest.with_name("hello.yml"))

    assert run("apply", "plan.json").code == 0


def test_a_plan_for_another_service_is_refused(run: Run, approved: Path, tmp_path: Path) -> None:
    """Production is not staging, even where both hold the same."""
    run("apply", "--auto-approve", "--service", "sqlite:other/identity.db")

    foreign = run("apply", "plan.json", "--service", "sqlite:other/identity.db")
    nowhere = run("apply", "plan.json", "--service", "sqlite:none/identity.db")

    assert foreign.code == nowhere.code == 4
    assert "the plan was made for service" in foreign.err
    assert "none yet" in nowhere.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--prune"], "without --prune"),
        (["--tree", "other"], "with --tree default"),
        (["--prune-unmanaged"], "without --prune-unmanaged"),
    ],
)
def test_a_plan_made_with_other_options_is_refused(
    run: Run, approved: Path, options: list[str], told: str
) -> None:
    """The file does not choose what may be deleted; the operator says it, and it must agree."""
    refused = run("apply", "plan.json", *options)

    assert refused.code == 4
    assert told in refused.err


def altered(path: Path, **fields: Any) -> None:
    """Write other fields into a plan file, with an integrity digest that is right."""
    known = json.loads(path.read_text(encoding="utf-8"))
    rest = {name: known[name] for name in known if name not in {"format", "format_version", SEAL}}
    path.write_bytes(sealed(FORMAT, FORMAT_VERSION, {**rest, **fields}))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"made_at": 1, "expires_at": 2}, "the plan has expired"),
        ({"made_at": 2**40, "expires_at": 2**41}, "made in the future"),
        ({"tool_version": "0.0.0"}, "made by version 0.0.0"),
        ({"against": [1, "sha256:x"]}, "made against a snapshot"),
        ({"manifests": "sha256:x"}, "declare something else"),
    ],
)
def test_a_plan_whose_time_is_over_is_refused(
    run: Run, approved: Path, fields: dict[str, Any], told: str
) -> None:
    """An approval does not last for ever, and is not one of everything."""
    altered(approved, **fields)

    refused = run("apply", "plan.json")

    assert refused.code == 4
    assert told in refused.err


def test_an_expired_plan_can_still_be_shown(run: Run, approved: Path) -> None:
    """It says that it has expired."""
    altered(approved, made_at=1, expires_at=2)

    shown = run("show", "plan.json")

    assert shown.code == 0
    assert "PLAN-EXPIRED" in shown.err


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"5s"', b'"9s"', 1))


def link(path: Path) -> None:
    path.rename(path.with_name("real.json"))
    path.symlink_to("real.json")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def smuggled(path: Path) -> None:
    altered(path, digest="sha256:" + "0" * 64)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flip, "was changed after it was written"),
        (link, "is a symbolic link"),
        (pipe, "is not a regular file"),
        (smuggled, "digest"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_damaged_plan_file_is_refused_with_the_reason(
    run: Run, approved: Path, damage: Callable[[Path], None], told: str
) -> None:
    """Nothing is applied of a file that is not as it was written, nor is it shown."""
    count = events(run)
    damage(approved)

    for command in ("show", "apply"):
        refused = run(command, "plan.json")

        assert refused.code == 1, command
        assert told in refused.err, command
    assert events(run) == count


def test_a_plan_file_with_the_ending_of_manifests_is_known_by_its_content(
    run: Run, approved: Path
) -> None:
    """And a manifest is never taken for one."""
    approved.rename(approved.with_name("plan.yaml"))
    assert run("apply", "plan.yaml").code == 0

    single = run("apply", "manifests/greet.yaml")
    assert single.code == 0
    assert "No changes." in single.out


def test_the_manifests_of_a_plan_stand_after_it(run: Run, approved: Path) -> None:
    """Where they are not in the usual folder."""
    (approved.parent / "manifests").rename(approved.parent / "infra")

    assert run("apply", "plan.json").code == 1
    assert run("apply", "plan.json", "infra").code == 0


def test_a_plan_file_behind_its_manifests_is_told_to_come_first(run: Run, approved: Path) -> None:
    """It would be read as a manifest, and say that it is of an unknown kind."""
    refused = run("apply", "manifests", "plan.json")

    assert refused.code == 1
    assert "plan.json is taken for a plan file and is not the first path" in refused.err
    assert "reconciler apply FILE [PATHS]" in refused.err
    assert run("apply", "plan.json", "manifests").code == 0


def test_a_digest_is_an_approval_of_just_that(run: Run, approved: Path) -> None:
    """From the comment under the pull request straight into the job that applies."""
    digest = digest_of(run("plan"))
    count = events(run)

    wrong = run("apply", "--digest", "sha256:" + "0" * 64)
    assert wrong.code == 4
    assert digest in wrong.err
    assert run("apply", "--digest", "sha256:0").code == 1
    assert events(run) == count
    assert run("apply", "--digest", digest).code == 0
    assert run("apply", "--digest", digest).code == 4


@pytest.mark.parametrize("name", ["plan.json", "manifests/plan.yaml", "agreed"])
def test_a_plan_file_that_a_commit_brings_is_no_approval(
    run: Run, approved: Path, tmp_path: Path, name: str
) -> None:
    """A pull request could put one in the place of manifests, and answer the question itself."""
    before = events(run)
    approved.rename(tmp_path / "kept")
    shutil.copy(tmp_path / "kept", write(tmp_path / name, ""))
    for words in (["init", "--quiet"], ["add", "--force", "--", name]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    refused = run("apply", name, "manifests")

    assert refused.code == 1
    assert f"the plan file {name} is a file of the repository" in refused.err
    assert events(run) == before
    subprocess.run(["git", "rm", "--quiet", "--cached", name], cwd=tmp_path, check=True)
    if name.startswith("manifests"):
        (tmp_path / name).rename(tmp_path / "elsewhere")
        name = "elsewhere"
    assert run("apply", name, "manifests").code == 0


def test_a_tracked_plan_file_is_applied_by_its_digest(
    run: Run, approved: Path, tmp_path: Path
) -> None:
    """The digest is what a person reviewed."""
    digest = digest_of(run("show", "plan.json"))
    for words in (["init", "--quiet"], ["add", "--force", "--", "plan.json"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)

    assert run("apply", "plan.json", "--digest", digest).code == 0


def test_a_digest_and_a_plan_file_must_both_agree(run: Run, approved: Path) -> None:
    """The file from the artifact, the digest from the comment."""
    digest = digest_of(run("show", "plan.json"))

    assert run("apply", "plan.json", "--digest", "sha256:" + "0" * 64).code == 4
    assert run("apply", "plan.json", "--digest", digest).code == 0


def test_a_first_plan_is_approved_before_there_is_a_store(run: Run, small: Path) -> None:
    """The store is made by the apply that was approved."""
    run("plan", "--out", "plan.json")
    digest = digest_of(run("plan"))
    assert run("apply", "--digest", "sha256:" + "1" * 64).code == 4
    assert not (small.parent / ".reconciler").exists()

    assert run("apply", "plan.json", "--digest", digest).code == 0
    assert run("plan", "--detailed-exitcode").code == 0


def test_guards_are_not_talked_over_by_a_plan_file(run: Run, small: Path) -> None:
    """What is allowed stands on the command line, never in a file."""
    for number in range(12):
        write(small / f"a{number}.yaml", an_action(f"a{number}"))
    run("apply", "--auto-approve")
    for number in range(8):
        write(small / f"a{number}.yaml", an_action(f"a{number}", timeout="1s"))
    assert run("plan", "--allow-updates", "8", "--out", "plan.json").code == 0

    assert run("apply", "plan.json").code == 3
    assert run("apply", "plan.json", "--allow-updates", "8").code == 0


def test_a_plan_of_nothing_is_applied_to_nothing(run: Run, small: Path) -> None:
    """A pipeline need not know whether there is anything to do."""
    run("apply", "--auto-approve")
    run("plan", "--out", "plan.json")
    count = events(run)

    assert run("apply", "plan.json").code == 0
    assert events(run) == count


def test_a_tree_whose_names_are_no_utf_8_is_planned_saved_shown_and_applied(
    run: Run, small: Path
) -> None:
    """The bytes are made visible, in text that every reader of JSON accepts."""
    folder, file = os.fsdecode(b"m\xfe"), os.fsdecode(b"p\xfd.json")
    small.rename(small.parent / folder)
    odd = small.parent / folder / os.fsdecode(b"o\xff.yaml")
    write(odd, an_application("odd", redirectUris=["http://odd.example.com/cb"]))

    planned = run("plan", folder, "--out", file, "--format", "json")
    shown = run("show", file, "--format", "json")
    applied = run("apply", file, folder)

    (finding,) = planned.json["diagnostics"]
    assert finding["file"] == "m\\u{dcfe}/o\\u{dcff}.yaml"
    assert "\\ud" not in planned.out + shown.out
    assert "reconciler apply $'p\\xfd.json' $'m\\xfe'" in planned.err
    assert shown.json["diagnostics"] == planned.json["diagnostics"]
    assert applied.code == 0, applied.all
    for form in ("text", "markdown", "html"):
        assert run("plan", folder, "--format", form).code == 0
    for form in ("json", "sarif", "junit"):
        assert "dcff" in run("validate", folder, "--format", form).out


def test_the_order_of_paths_makes_no_difference(run: Run, small: Path) -> None:
    """To the plan, its digest, the file it is saved in, and whether that can be applied."""
    organization = "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {{name: {}}}\n"
    write(small.parent / "a" / "o.yaml", organization.format("beta"))
    write(small.parent / "b" / "o.yaml", organization.format("alpha"))
    # A script is beneath the folder that was named: the outer one, in whatever order.
    write(small / "scripts" / "inner.js", "function inner(ctx, api) {}\n")
    action = json.loads(an_action("inner"))
    action["spec"] = {"scriptFile": "../scripts/inner.js"}
    write(small / "inner" / "inner.yaml", json.dumps(action))
    paths = ["a", "manifests", "b", "manifests/inner"]
    turned = list(reversed(paths))

    one = run("plan", *paths, "--out", "one.json", "--format", "json")
    other = run("plan", *turned, "--out", "other.json", "--format", "json")

    assert one.code == 0, one.all
    assert one.out == other.out
    saved = [json.loads((small.parent / name).read_text()) for name in ("one.json", "other.json")]
    for each in saved:
        for changing in ("made_at", "expires_at", "integrity"):
            del each[changing]
    assert saved[0] == saved[1]
    assert run("apply", "one.json", *turned).code == 0
