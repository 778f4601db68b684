"""A very large tree over several jobs: each looks after its organizations and no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.apply.journal import Intent, Journal
from reconciler.cli.clients import open_for_plan
from reconciler.cli.connection import Connection
from reconciler.cli.journals import journal_path
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind, ResourceRef, Shard, shard_of
from tests.acceptance.conftest import Ran, Run, write
from tests.program import started

NAMES = ("acme", "Büro")  # the second and the first of two shards
FIRST, SECOND = "1/2", "2/2"
COMMANDS = (("validate",), ("plan",), ("apply", "--auto-approve"), ("drift",))


def a_manifest(kind: str, organization: str, name: str, **more: object) -> str:
    owner = {} if kind == "Organization" else {"organization": organization}
    return json.dumps(
        {
            "apiVersion": "reconciler/v1",
            "kind": kind,
            "metadata": {**owner, "name": name},
            **more,
        }
    )


def an_action(organization: str, name: str = "greet", **spec: object) -> str:
    script = {} if "scriptFile" in spec else {"script": f"function {name}(ctx, api) {{}}"}
    return a_manifest("Action", organization, name, spec={**script, **spec})


@pytest.fixture
def two(tree: Path) -> Path:
    """Return a folder with an organization for each of two shards, in one file and in several."""
    organizations = [a_manifest("Organization", name, name) for name in NAMES]
    write(tree / "all.yaml", "\n---\n".join([*organizations, *map(an_action, NAMES)]))
    for name in NAMES:
        write(tree / f"{name}.yaml", an_action(name.upper(), "other"))
    return tree


def refs(plan: Ran) -> set[str]:
    return {f"{c['ref']['organization']}/{c['ref']['name']}" for c in plan.json["changes"]}


def test_the_organizations_of_these_tests_are_in_two_shards() -> None:
    """Otherwise half of what is tried here would hold of itself."""
    assert [shard_of(name, 2) for name in NAMES] == [2, 1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("shard", ["0/4", "5/4", "a/b", "1/0", ""])
def test_what_names_no_shard_is_refused(
    run: Run, two: Path, command: tuple[str, ...], shard: str
) -> None:
    """Nothing is read, and who typed it is told what to type."""
    refused = run(*command, "--shard", shard)

    assert (refused.code, refused.out) == (1, "")
    assert f"Error: --shard {shard!r} " in refused.err
    assert "Write I/N" in refused.err
    assert 'JOB_COMPLETION_INDEX + 1))/4"' in refused.err


def test_the_environment_names_the_shard_too(run: Run, two: Path) -> None:
    """A flag wins over it, as over every variable; an empty one says nothing."""
    assert refs(run("plan", "--format", "json", RECONCILER_SHARD=SECOND)) == {
        "acme/acme", "acme/greet", "ACME/other",
    }  # fmt: skip
    told = run("plan", "--format", "json", "--shard", FIRST, RECONCILER_SHARD=SECOND)
    assert told.json["shard"] == FIRST
    assert refs(told) == {"Büro/Büro", "Büro/greet", "BÜRO/other"}
    empty = run("plan", RECONCILER_SHARD="")
    assert empty.code == 1
    assert "RECONCILER_SHARD" in empty.err
    assert run("plan", RECONCILER_SHARD="3/2").code == 1


def test_each_shard_judges_its_own_manifests(run: Run, two: Path) -> None:
    """A missing script and a wrong field are found once, by the job that looks after them."""
    write(two / "wrong.yaml", an_action("acme", "wrong", timeout="1h"))
    write(two / "missing.yaml", an_action("acme", "missing", scriptFile="none.js"))

    first, second = (run("validate", "--format", "json", "--shard", s) for s in (FIRST, SECOND))

    assert (first.code, first.json["manifests"], first.json["diagnostics"]) == (0, 3, [])
    assert second.code == 1
    assert second.json["manifests"] == 5
    found = {finding["file"] for finding in second.json["diagnostics"]}
    assert found == {"manifests/wrong.yaml", "manifests/missing.yaml"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kind: [", "YAML-SYNTAX"),
        ("just text", "MANIFEST-SHAPE"),
        ('{"apiVersion": "reconciler/v1", "kind": "Action", "metadata": {"name": "x"}}', "SCHEMA"),
        ('{"apiVersion": "reconciler/v1", "kind": "Nothing", "metadata": {}}', "MANIFEST-KIND"),
        ('{"apiVersion": "reconciler/v1", "kind": "Organization", "metadata": {"name": ""}}',
         "SCHEMA"),
    ],
)  # fmt: skip
def test_what_belongs_to_no_organization_fails_every_shard(
    run: Run, two: Path, text: str, code: str
) -> None:
    """No job could say that it is another one's business."""
    write(two / "broken.yaml", text)

    for shard in (FIRST, SECOND):
        told = run("validate", "--format", "json", "--shard", shard)
        assert told.code == 1
        codes = {finding["code"] for finding in told.json["diagnostics"]}
        assert any(found.startswith(code) for found in codes), codes
        assert run("plan", "--shard", shard).code == 1


def test_what_is_declared_twice_is_found_by_the_shard_of_its_organization(
    run: Run, two: Path
) -> None:
    """Wherever the two files are, and in whatever case the names."""
    write(two / "deep" / "again.yaml", an_action("Acme", "Greet"))

    assert run("validate", "--shard", FIRST).code == 0
    assert "REF-DUPLICATE" in run("validate", "--shard", SECOND).out


def test_a_plan_says_of_which_shard_it_is(run: Run, two: Path) -> None:
    """In every form: several comments under one pull request look alike otherwise."""
    for form, words in [
        ("text", "Shard 1/2: organizations of other shards are not in this plan."),
        ("markdown", "- Shard 1/2: organizations of other shards"),
        ("html", "<dt>Shard</dt><dd>1/2: organizations of other shards"),
    ]:
        assert words in run("plan", "--format", form, "--shard", FIRST).out
        assert "Shard" not in run("plan", "--format", form).out


@pytest.mark.parametrize("other", [["--shard", SECOND], ["--shard", "1/3"], []])
def test_a_plan_is_applied_under_its_own_shard_alone(run: Run, two: Path, other: list[str]) -> None:
    """The file names it, and so does the digest."""
    saved = run("plan", "--out", "plan.json", "--shard", FIRST)
    assert "reconciler apply plan.json --shard 1/2" in saved.err
    digest = next(line for line in saved.out.splitlines() if line.startswith("Digest: "))[8:]

    by_file, by_digest = run("apply", "plan.json", *other), run("apply", "--digest", digest, *other)

    assert (by_file.code, by_digest.code) == (4, 4)
    assert "with --shard 1/2" in by_file.err
    assert run("apply", "plan.json", "--shard", FIRST).code == 0


def test_prune_looks_at_the_organizations_of_the_shard_alone(run: Run, two: Path) -> None:
    """What is no longer declared in another one is neither deleted nor told of."""
    run("apply", "--auto-approve")
    for name in NAMES:
        (two / f"{name}.yaml").unlink()

    unmanaged = run("plan", "--format", "json", "--shard", FIRST).json["unmanaged"]
    pruned = run("apply", "--prune", "--auto-approve", "--format", "json", "--shard", FIRST)

    assert [ref["organization"] for ref in unmanaged] == ["Büro"]
    assert [each["ref"]["organization"] for each in pruned.json["outcomes"]] == ["Büro"]
    left = run("plan", "--prune", "--format", "json")
    assert refs(left) == {"acme/other"}


def test_drift_is_that_of_the_shard(run: Run, two: Path) -> None:
    """Each job of a nightly matrix reports its own."""
    run("apply", "--auto-approve")
    for name in NAMES:
        write(two.parent / "theirs" / f"{name}.yaml", an_action(name, timeout="3s"))
    run("apply", "theirs", "--tree", "theirs", "--auto-approve")

    for shard, name in ((FIRST, "Büro"), (SECOND, "acme")):
        told = run("drift", "--detailed-exitcode", "--format", "json", "--shard", shard)
        assert told.code == 2
        assert [each["ref"]["organization"] for each in told.json["drift"]] == [name]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_shard_without_an_organization_has_nothing_to_do(
    run: Run, two: Path, command: tuple[str, ...]
) -> None:
    """More jobs than organizations are a waste and no failure."""
    (empty,) = {1, 2, 3} - {shard_of(name, 3) for name in NAMES}

    if command == ("drift",):  # it looks only at a store that is there
        run("apply", "--auto-approve")

    assert run(*command, "--shard", f"{empty}/3").code == 0


@pytest.mark.parametrize("is_new", [True, False], ids=["a new store", "a store"])
def test_shards_apply_at_the_same_time(run: Run, two: Path, *, is_new: bool) -> None:
    """Neither waits for the other: what is locked is their organizations."""
    if not is_new:
        run("token", "create", "--name", "somebody", "--role", "viewer")
    for number in range(60):
        for name in NAMES:
            write(two / name / f"{number}.yaml", an_action(name, f"act{number}"))
    command = ("apply", "--auto-approve", "--format", "json")

    running = [started(two.parent, *command, "--shard", shard) for shard in (FIRST, SECOND)]
    ended = [process.communicate(timeout=120) for process in running]

    assert [process.returncode for process in running] == [0, 0], ended
    assert [json.loads(out)["summary"]["made"] for out, _ in ended] == [63, 63]
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("store", "verify").code == 0


def journal_of(folder: Path, shard: Shard | None) -> Path:
    connection = Connection(f"sqlite:{folder}/.reconciler/identity.db")
    with open_for_plan(connection) as reader:
        instance = reader.observe([]).instance
    return journal_path(connection, instance, Scope(shard=shard))


@pytest.mark.parametrize("shard", [None, Shard(1, 2)])
def test_a_journal_of_other_organizations_in_use_keeps_nobody_out(
    run: Run, two: Path, shard: Shard | None
) -> None:
    """Not even while it has something open."""
    run("apply", "--auto-approve", "--shard", FIRST)
    ref = ResourceRef(Kind.ACTION, "Büro", "", "open")
    with Journal(journal_of(two.parent, shard)) as journal:
        journal.begin([Intent("inactive", "key", ref, spec={})])

        assert run("apply", "--auto-approve", "--shard", SECOND).code == 0
