"""The journals of a tree: which ones a run opens, and what a plan reads in them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.journal import Intent, Journal
from reconciler.cli import journals
from reconciler.cli.connection import Connection
from reconciler.cli.journals import journal_path, open_journal
from reconciler.errors import LocalFileError
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind, ResourceRef, Shard
from tests.builders import held, observed

REF = ResourceRef(Kind.ACTION, "acme", "", "greet")
INTENT = Intent("secret", "key", ResourceRef(Kind.OIDC_APPLICATION, "acme", "shop", "web"))


@pytest.fixture
def service(tmp_path: Path) -> Connection:
    return Connection(f"sqlite:{tmp_path}/identity.db")


def left_to(service: Connection, scope: Scope) -> list[str]:
    """Return the keys that a run of this scope finds open, and leave them there."""
    with open_journal(service, "1", scope, ["acme"], 0) as journal:
        return [intent.key for intent in journal.open_intents]


def test_trees_that_differ_in_case_have_journals_of_their_own(service: Connection) -> None:
    """Also on a disk that ignores the case of file names."""
    trees = ["prod", "Prod", "PROD", "pr\u00f6d", "Pr\u00f6d", "prod~x", "default"]
    paths = {journal_path(service, "1", Scope(tree=tree)).name.casefold() for tree in trees}

    assert len(paths) == len(trees)
    with open_journal(service, "1", Scope("Prod"), ["acme"], 0) as journal:
        journal.begin([INTENT])
    assert left_to(service, Scope("prod")) == []
    assert left_to(service, Scope("PROD")) == []
    assert left_to(service, Scope("Prod", shard=Shard(1, 1))) == ["key"]


OFF = Intent("inactive", "off", REF, spec={"script": "1"})
OTHER = replace(OFF, key="log", ref=ResourceRef(Kind.ACTION, "acme", "", "log"))
JUST_NOW = datetime.now(UTC).isoformat()


def begun(service: Connection, scope: Scope, created_at: str = JUST_NOW) -> object:
    """Return what the plan of a scope reads of creates that were begun against the service "1"."""
    times: dict[str, Any] = {"created_at": created_at, "changed_at": JUST_NOW}
    objects = [held(intent.ref, object_id=intent.key, **times) for intent in (OFF, OTHER)]
    return journals.begun(service, scope, observed(*objects, instance="1"))


def test_a_plan_reads_which_inactive_objects_a_run_was_about_to_make(service: Connection) -> None:
    """In every shard of the tree, in none of another tree."""
    shard = Scope("prod", shard=Shard(1, 2))
    assert begun(service, Scope("prod")) == {}
    with open_journal(service, "1", shard, ["acme"], 0) as journal:
        journal.begin([INTENT, OFF])
        assert begun(service, Scope("prod")) == {"off": OFF.spec}
    with Journal(journal_path(service, "1", Scope("prod"))) as journal:
        journal.begin([OTHER])

    assert begun(service, shard) == begun(service, Scope("prod"))
    assert begun(service, shard) == {"off": OFF.spec, "log": OFF.spec}
    assert begun(service, Scope("default")) == {}


@pytest.mark.parametrize(
    ("ago", "is_new"),
    [(timedelta(hours=23), True), (timedelta(hours=25), False), (timedelta(hours=-1), True)],
)
def test_what_was_made_days_ago_is_no_longer_ended_without_a_word(
    service: Connection, ago: timedelta, *, is_new: bool
) -> None:
    """People may use by now what was to be inactive, and a journal can be of any pull request."""
    with Journal(journal_path(service, "1", Scope())) as journal:
        journal.begin([OFF])
    created = (datetime.now(UTC) - ago).replace(tzinfo=None).isoformat()

    assert begun(service, Scope(), f"{created}Z") == ({"off": OFF.spec} if is_new else {})


def test_of_two_objects_of_one_name_only_the_new_one_was_begun(service: Connection) -> None:
    """The older one may be pinned by ``metadata.id``, and is not what the run made."""
    with Journal(journal_path(service, "1", Scope())) as journal:
        journal.begin([OFF])
    new, old = held(REF, object_id="8", created_at=JUST_NOW), held(REF, object_id="9")

    for first, second in ((new, old), (old, new)):
        found = replace(observed(first, instance="1"), name_clashes=(second,))
        assert journals.begun(service, Scope(), found) == {"8": OFF.spec}


@pytest.mark.parametrize("created_at", ["", "yesterday", "2999-01-01T00:00:00"])
def test_an_object_of_no_certain_age_is_not_new(service: Connection, created_at: str) -> None:
    with Journal(journal_path(service, "1", Scope())) as journal:
        journal.begin([OFF])

    assert begun(service, Scope(), created_at) == {}


def test_what_is_not_held_was_not_made(service: Connection) -> None:
    with Journal(journal_path(service, "1", Scope())) as journal:
        journal.begin([replace(OFF, ref=REF._replace(name="gone"))])

    assert begun(service, Scope()) == {}


def test_a_damaged_journal_tells_a_plan_nothing(service: Connection) -> None:
    """The apply that opens it says what is wrong."""
    path = journal_path(service, "1", Scope())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n", encoding="ascii")

    assert begun(service, Scope()) == {}
    with pytest.raises(LocalFileError, match="line 1"):
        left_to(service, Scope())


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository in which stores and journals are."""
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize("is_other", [False, True])
def test_a_journal_that_a_commit_brings_is_not_gone_on_with(
    service: Connection, repository: Path, *, is_other: bool
) -> None:
    """A pull request could have the next apply move or remove the secrets of the sink."""
    scope = Scope(shard=Shard(1, 2)) if is_other else Scope()
    path = journal_path(service, "1", scope)
    with Journal(path) as journal:
        journal.begin([INTENT, OFF])
    add = ["git", "add", "--force", "--", path.name]
    subprocess.run(add, cwd=repository, check=True)

    assert begun(service, Scope()) == {}
    with pytest.raises(LocalFileError, match="is a file of the repository") as refused:
        left_to(service, Scope())

    assert f"git rm --cached {path}" in refused.value.remedy
    subprocess.run(["git", "rm", "--quiet", "--cached", path.name], cwd=repository, check=True)
    assert left_to(service, Scope()) == ["key", "off"]


def test_a_tracked_journal_that_leaves_nothing_open_is_used(
    service: Connection, repository: Path
) -> None:
    """Somebody once committed it; it says nothing."""
    assert left_to(service, Scope()) == []
    subprocess.run(["git", "add", "--force", "."], cwd=repository, check=True)

    assert left_to(service, Scope()) == []
