"""``export --at``, ``compare --at`` and ``history --since``, on every way to a service of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.clients import remote_service
from reconciler.cli.connection import Connection
from reconciler.service.build import open_postgres, open_sqlite
from reconciler.service_client.client import read_only_client
from tests.acceptance.conftest import Ran, Run, an_action, an_application, write
from tests.acceptance.ways import WAYS, a_way
from tests.acceptance.zitadel import ServeZitadel
from tests.contract.test_past import check_each_export
from tests.direct import Direct
from tests.examples import Clock
from tests.served import a_token, serving
from tests.unit.service.asking import Asking


@pytest.fixture(params=WAYS)
def ours(request: pytest.FixtureRequest, run: Run, small: Path, tmp_path: Path) -> Iterator[Run]:
    """Run the program against each way to a service of ours; the small tree is applied."""
    postgres = partial(request.getfixturevalue, "postgres")
    with a_way(request.param, run, tmp_path, postgres) as way:
        first = way.run("apply", "--auto-approve")
        assert first.code == 0, first.all
        yield way.run


def last_event(way: Run) -> Mapping[str, Any]:
    """Return the last event of the organization."""
    events = way("history", "--organization", "acme", "--format", "json").json["events"]
    return dict(events[-1])


def applied(way: Run, folder: Path, **files: str) -> Ran:
    """Write manifests, remove those that are empty, and apply; a delete is asked for."""
    for name, text in files.items():
        if text:
            write(folder / f"{name}.yaml", text)
        else:
            (folder / f"{name}.yaml").unlink()
    ran = way(
        "apply", "--auto-approve", "--prune", "--allow-deletes", "9", "--format", "json",
        "--break-glass", "OidcApplication/acme/shop/web=test",
    )  # fmt: skip
    assert ran.code == 0, ran.all
    return ran


def exported(way: Run, *at: str) -> str:
    ran = way("export", *at)
    assert ran.code == 0, ran.all
    return ran.out


def test_each_moment_is_exported_as_it_was(ours: Run, small: Path) -> None:
    """Creates, updates, a rename, a state, a delete: by its time, and by the run after it."""
    steps: list[dict[str, str]] = [
        {"more": an_action("more", script="function more() { return 1 }")},
        {"more": an_action("more", script="function more() { return 2 }")},
        {"web": an_application("web", redirectUris=["https://other.example.com/cb"])},
        {"greet": an_action().replace('"metadata": {', '"metadata": {"active": false, ')},
        {"more": ""},
        {"partner": ""},
    ]
    moments = []
    for step in steps:
        moment = (exported(ours), str(last_event(ours)["at"]))
        moments.append((*moment, applied(ours, small, **step).json["run"]))

    for held, time, run_id in moments:
        assert exported(ours, "--at", time) == held
        assert exported(ours, "--at", run_id) == held
    assert exported(ours, "--at", str(last_event(ours)["at"])) == exported(ours)
    assert len({held for held, _, _ in moments}) == len(steps)


def test_a_comparison_says_who_changed_what_and_why(ours: Run, small: Path) -> None:
    begin = str(last_event(ours)["at"])
    changed = applied(ours, small, greet=an_action(timeout="5s"), more=an_action("more"))
    middle = str(last_event(ours)["at"])
    removed = applied(ours, small, partner="")

    since = ours("compare", "--at", begin, "--detailed-exitcode")
    between = ours("compare", "--at", begin, "--at", middle, "--format", "json").json
    later = ours("compare", "--at", middle, "--at", removed.json["run"])

    assert since.code == 2
    assert "~ Action acme/greet" in since.out
    assert "+ Action acme/more" in since.out
    assert "- IdpJwtConfig acme/partner" in since.out
    assert "Compared: 1 created, 1 changed, 1 deleted, 4 the same." in since.out
    assert f"from {begin} to now" in since.out
    assert f"run {removed.json['run']}" in since.out
    assert (between["from"], between["to"]) == (begin, middle)
    found = {each["ref"]["name"]: each for each in between["changes"]}
    assert {name: each["change"] for name, each in found.items()} == {
        "greet": "update", "more": "create",
    }  # fmt: skip
    (field,) = found["greet"]["fields"]
    assert (field["name"], field["before"], field["after"]) == ("timeout", "20s", "5s")
    for cause in (field["cause"], found["greet"]["cause"], found["more"]["cause"]):
        assert cause["kind"] == "event"
        assert cause["tree"] == "default"
        assert f"run {changed.json['run']}" in cause["why"]
    assert later.out.endswith("No differences. The service held the same at both moments.\n")
    for form in ("markdown", "html"):
        assert (
            "1 created, 1 changed, 1 deleted"
            in ours("compare", "--at", begin, "--format", form).out
        )
    backwards = ours("compare", "--at", middle, "--at", begin)
    assert (backwards.code, "is after" in backwards.err) == (1, True)


def test_a_history_is_of_an_organization_and_between_moments(ours: Run, small: Path) -> None:
    begin = last_event(ours)
    run_id = applied(ours, small, greet=an_action(timeout="5s")).json["run"]
    middle = last_event(ours)
    applied(ours, small, greet=an_action(timeout="6s"))

    def told(*words: str) -> list[Any]:
        ran = ours("history", *words, "--format", "json")
        assert ran.code == 0, ran.all
        return list(ran.json["events"])

    here = ("--organization", "acme")
    of_run = told(*here, "--since", run_id, "--until", str(middle["at"]))
    assert [each["sequence"] for each in of_run] == [middle["sequence"]]
    assert (of_run[0]["object"], of_run[0]["run"]) == ("Action/acme/greet", run_id)
    assert (of_run[0]["organization"], of_run[0]["tree"]) == ("acme", "default")
    assert len(told(*here, "--since", str(begin["at"]))) == 2
    assert told(*here, "--until", run_id)[-1]["sequence"] == begin["sequence"]
    names = {each["object"] for each in told(*here)}
    assert "OidcApplication/acme/shop/web" in names
    of_greet = told("Action/acme/greet")
    assert len(of_greet) == 3
    assert told("Action/acme/greet", "--since", run_id) == of_greet[1:]
    assert told("Action/acme/greet", "--since", run_id, "--until", str(middle["at"])) == [
        of_greet[1]
    ]
    assert of_greet[1]["run"] == run_id
    text = ours("history", *here, "--since", "7d").out
    assert f"run {run_id}" in text
    assert ours("history", *here, "--until", "7d").out.endswith("Nothing happened.\n")


def test_a_run_is_its_writer_and_its_tree(run: Run, small: Path) -> None:
    """Whoever writes may claim any context: an id that two of them use names no moment."""
    assert run("apply", "--auto-approve").code == 0
    used = applied(run, small, more=an_action("more")).json["run"]
    before = exported(run, "--at", used)
    direct = Direct(small.parent / ".reconciler" / "identity.db")
    held = direct.objects()["more"]
    forged = json.dumps({"tree": "default", "run": used})
    direct("UpdateAction", id=held["id"], name="more", script="x = 1")
    assert exported(run, "--at", used) == before
    direct("RecordContext", id=held["id"], context=forged)

    for words in (("export",), ("compare",)):
        refused = run(*words, "--at", used)
        assert refused.code == 1
        assert f"several writers used the id of run {used}" in refused.err
        assert "ana for tree default; local:" in refused.err


def test_a_run_of_one_organization_leaves_the_others_as_they_were(run: Run, small: Path) -> None:
    """They are taken as they were before the first event of the run."""
    write(small / "globex.yaml", an_action().replace('"acme"', '"globex"'))
    write(
        small / "globex-org.yaml",
        "apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: globex\n",
    )
    assert run("apply", "--auto-approve").code == 0
    before = exported(run)
    used = applied(run, small, more=an_action("more")).json["run"]
    applied(run, small, globex=an_action(timeout="5s").replace('"acme"', '"globex"'))

    assert exported(run, "--at", used) == before
    assert exported(run, "--at", used, "--organization", "globex") in before
    assert exported(run, "Action/globex/greet", "--at", used) != exported(
        run, "Action/globex/greet"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("export", "--at", "yesterday"), "invalid moment 'yesterday'"),
        (("export", "--at", "2026-01-01T00:00:00"), "invalid moment"),
        (("export", "--at", "2026-13-01T00:00:00Z"), "invalid moment"),
        (("export", "--at", "2999-01-01T00:00:00Z"), "is in the future"),
        (("export", "--at", "1960-01-01T00:00:00Z"), "acme did not exist yet at"),
        (("export", "--at", "7d"), "acme did not exist yet at"),
        (("export", "--at", "0" * 32), "there is no event of run 000"),
        (("export", "--at", "f" * 32), "there is no event of run fff"),
        (("export", "--at", "1h", "--organization", "nobody"), "there is no organization nobody"),
        (("export", "--at", "1h", "--snapshot", "x"), "--at does not go with --snapshot"),
        (("compare",), "compare takes two environments, or moments"),
        (("compare", "staging", "production", "--at", "1h"), "without environments"),
        (("compare", "--at", "3h", "--at", "2h", "--at", "1h"), "--at is given once or twice"),
        (("history",), "history is of one object, or of organizations"),
        (("history", "Action/acme/greet", "--organization", "acme"), "history is of one object"),
        (("history", "--organization", "nobody"), "there is no organization nobody"),
        (("history", "--organization", "acme", "--since", "x"), "invalid moment 'x'"),
    ],
)
def test_what_is_no_moment_is_said(
    run: Run, small: Path, words: tuple[str, ...], told: str
) -> None:
    assert run("apply", "--auto-approve").code == 0

    failed = run(*words)

    assert (failed.code, failed.out) == (1, "")
    assert told in failed.err


def test_a_time_may_have_any_zone_and_any_precision(run: Run, small: Path) -> None:
    assert run("apply", "--auto-approve").code == 0
    before, at = exported(run), str(last_event(run)["at"])
    applied(run, small, more=an_action("more"))
    moment = datetime.fromisoformat(at)
    there = moment.astimezone(UTC) + timedelta(hours=5, minutes=30)
    local = there.replace(tzinfo=None).isoformat(timespec="microseconds")

    for text in (f"{local}999+05:30", f"{local}+05:30", at.replace("T", " "), at.lower()):
        assert exported(run, "--at", text) == before


def test_an_exported_past_is_a_tree_that_applies(run: Run, small: Path, tmp_path: Path) -> None:
    """It reads back as manifests: applied again, the service holds what it held."""
    assert run("apply", "--auto-approve").code == 0
    used = applied(run, small, greet=an_action(timeout="5s")).json["run"]
    assert run("export", "--at", used, "--out", "back").code == 0

    assert run("apply", "back", "--auto-approve").code == 0

    assert exported(run) == exported(run, "--at", used)
    assert (tmp_path / "back").is_dir()


def test_a_caller_sees_the_past_of_its_own_organizations(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """A run in another organization is one that never was."""
    with serving(tmp_path, "sqlite:served/identity.db") as server:
        admin = {
            "RECONCILER_SERVICE": server.address,
            "RECONCILER_TOKEN": a_token(run, server, "--name", "root", "--role", "admin"),
        }
        assert run("apply", "--auto-approve", "--secrets-to", "file:kept", **admin).code == 0
        write(
            tmp_path / "other" / "globex.yaml",
            "apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: globex\n",
        )
        made = run("apply", "other", "--auto-approve", "--format", "json", **admin)
        viewer = a_token(run, server, "--name", "v", "--role", "viewer", "--organization", "acme")
        limited = {**admin, "RECONCILER_TOKEN": viewer}

        moment = run("history", "--organization", "acme", "--format", "json", **limited)
        seen = run("export", "--at", moment.json["events"][-1]["at"], **limited)
        hidden = run("export", "--at", made.json["run"], **limited)
        foreign = run("history", "--organization", "globex", **limited)

    assert (seen.code, hidden.code, foreign.code) == (0, 1, 1)
    assert "name: acme" in seen.out
    assert "globex" not in seen.out
    assert "there is no event of run" in hidden.err
    assert "there is no organization globex" in foreign.err


def test_a_zitadel_tells_no_past_and_the_error_names_snapshots(
    run: Run, a_zitadel: ServeZitadel
) -> None:
    with a_zitadel() as (_, here):
        for words in (
            ("export", "--at", "1h"),
            ("compare", "--at", "1h"),
            ("history", "--organization", "acme"),
        ):
            failed = run(*words, **here)

            assert failed.code == 1
            assert "the service does not show what it held before" in failed.err
            assert "reconciler export --snapshot FILE" in failed.err
            assert "reconciler plan --against FILE" in failed.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "database"])
def test_every_moment_of_a_random_walk_is_exported_by_a_server(
    kind: str, request: pytest.FixtureRequest, run: Run, tmp_path: Path
) -> None:
    """200 moments, written beside the server: each is exported as it was read from it then."""
    key, clock = tmp_path / "seal-key", Clock()
    store = f"sqlite:{tmp_path}/served/identity.db"
    if kind == "database":
        store = request.getfixturevalue("postgres").new_address()
    with serving(tmp_path, store, "--seal-key-file", str(key)) as server, ExitStack() as stack:
        token = write(tmp_path / "token", a_token(run, server, "--name", "r", "--role", "viewer"))
        token.chmod(0o600)
        if kind == "database":
            service = open_postgres(store, seal_key_file=key, now=clock)
        else:
            service = open_sqlite(tmp_path / "served" / "identity.db", now=clock)
        ask = Asking(stack.enter_context(closing(service)), clock)
        ask.prepare()
        remote = stack.enter_context(remote_service(Connection(server.address, token_file=token)))
        check_each_export(ask, read_only_client(remote), seed=293)
