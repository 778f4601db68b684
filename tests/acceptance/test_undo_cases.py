"""What an undo takes back and what it refuses, embedded and against ``serve``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.conftest import Ran, Run, an_action, an_application, write
from tests.acceptance.test_moments import applied, exported
from tests.acceptance.test_undo import GLASS, undone
from tests.acceptance.ways import ONE_WAY, Way, a_way, on_two_ways
from tests.acceptance.zitadel import ServeZitadel
from tests.direct import Direct
from tests.running import running_server
from tests.terminal import approved_after

REASON = "logins failed"


@dataclass(frozen=True)
class Ours:
    """A service of ours, and the small tree, which is applied to it."""

    way: Way
    manifests: Path

    @property
    def run(self) -> Run:
        return self.way.run

    @property
    def direct(self) -> Direct:
        return self.way.direct

    @property
    def folder(self) -> Path:
        return self.manifests.parent


@pytest.fixture(params=ONE_WAY)
def ours(request: pytest.FixtureRequest, run: Run, small: Path, tmp_path: Path) -> Iterator[Ours]:
    """Return a way to a service, to which the small tree is applied."""
    postgres = partial(request.getfixturevalue, "postgres")
    with a_way(request.param, run, tmp_path, postgres) as way:
        first = way.run("apply", "--auto-approve")
        assert first.code == 0, first.all
        yield Ours(way, small)


def run_of(ran: Ran) -> str:
    return str(ran.json["run"])


def with_metadata(text: str, **metadata: object) -> str:
    value = json.loads(text)
    value["metadata"] |= metadata
    return json.dumps(value)


def test_what_an_undo_removed_is_made_again_only_with_redo(ours: Ours) -> None:
    run_id = run_of(applied(ours.run, ours.manifests, more=an_action("more")))
    undone(ours.run, run_id)

    blocked = ours.run("plan", "--detailed-exitcode")
    allowed = ours.run("plan", "--redo", "Action/acme/more", "--detailed-exitcode")
    (ours.manifests / "more.yaml").unlink()
    reverted = ours.run("plan", "--prune", "--detailed-exitcode")

    assert blocked.code == 3, blocked.all
    assert "GUARD-UNDONE" in blocked.err
    assert REASON in blocked.err
    assert "--redo Action/acme/more" in blocked.err
    assert allowed.code == 2, allowed.all
    assert reverted.code == 0, reverted.all


def test_what_an_undo_brought_back_is_deleted_again_only_with_redo(ours: Ours) -> None:
    text = (ours.manifests / "partner.yaml").read_text()
    run_id = run_of(applied(ours.run, ours.manifests, partner=""))
    undone(ours.run, run_id)

    prune = ("--prune", "--allow-deletes", "9")
    blocked = ours.run("plan", *prune, "--detailed-exitcode")
    allowed = ours.run(
        "apply", *prune, "--redo", "IdpJwtConfig/acme/partner", "--auto-approve", "--format", "json"
    )
    undone(ours.run, run_of(allowed))
    write(ours.manifests / "partner.yaml", text)
    reverted = ours.run("plan", "--prune", "--detailed-exitcode")

    assert blocked.code == 3, blocked.all
    assert "GUARD-UNDONE" in blocked.err
    assert "--redo IdpJwtConfig/acme/partner" in blocked.err
    assert allowed.code == 0, allowed.all
    assert reverted.code == 0, reverted.all


def owner_of(place: Ours, name: str) -> object:
    return place.direct.objects()[name].get("owner")


@on_two_ways
@pytest.mark.parametrize("first", ["other", ""])
def test_a_take_over_goes_back_to_the_tree_or_to_none(ours: Ours, first: str) -> None:
    """No field differs: the owner alone."""
    if first:
        text = an_action("theirs")
        write(ours.folder / "theirs" / "theirs.yaml", text)
        made = ours.run("apply", "theirs", "--tree", "other", "--auto-approve")
        assert made.code == 0, made.all
        write(ours.manifests / "theirs.yaml", text)
    else:
        org = ours.direct.objects()["greet"]["organizationId"]
        script = "function theirs(ctx, api) {}"
        ours.direct("CreateAction", organization=org, name="theirs", script=script)
        write(ours.manifests / "theirs.yaml", an_action("theirs"))
    before = owner_of(ours, "theirs")
    taken = ours.run(
        "apply", "--take-over", "Action/acme/theirs", "--auto-approve", "--format", "json"
    )
    assert owner_of(ours, "theirs") == "default", taken.all

    second = undone(ours.run, run_of(taken))
    assert owner_of(ours, "theirs") == before
    undone(ours.run, second)
    assert owner_of(ours, "theirs") == "default"


def test_an_adoption_goes_back_with_its_fields(ours: Ours) -> None:
    org = ours.direct.objects()["greet"]["organizationId"]
    ours.direct("CreateAction", organization=org, name="theirs", script="function theirs() {}")
    before = exported(ours.run)
    adopted = applied(ours.run, ours.manifests, theirs=an_action("theirs", timeout="9s"))

    undone(ours.run, run_of(adopted))

    assert exported(ours.run) == before
    assert not owner_of(ours, "theirs")


@on_two_ways
def test_an_application_that_was_deleted_comes_back_with_a_new_secret(ours: Ours) -> None:
    """A new client id and secret: said before, allowed by name, delivered."""
    before = exported(ours.run)
    old = ours.direct.objects()["web"]["clientId"]
    removed = applied(ours.run, ours.manifests, web="")

    blocked = ours.run("undo", run_of(removed), "--auto-approve")
    back = ours.run("undo", run_of(removed), "--auto-approve", *GLASS)

    assert blocked.code == 3, blocked.all
    assert "--break-glass OidcApplication/acme/shop/web" in blocked.err
    assert "new client id" in blocked.err
    assert back.code == 0, back.all
    assert exported(ours.run) == before
    new = ours.direct.objects()["web"]["clientId"]
    assert new != old
    assert new in (ours.folder / "kept" / "acme.shop.web.json").read_text()


@on_two_ways
def test_a_rotated_secret_stays_rotated(ours: Ours) -> None:
    """A run that only rotated leaves nothing to undo, and a later rotation is no conflict."""
    rotate = ("--rotate-missing", "acme/shop/web")
    changed = applied(ours.run, ours.manifests, web=an_application("web", devMode=True))
    rotated = ours.run("apply", *rotate, "--auto-approve", "--format", "json")
    assert rotated.code == 0, rotated.all

    nothing = ours.run("undo", run_of(rotated), "--auto-approve")
    undone(ours.run, run_of(changed))

    assert nothing.code == 0, nothing.all
    assert "stays rotated" in nothing.all
    assert "the client secret of OidcApplication acme/shop/web." in nothing.all
    assert "devMode: true" not in exported(ours.run)


@on_two_ways
def test_half_an_apply_is_undone_as_far_as_it_went(ours: Ours) -> None:
    before = exported(ours.run)
    for name in "abcdef":
        write(ours.manifests / f"{name}.yaml", an_action(name))
    killed = ours.run("apply", "--auto-approve", RECONCILER_CRASHPOINT="C4:1")
    assert killed.code < 0, killed.all
    half = exported(ours.run)
    assert half != before
    events = ours.run("history", "--organization", "acme", "--format", "json").json["events"]

    undone(ours.run, str(events[-1]["run"]))

    assert exported(ours.run) == before


@on_two_ways
def test_one_run_after_the_other_is_undone_the_latest_first(ours: Ours) -> None:
    """The undo of the later run is no obstacle; once that is undone itself, it is one."""
    first = exported(ours.run)
    one = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    second = exported(ours.run)
    two = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="8s")))
    third = exported(ours.run)

    undo = undone(ours.run, two)
    assert exported(ours.run) == second
    redo = undone(ours.run, undo)
    assert exported(ours.run) == third
    refused = ours.run("undo", one, "--auto-approve")
    undone(ours.run, redo)
    undone(ours.run, one)

    assert refused.code == 4, refused.all
    assert f"Undo run {redo} first" in refused.err
    assert exported(ours.run) == first


def test_what_is_left_alone_is_not_named_as_deleted(ours: Ours) -> None:
    """A project that the run made stays, so that its manifest is no contradiction."""
    project = {"kind": "Project", "metadata": {"organization": "acme", "name": "second"}}
    text = json.dumps({"apiVersion": "reconciler/v1", **project})
    run_id = run_of(applied(ours.run, ours.manifests, second=text, more=an_action("more")))

    ran = ours.run("undo", run_id, "--prune", "--auto-approve")

    assert ran.code == 0, ran.all
    assert "The run made Action acme/more." in ran.err
    assert "The run made Project acme/second." not in ran.err


@on_two_ways
def test_a_change_between_the_plan_and_its_apply_is_not_lost(ours: Ours) -> None:
    """Another writer is faster than the yes: nothing of the object is written."""
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    late = approved_after(
        lambda: ours.direct.change("greet", timeout="8s"),
        ours.folder,
        "undo",
        run_id,
        **ours.way.known,
    )

    assert late.code == 4, late.all
    assert "timeout: 8s" in exported(ours.run)


@on_two_ways
def test_only_who_may_write_undoes_and_only_its_own_tree(ours: Ours) -> None:
    """Another tree's run, a run nobody made, a paused tree: nothing is written."""
    run_id = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    held = exported(ours.run)

    other = ours.run("undo", run_id, "--tree", "other", "--auto-approve")
    unknown = ours.run("undo", "0" * 32, "--auto-approve")
    assert ours.run("pause", "--reason", "incident 7").code == 0
    paused = ours.run("undo", run_id, "--auto-approve")

    assert other.code == 1, other.all
    assert "is of tree default, not of other" in other.err
    assert unknown.code == 1, unknown.all
    assert paused.code == 3, paused.all
    assert "paused" in paused.err
    assert exported(ours.run) == held
    despite = ours.run("undo", run_id, "--auto-approve", "--despite-pause")
    assert despite.code == 0, despite.all


def test_a_zitadel_is_refused_with_what_to_do_instead(run: Run, a_zitadel: ServeZitadel) -> None:
    with a_zitadel() as (_, here):
        refused = run("undo", "0" * 32, "--auto-approve", **here)

    assert refused.code == 1, refused.all
    assert "reconciler export --snapshot FILE" in refused.err
    assert "reconciler plan --against FILE" in refused.err


def test_an_undo_says_why_what_stays_and_what_keeps_git_true(ours: Ours) -> None:
    """No manifest is behind its changes; what the run made stays without --prune."""
    commits = [commit_in(ours.folder)]
    assert ours.run("apply", "--auto-approve").code == 0
    files = {"greet": an_action(timeout="7s"), "more": an_action("more")}
    for name, text in files.items():
        write(ours.manifests / f"{name}.yaml", text)
    commits.append(commit_in(ours.folder))
    run_id = run_of(applied(ours.run, ours.manifests))

    ran = ours.run("undo", run_id, "--auto-approve")
    again = ours.run("undo", run_id, "--auto-approve", "--keep", "Action/acme/greet")
    other = ours.run("undo", run_of_last(ours.run), "--auto-approve")

    assert ran.code == 0, ran.all
    assert "to be as it was before the run that is undone" in ran.out
    assert "declared" not in ran.out.replace("declared nowhere", "")
    assert "--prune would delete it" in ran.out
    assert f"git revert {commits[1]}" in ran.all
    assert "No changes. Nothing that the run wrote is to be taken back." in again.out
    assert other.code == 0, other.all
    assert "The manifests say the same as what is held now." in other.err


def commit_in(folder: Path) -> str:
    """Commit everything, and return the commit."""
    git = ["git", "-c", "user.name=ana", "-c", "user.email=ana@example.com"]
    for words in (["init", "-q"], ["add", "manifests"], ["commit", "-qm", "x", "--allow-empty"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    told = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


def run_of_last(run: Run) -> str:
    events = run("history", "--organization", "acme", "--format", "json").json["events"]
    return str(events[-1]["run"])


def test_a_viewer_undoes_nothing(
    run: Run, small: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_server(tmp_path_factory.mktemp("server")) as server:
        known = {"RECONCILER_SERVICE": server.address, "RECONCILER_TOKEN": server.token("admin")}
        ours = partial(run, **known, RECONCILER_SECRETS_TO="file:kept")
        assert ours("apply", "--auto-approve").code == 0
        run_id = run_of(applied(ours, small, greet=an_action(timeout="7s")))
        held = exported(ours)

        refused = ours("undo", run_id, "--auto-approve", RECONCILER_TOKEN=server.token("viewer"))

        assert refused.code not in {0, 2}, refused.all
        assert exported(ours) == held


def test_what_was_made_again_since_is_another_object(ours: Ours) -> None:
    """To undo the later run, which deleted it, is done already and is not asked for once more."""
    one = run_of(applied(ours.run, ours.manifests, greet=an_action(timeout="7s")))
    two = run_of(applied(ours.run, ours.manifests, greet=""))
    first = ours.run("undo", one, "--auto-approve")
    undone(ours.run, two)

    refused = ours.run("undo", one, "--auto-approve")

    assert (first.code, refused.code) == (4, 4), refused.all
    assert f"Undo run {two} first" in first.err
    assert "Its undo made another object of that name. Leave the object out" in refused.err
    kept = ours.run("undo", one, "--keep", "Action/acme/greet", "--auto-approve")
    assert kept.code == 0, kept.all
