"""The advice for Git after an undo: the commit to revert, if the log proves that it is the one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from reconciler.cli.git import parents
from reconciler.cli.parameter_types import MICROS
from reconciler.service_client.port import FeedReader

SEARCHED = 31 * 86_400 * MICROS  # that far before a run, for the apply before it
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
BY_HAND = (
    "Change the manifests to what is held now: a plan that would apply again what was undone is "
    "blocked."
)


def keeps_git_true(reader: FeedReader, run: str, tree: str, begins: Mapping[str, int]) -> str:
    """Return what to do in Git after the undo of a run of a tree.

    Args:
        reader: Of the service.
        run: The run that was undone.
        tree: Its tree.
        begins: Where each organization stood before the run, by its name.
    """
    heads = reader.heads()
    before: tuple[int, str] = (0, "")
    commit = ""
    for head in heads.organizations.values() if heads else ():
        begin = begins.get(head.name)
        if begin is None:
            continue
        for event in reader.changes(head.id, max(0, begin - SEARCHED)):
            said = event.context
            revision = str(said.get("revision", ""))
            if event.sequence > begin and said.get("run") == run:
                commit = revision
                break
            if event.sequence <= begin and said.get("tree") == tree and revision:
                before = max(before, (event.sequence, revision))
    is_one_step = _COMMIT.fullmatch(commit) and parents(commit, Path.cwd()) == (before[1],)
    if not is_one_step:
        return BY_HAND
    return f"So that the manifests say the same: git revert {commit}"
