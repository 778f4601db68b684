"""Where the journal of a tree is, and which other journals a run looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.apply.journal import Intent, Journal, tree_of
from reconciler.cli.journals import journal_path, open_journal
from reconciler.plan.model import Scope
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.resources.shard import Shard

REF = ResourceRef(Kind.ACTION, "acme", "", "greet")
INTENT = Intent("create", "key", REF, owes_secret=False, spec={})


@pytest.fixture
def service(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/identity.db"


def left_to(service: str, scope: Scope) -> list[str]:
    """Return the keys that a run of this scope finds open, and leave them there."""
    with open_journal(service, "1", scope, ["acme"], 0) as journal:
        return [intent.key for intent in journal.open_intents]


def test_trees_that_differ_in_case_have_journals_of_their_own(service: str) -> None:
    """Also on a disk that ignores the case of file names."""
    trees = ["prod", "Prod", "PROD", "pr\u00f6d", "Pr\u00f6d", "prod~x", "default"]
    paths = {journal_path(service, "1", Scope(tree=tree)).name.casefold() for tree in trees}

    assert len(paths) == len(trees)
    with open_journal(service, "1", Scope("Prod"), ["acme"], 0) as journal:
        journal.begin([INTENT])
    assert left_to(service, Scope("prod")) == []
    assert left_to(service, Scope("PROD")) == []
    assert left_to(service, Scope("Prod", shard=Shard(1, 1))) == ["key"]


@pytest.mark.parametrize("shard", [None, Shard(1, 1)])
def test_what_a_shared_journal_of_an_older_version_holds_open_is_not_lost(
    service: str, shard: Shard | None
) -> None:
    """It has no tree at its head, so it may be of either tree: the next run ends it."""
    with Journal(journal_path(service, "1", Scope("prod", shard=shard))) as journal:
        journal.begin([INTENT])
    assert tree_of(journal_path(service, "1", Scope("prod", shard=shard))) == ""

    assert left_to(service, Scope("Prod")) == ["key"]
    assert left_to(service, Scope("prod", shard=shard)) == []


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"[1]\n", b'{"tree": 1}', b"\xff" * 9])
def test_a_head_that_cannot_be_read_names_no_tree(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)

    assert tree_of(path) == ""
    assert tree_of(tmp_path / "missing") == ""
