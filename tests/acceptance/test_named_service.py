"""The service is named, never guessed: by every report, and before anything is looked at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.acceptance.conftest import Ran, Run, an_action, write
from tests.running import running_server

NEW = "Service sqlite:.reconciler/identity.db (new: there is no store yet), tree default\n"
NEW_ORGANIZATION = "apiVersion: reconciler/v1\nkind: Organization\nmetadata: {name: new}\n"
KNOWN = re.compile(
    r"Service sqlite:\.reconciler/identity\.db \(instance [0-9a-f]{32}\), tree default\n"
)


def test_every_plan_and_report_begins_with_service_instance_and_tree(run: Run, small: Path) -> None:
    """Also the first, made before there is a store."""
    planned, applied = run("plan"), run("apply", "--auto-approve")
    write(small / "greet.yaml", an_action(timeout="5s"))
    again, drift = run("plan"), run("drift")

    assert planned.out.startswith(NEW)
    assert applied.out.startswith(NEW)
    assert KNOWN.search(applied.out)
    assert all(KNOWN.match(ran.out) for ran in (again, drift))


def test_every_form_for_machines_names_them_too(run: Run, small: Path) -> None:
    """As keys beside those that were there before."""
    new = run("plan", "--format", "json").json
    applied = run("apply", "--auto-approve", "--format", "json").json
    write(small / "greet.yaml", an_action(timeout="5s"))
    plan = run("plan", "--format", "json").json
    stream = run("apply", "--auto-approve", "--format", "jsonl", "--tree", "web").out
    records = [json.loads(line) for line in stream.splitlines()]

    assert (new["instance"], new["new_service"]) == (None, True)
    assert (plan["instance"], plan["new_service"]) == (applied["instance"], False)
    for found in (plan, applied, run("drift", "--format", "json").json):
        assert found["service"] == "sqlite:.reconciler/identity.db"
        assert (found["instance"], found["tree"]) == (plan["instance"], "default")
    assert [r["tree"] for r in records if "instance" in r] == ["web", "web"]


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_plan_for_a_reviewer_names_them_at_the_top(run: Run, small: Path, form: str) -> None:
    """Above everything that the pull request wrote."""
    text = run("plan", "--format", form, "--tree", "web").out

    top = text[: text.index("in step")]
    assert "sqlite:.reconciler/identity.db" in top
    assert "new: there is no store yet" in top
    assert "web" in top


@pytest.mark.parametrize(
    ("variable", "arguments"),
    [
        ("RECONCILER_SERVICE", ["plan"]),
        ("RECONCILER_SERVICE", ["token", "list"]),
        ("RECONCILER_TREE", ["drift"]),
        ("RECONCILER_ORGANIZATION", ["export"]),
        ("RECONCILER_AUTO_APPROVE", ["apply"]),
        ("RECONCILER_FORMAT", ["validate"]),
        ("RECONCILER_TOKEN", ["plan", "--service", "http://127.0.0.1:9"]),
    ],
)
def test_an_empty_variable_is_an_error_that_names_it(
    run: Run, small: Path, variable: str, arguments: list[str]
) -> None:
    """An unset variable of CI is empty; the default in its place names another service."""
    told = run(*arguments, **{variable: ""})

    assert told.code == 1
    assert told.err.startswith(f"Error: {variable} is set and empty\n")
    assert not (small.parent / ".reconciler" / "identity.db").exists()


@pytest.mark.parametrize("flag", ["--service", "--tree"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_flag_is_an_error_that_names_it(
    run: Run, small: Path, flag: str, value: str
) -> None:
    """The shell of a job puts nothing in the place of a variable that is not set."""
    told = run("plan", flag, value)

    assert told.code == 1
    assert told.err.startswith(f"Error: {flag} is empty\n")


def test_a_tree_that_is_not_utf_8_is_refused(run: Run, small: Path) -> None:
    """It could be neither stored nor saved."""
    told = run("plan", "--tree", b"b\xe9ta".decode("utf-8", "surrogateescape"), "--out", "x.plan")

    assert told.code == 1
    assert told.err.startswith("Error: --tree b\\udce9ta is not valid UTF-8\n")
    assert not (small.parent / "x.plan").exists()


def test_an_empty_variable_that_is_not_read_is_none_of_our_business(run: Run, small: Path) -> None:
    """A flag wins over it, and help does not read it."""
    empty = {"RECONCILER_SERVICE": "", "RECONCILER_TOKEN": "", "RECONCILER_SERVCE": "x"}

    assert run("plan", "--service", "sqlite:x.db", **empty).code == 0
    for quiet in (["--help"], ["version"], ["--version"], ["plan", "--help"]):
        told = run(*quiet, **empty)
        assert (told.code, told.err) == (0, "")


def test_a_misspelt_variable_is_a_warning_with_the_name_that_is_meant(
    run: Run, small: Path
) -> None:
    """Once, on stderr; what is far from every name is somebody else's."""
    wrong = {"RECONCILER_SERVCE": "sqlite:x.db", "RECONCILER_TOKNE": "t"}
    others = {"RECONCILER_IMAGE": "i", "RECONCILER_SECRET_NAME": "n", "RECONCILER_SERVICE": "s"}

    told = run("validate", **wrong, **others)

    assert told.code == 0
    assert told.err.count("warning ENV-UNKNOWN") == 2
    assert "no option reads RECONCILER_SERVCE\n    Did you mean RECONCILER_SERVICE?" in told.err
    assert "Did you mean RECONCILER_TOKEN?" in told.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"], ["apply", "--auto-approve"], ["drift"], ["export"], ["outputs"],
        ["history", "Action/acme/greet"], ["store", "verify"], ["token", "list"], ["serve"],
        ["secret", "rotate", "acme/shop/web", "--secrets-to", "file:s"],
    ],
)  # fmt: skip
def test_a_job_of_ci_names_its_service(run: Run, small: Path, arguments: list[str]) -> None:
    """Without one it would work on a throw-away store, with success, for ever."""
    told = run(*arguments, CI="true")

    assert told.code == 1
    assert told.err.startswith("Error: no service is named, and CI is set\n")
    assert not (small.parent / ".reconciler").exists()


def test_ci_may_name_any_service_and_false_is_not_ci(run: Run, small: Path) -> None:
    """By flag or by variable; commands without a service need none, nor does a snapshot."""
    store = "sqlite:.reconciler/identity.db"

    assert run("validate", CI="true").code == 0
    assert run("plan", CI="false").code == 0
    assert run("apply", "--auto-approve", "--service", store, CI="true").code == 0
    assert run("plan", CI="1", RECONCILER_SERVICE=store).code == 0
    assert run("export", "--snapshot", "s.json").code == 0
    assert run("plan", "--against", "s.json", CI="true").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["drift"], ["export"], ["outputs"], ["history", "Action/acme/greet"], ["history", "123"],
        ["secret", "rotate", "acme/shop/web", "--secrets-to", "file:s"],
        ["store", "verify"], ["token", "list"],
    ],
)  # fmt: skip
def test_a_store_that_does_not_exist_is_an_error_for_who_asks_it(
    run: Run, small: Path, arguments: list[str]
) -> None:
    """A typo in the path is not good news."""
    told = run(*arguments, "--service", "sqlite:typo/identity.db")

    assert told.code == 1
    assert told.err.startswith("Error: there is no store at typo/identity.db\n")
    assert "--service sqlite:PATH" in told.err
    assert told.out == ""
    assert not (small.parent / "typo").exists()


def test_a_token_of_other_organizations_cannot_tell_what_would_be_created(
    run: Run, small: Path, tmp_path: Path
) -> None:
    """Held and invisible looks like missing; a token over all can tell the two apart."""
    (tmp_path / "server").mkdir()
    write(small.parent / "new" / "o.yaml", NEW_ORGANIZATION)
    with running_server(tmp_path / "server") as server:

        def told(token: str, *arguments: str) -> Ran:
            return run(*arguments, RECONCILER_SERVICE=server.address, RECONCILER_TOKEN=token)

        stranger, editor, admin = map(server.token, ("stranger", "editor", "admin"))
        blind = [told(stranger, c) for c in ("plan", "drift", "outputs", "apply")]
        missing = told(editor, "plan", "new")
        made = told(admin, "plan", "new")

    for ran in blind:
        assert (ran.code, ran.out) == (7, ""), ran.err
        assert ran.err.startswith("Error: cannot say whether acme exists with this token\n")
    assert (missing.code, made.code) == (7, 0)
    assert "Plan: 1 to create" in made.out
