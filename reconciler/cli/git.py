"""Edits of manifests since their commit, which only Git itself can tell quickly.

Git is run so that the repository decides nothing: it is given its folder and looks for no
other, it runs no hook and no monitor, fetches nothing, writes nothing, and gets no token of this
process. A repository of another user is not asked about, nor one with filters of its own, because
their settings may name programs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SECONDS = 10
_SAFE = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.quotePath=true")


OTHERS = ("--untracked-files=all", "--ignored")
TRACKED_ONLY = ("--untracked-files=no",)


def is_edited(
    paths: Sequence[str], git: Path, work_tree: Path, others: Sequence[str] = OTHERS
) -> bool | None:
    """Return whether files at or beneath paths are not as in the commit that is checked out.

    None where Git cannot tell, or is not installed. ``others`` says which files count that are in
    no commit.
    """
    try:
        if git.stat().st_uid != os.geteuid() or _has_filters(git):
            return None
        named = [str(Path(path).resolve()) for path in paths]
        work = ("--literal-pathspecs", f"--git-dir={git}", f"--work-tree={work_tree}")
        asked = (
            "status",
            "--porcelain",
            "-z",
            *others,
            "--ignore-submodules=all",
        )
        done = _run([*work, *asked, "--", *named], work_tree)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    entries = filter(None, done.stdout.split(b"\0"))
    return any(map(_counts, entries)) if done.returncode == 0 else None


_IGNORED = b"!! "
_YAML = (b".yaml", b".yml")


def _counts(entry: bytes) -> bool:
    """Return whether an entry of ``git status`` counts: what Git ignores, where it is read as YAML.

    Such a manifest is applied, and in no commit.
    """
    path = entry.removeprefix(_IGNORED)
    is_read = path.endswith(_YAML) and not any(part[:1] == b"." for part in path.split(b"/"))
    return is_read or not entry.startswith(_IGNORED)


def _has_filters(git: Path) -> bool:
    """Return whether a repository itself names programs that change files, or cannot be asked.

    ``git status`` runs them, and no setting turns all of them off.
    """
    asked = ("config", "--show-scope", "--name-only", "--null", "--get-regexp", r"^filter\.")
    done = _run([f"--git-dir={git}", *asked], git)
    scopes = done.stdout.split(b"\0")[::2]
    return done.returncode not in _ANSWERED or not _OF_USER.issuperset(filter(None, scopes))


_ANSWERED = (0, 1)  # exit codes of `git config`; 1 where nothing is set
_OF_USER = frozenset({b"system", b"global"})


def _run(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [*("git", "--no-optional-locks"), *settings, *words],
        cwd=folder,
        # Of a partial clone, Git would fetch what is missing, over any program as transport.
        env={**kept, "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_SECONDS,
        check=False,
    )
