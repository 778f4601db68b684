"""What a service holds becomes manifests, or a snapshot to plan against without credentials."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request
from tests.acceptance.conftest import ROOT, Place, Run, an_action, write
from tests.acceptance.test_saved_plans import events

ANA = Caller("ana", Role.ADMIN)
SCRIPT = "function greet(ctx, api) {\n  //\n  //\n  //\n  //\n}\n"


@pytest.fixture
def filled(run: Run, tmp_path: Path) -> str:
    """Return the address of a service that somebody filled without this tool."""
    store = tmp_path / "held" / "identity.db"
    store.parent.mkdir()
    with closing(open_sqlite(store, create=True)) as service:

        def call(operation: str, organization: str = "", **fields: object) -> str:
            request = Request(operation, fields, caller=ANA, organization=organization)
            answer = service.call(request)
            return str(answer.get("id") or answer.get("appId") or answer.get("idpId"))

        for name in ("acme", "Büro Süd"):
            owner = call("AddOrg", name=name)
            project = call("AddProject", owner, name="shop")
            call("AddOIDCApp", owner, projectId=project, name="web app", redirectUris=[])
            call("CreateAction", owner, name="greet", script=SCRIPT)
            call("CreateAction", owner, name="broken", script="function (")
            call("CreateAction", owner, name="hidden\u202e", script="let a;")
    return f"sqlite:{store}"


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_an_export_is_valid_and_its_plan_is_empty(run: Run, filled: str, tmp_path: Path) -> None:
    """The way in for a team that has a service and no manifests."""
    exported = run("export", "--service", filled, "--out", "manifests")

    assert exported.code == 0
    assert run("validate").code == 0
    plan = run("plan", "--service", filled, "--detailed-exitcode")
    assert plan.code == 0
    assert "No changes." in plan.out
    assert (tmp_path / "manifests" / "acme" / "actions" / "scripts" / "greet.js").read_text() == (
        SCRIPT
    )


def test_what_cannot_be_expressed_is_named_twice(run: Run, filled: str, tmp_path: Path) -> None:
    """On stderr, and beside the manifests; visibly."""
    told = run("export", "--service", filled, "--out", "out").err
    named = (tmp_path / "out" / "NOT-EXPORTED.txt").read_text(encoding="utf-8")

    for text in (told, named):
        assert "Action acme/broken: " in text
        assert "SCRIPT-SYNTAX" in text or "compile" in text
        assert "Action acme/hidden\\u{202e}: " in text
        assert "\u202e" not in text


def test_one_organization_is_exported_alone(run: Run, filled: str, tmp_path: Path) -> None:
    """Teams own organizations."""
    run("export", "--service", filled, "--out", "out", "--organization", "büro süd")

    assert [path.name.partition("-")[0] for path in (tmp_path / "out").iterdir()] != []
    assert "acme" not in {path.name for path in (tmp_path / "out").iterdir()}
    assert run("export", "--service", filled, "--organization", "nobody").code == 1


def test_the_example_organization_comes_out_as_it_went_in(run: Run, tmp_path: Path) -> None:
    """The layout is the example's own."""
    run("apply", str(ROOT / "manifests"), "--auto-approve")
    run("export", "--out", "out")

    ours = {name for name in files_of(ROOT / "manifests") if "applications" in name}
    assert ours <= set(files_of(tmp_path / "out"))
    assert run("plan", "out", "--detailed-exitcode").code == 0
    assert not (tmp_path / "out" / "NOT-EXPORTED.txt").exists()


def test_a_folder_with_files_in_it_is_not_written_into_unasked(
    run: Run, filled: str, tmp_path: Path
) -> None:
    """Somebody's own manifests are never mixed with what a service holds."""
    mine = write(tmp_path / "out" / "mine.yaml", an_action("mine"))

    refused = run("export", "--service", filled, "--out", "out")
    assert refused.code == 1
    assert list((tmp_path / "out").iterdir()) == [mine]

    written = run("export", "--service", filled, "--out", "out", "--overwrite")
    assert written.code == 0
    assert "left alone, because it is not part of this export: mine.yaml" in written.err
    assert mine.read_text() == an_action("mine")


def test_no_object_is_declared_a_second_time(run: Run, filled: str, tmp_path: Path) -> None:
    """Two manifests of one object are an error that the export would have made."""
    mine = write(tmp_path / "out" / "mine.yaml", an_action("greet"))
    before = files_of(tmp_path / "out")

    refused = run("export", "--service", filled, "--out", "out", "--overwrite")

    assert refused.code == 1
    assert "out/mine.yaml declares Action acme/greet already" in refused.err
    assert files_of(tmp_path / "out") == before
    mine.write_text("a: [\n", encoding="utf-8")
    unread = run("export", "--service", filled, "--out", "out", "--overwrite")
    assert (unread.code, "out/mine.yaml:" in unread.err) == (1, True)
    assert "it may declare an object of this export" in unread.err
    mine.unlink()
    assert run("export", "--service", filled, "--out", "out", "--overwrite").code == 0
    assert run("export", "--service", filled, "--out", "out", "--overwrite").code == 0


def test_one_object_is_exported_into_a_folder_of_others(
    run: Run, filled: str, tmp_path: Path
) -> None:
    """By its ref; what is there stays as it is, and the editor finds the schema."""
    mine = write(tmp_path / "out" / "mine.yaml", an_action("mine"))
    export = ("export", "--service", filled, "--out", "./out/")
    one = run(*export, "action/ACME/greet")
    again = run(*export, "Action/acme/greet")
    other = run(*export, "OidcApplication/Büro Süd/shop/web app")
    streamed = run("export", "--service", filled, "Action/acme/greet").out
    nothing = run(*export, "Action/acme/nobody")
    broken = run(*export, "Action/acme/broken")

    file = tmp_path / "out" / "acme" / "actions" / "greet.yaml"
    modeline = "# yaml-language-server: $schema=../../.schemas/action.schema.json\n"
    assert (one.code, one.err) == (0, "Wrote 1 manifest into ./out/.\n")
    assert file.read_text(encoding="utf-8").startswith(f"{modeline}apiVersion: reconciler/v1\n")
    assert (file.parent / "../../.schemas/action.schema.json").is_file()
    assert (again.code, "greet.yaml declares Action acme/greet already" in again.err) == (1, True)
    assert (other.code, mine.read_text()) == (0, an_action("mine"))
    assert streamed.count("kind: ") == 1
    assert "name: greet\n" in streamed
    assert (nothing.code, "the service holds no Action acme/nobody" in nothing.err) == (1, True)
    assert (broken.code, "this object cannot be exported: " in broken.err) == (1, True)
    assert run("validate", "out").code == 0


def test_an_export_writes_nothing_to_the_service(run: Run, filled: str) -> None:
    """Looking leaves no trace."""
    count = events(run, RECONCILER_SERVICE=filled)

    run("export", "--service", filled, "--out", "out")
    run("export", "--service", filled, "--snapshot", "s.json")

    assert events(run, RECONCILER_SERVICE=filled) == count


def test_a_service_that_is_not_there_yet_exports_nothing(run: Run, tmp_path: Path) -> None:
    """And is not made."""
    assert run("export").out == ""
    assert list(tmp_path.iterdir()) == []


# Plans without credentials.


@pytest.fixture
def snapshot(run: Run, small: Path, tmp_path: Path) -> Path:
    """Return a snapshot of an applied tree, of which an action is then declared differently."""
    run("apply", "--auto-approve")
    assert run("export", "--snapshot", "snapshot.json").code == 0
    write(small / "greet.yaml", an_action(timeout="5s"))
    return tmp_path / "snapshot.json"


def test_a_plan_against_a_snapshot_is_the_plan_against_the_service(
    run: Run, snapshot: Path
) -> None:
    """Same changes, same digest; and it says how old it is."""
    real = run("plan", "--format", "json").json
    nowhere = ("plan", "--service", "sqlite:none.db", "--against", "snapshot.json")

    told = run(*nowhere, "--format", "json").json
    text = run(*nowhere, "--detailed-exitcode")

    assert told["digest"] == real["digest"]
    assert told["changes"] == real["changes"]
    assert told["diagnostics"][0]["code"] == "PLAN-SNAPSHOT"
    assert text.code == 2
    assert "a snapshot that is less than a minute old" in text.err


def test_a_plan_against_a_snapshot_blames_nobody(place: Place) -> None:
    """The last writer may have changed another field: only a history tells, and it has none."""
    run = place.run
    assert run("apply", "--auto-approve").code == 0
    place.direct.change("greet", allowedToFail=True)
    write(place.manifests / "greet.yaml", an_action(timeout="5s", allowedToFail=True))
    assert run("export", "--snapshot", "snapshot.json").code == 0

    text = run("plan", "--against", "snapshot.json", "--out", "plan.bin")
    told = run("plan", "--against", "snapshot.json", "--format", "json").json
    real = run("plan", "--format", "json").json

    (change,) = told["changes"]
    assert change["cause"]["kind"] == change["fields"][0]["cause"]["kind"] == "unknown"
    assert change["cause"]["by"] is None
    assert "PLAN-CAUSES-NOT-READ" in [each["code"] for each in told["diagnostics"]]
    assert told["digest"] == real["digest"]
    for shown in (text, run("show", "plan.bin")):
        assert "# cause not read: a snapshot has no history" in shown.out
        assert "does not say who changed Action acme/greet." in shown.err
        assert "by ana" not in shown.all


def test_a_plan_against_a_snapshot_is_shown_and_never_applied(run: Run, snapshot: Path) -> None:
    """It has to be made again where there are credentials."""
    assert run("plan", "--against", "snapshot.json", "--out", "plan.json").code == 0
    assert "PLAN-SNAPSHOT" in run("show", "plan.json").err

    refused = run("apply", "plan.json")

    assert refused.code == 4
    assert "against a snapshot" in refused.err


def test_a_snapshot_holds_no_secret(run: Run, snapshot: Path) -> None:
    """It is published to jobs that nobody trusts."""
    text = snapshot.read_text(encoding="utf-8")
    sink = snapshot.parent / ".reconciler" / "secrets"
    secrets = [json.loads(path.read_text())["client_secret"] for path in sink.glob("*.json")]

    assert secrets
    assert not any(secret in text for secret in secrets)
    assert "secret_hash" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"20s"', b'"19s"'), (b'"1.0"', b'"2.0"'), (b'"instance"', b'"Instance"'), (b"}", b"")],
)
def test_a_changed_snapshot_is_refused(run: Run, snapshot: Path, old: bytes, new: bytes) -> None:
    """A plan against it would deceive its reader."""
    snapshot.write_bytes(snapshot.read_bytes().replace(old, new, 1))

    assert run("plan", "--against", "snapshot.json").code == 1


def test_an_organization_that_a_snapshot_does_not_cover_blocks_the_plan(
    run: Run, snapshot: Path, small: Path
) -> None:
    """Everything in it would look as if it had to be made."""
    run("export", "--snapshot", "acme.json", "--organization", "acme")
    write(small / "b.yaml", an_action("b").replace('"acme"', '"globex"'))
    write(
        small / "o.yaml",
        "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: globex}\n",
    )

    blocked = run("plan", "--against", "acme.json", "--detailed-exitcode")

    assert blocked.code == 3
    assert "does not cover organization globex" in blocked.err
    assert run("plan", "--against", "snapshot.json", "--detailed-exitcode").code == 2
