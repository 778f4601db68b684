"""The commit and the branch that are checked out, and edits of files since that commit.

Commit and branch are read from Git's files: no program is started, and none has to be there. Git
itself is run for the rest, such as edits, which only it finds quickly.

It is run so that the repository decides nothing: it is given its folder and looks for no other, it
runs no hook and no monitor, fetches nothing, writes nothing, and gets no token of this process. A
repository of another user is not asked about, nor one with filters of its own, because their
settings may name programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.manifests.files import git_root
from reconciler.resources.files import read_start
from reconciler.state import COMMIT

if TYPE_CHECKING:
    from subprocess import CompletedProcess

_SECONDS = 10
_SAFE = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.quotePath=true")

_REF = re.compile(r"ref: (refs/[A-Za-z0-9._/+@-]{1,200})", re.ASCII)
_MAX_PACKED = 16 * 1024 * 1024  # bytes of a file of refs


def commit_of(path: Path) -> str:
    """Return the commit that is checked out where a path is, or nothing."""
    return _of_git(path, _head)


def branch_of(path: Path) -> str:
    """Return the branch that is checked out where a path is; empty for none, or without Git."""
    return _of_git(path, _branch)


_HEADS = "ref: refs/heads/"
_OF_ORIGIN = "ref: refs/remotes/origin/"


def default_branch(path: Path) -> str:
    """Return the default branch of the repository that a path is in; empty where it is not known.

    It is the one that ``origin`` was cloned with, else ``main`` or ``master`` if there is one, else
    the branch that is checked out.
    """
    return _of_git(path, _default_branch)


def _of_git(path: Path, read: Callable[[Path], str]) -> str:
    """Return what is read in the folder of Git for a path; nothing where it cannot be read."""
    try:
        place = _place(path.resolve())
        return read(place[0]) if place else ""
    except (OSError, ValueError):
        return ""


def _branch(git: Path) -> str:
    found = _REF.fullmatch(_read(git / "HEAD").strip())
    return found.group(1).removeprefix("refs/heads/") if found else ""


def _default_branch(git: Path) -> str:
    top = git / _read(git / "commondir").strip() if (git / "commondir").is_file() else git
    of_origin = top / "refs" / "remotes" / "origin" / "HEAD"
    if of_origin.is_file() and (head := _read(of_origin).strip()).startswith(_OF_ORIGIN):
        return head.removeprefix(_OF_ORIGIN)
    for name in ("main", "master"):
        refs = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
        if any((top / ref).is_file() or _packed(top / "packed-refs", ref) for ref in refs):
            return name
    head = _read(git / "HEAD").strip()
    return head.removeprefix(_HEADS) if head.startswith(_HEADS) else ""


def _place(path: Path) -> tuple[Path, Path] | None:
    """Return the folder of Git for a path, and the top of its work tree.

    In a worktree or a submodule a file says where the folder is.
    """
    top = git_root(path)
    if top is None:
        return None
    git = top / ".git"
    return git if git.is_dir() else top / _read(git).removeprefix("gitdir:").strip(), top


def _head(git: Path) -> str:
    head = _read(git / "HEAD").strip()
    found = _REF.fullmatch(head)
    if found is None:
        return head if COMMIT.fullmatch(head) else ""
    ref = found.group(1)
    if ".." in ref:
        return ""
    common = git / "commondir"
    places = [git, git / _read(common).strip()] if common.is_file() else [git]
    for place in places:
        loose = place / ref
        if loose.is_file():
            commit = _read(loose).strip()
            return commit if COMMIT.fullmatch(commit) else ""
    return _packed(places[-1] / "packed-refs", ref)


def _packed(path: Path, ref: str) -> str:
    if not path.is_file() or path.stat().st_size > _MAX_PACKED:
        return ""
    for line in _read(path, _MAX_PACKED).splitlines():
        commit, _, name = line.partition(" ")
        if name == ref and COMMIT.fullmatch(commit):
            return commit
    return ""


def _read(path: Path, most: int = 4096) -> str:
    content, _ = read_start(path, most)
    return content.decode("utf-8", "replace")


OTHERS = ("--untracked-files=all", "--ignored")
TRACKED_ONLY = ("--untracked-files=no",)


def is_edited(
    paths: Sequence[str],
    within: Path,
    others: Sequence[str] = OTHERS,
    scripts: Collection[str] = (),
) -> bool | None:
    """Return whether files at or beneath paths are not as in the commit that is checked out.

    ``within`` is a path of their repository, all of which counts without paths. ``others`` says
    which files count that are in no commit; of what Git ignores, manifests and ``scripts`` count.
    None where Git does not show it, or is not installed.
    """
    entries = _status([str(Path(path).resolve()) for path in paths], within, others)
    if entries is None:
        return None
    if any(map(_counts, entries)):
        return True
    ignored = {entry.removeprefix(_IGNORED) for entry in entries}
    top = git_root(within.resolve()) if ignored and scripts else None
    return top is not None and any(_from(top, each) in ignored for each in scripts)


def _from(top: Path, path: str) -> bytes:
    """Return the way to a file from the top of its work tree, as Git writes it."""
    return os.fsencode(os.path.relpath(os.path.realpath(path), top))


def uncommitted(names: Sequence[str], work_tree: Path) -> Collection[str] | None:
    """Return the files that the commit that is checked out does not have as they are.

    Names are paths from the work tree; what Git ignores is in no commit. None where Git does
    not show it, or is not installed.
    """
    entries = _status([str(work_tree / name) for name in names], work_tree, OTHERS)
    if entries is None:
        return None
    paths = [os.fsdecode(part) for entry in entries for part in (entry, entry[_MARK:])]
    folders = tuple(path for path in paths if path.endswith("/"))
    return [name for name in names if name in paths or (folders and name.startswith(folders))]


LF, CRLF = "\n", "\r\n"


def checked_out_ends(names: Sequence[str], work_tree: Path) -> Mapping[str, str]:
    """Return the line ends that a checkout gives to files of which Git changes them, by name.

    Names are paths from the work tree. The attributes of the repository decide; what the settings
    of one machine add is left out. A file that Git leaves as it is, or does not know, is not in it.
    """
    found = {}
    listed = _files([str(work_tree / name) for name in names], work_tree, "--eol")
    for entry in listed.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        index, _, attributes = about.decode("ascii", "replace").partition("attr/")
        first, *others = attributes.split() or [""]
        # text=auto leaves a file alone that was committed with CRLF.
        is_left = first == "text=auto" and index.split()[:1] in (["i/crlf"], ["i/mixed"])
        if first.startswith("text") and not is_left:
            found[os.fsdecode(path)] = CRLF if "eol=crlf" in others else LF
    return found


def is_tracked(path: Path) -> bool:
    """Return whether a file is one that Git keeps, and so one that a commit can bring.

    False where Git cannot be asked.
    """
    file = path.parent.resolve() / path.name
    return bool(_files([str(file)], file.parent))


def _files(named: Sequence[str], within: Path, *options: str) -> bytes:
    """Return what ``git ls-files`` lists of some paths; nothing where Git cannot be asked."""
    try:
        if (place := _place(within)) is None:
            return b""
        return _run([*_work(*place), "ls-files", *options, "-z", "--", *named], place[1]).stdout
    except (OSError, ValueError):
        return b""


_MARK = 3  # characters before the path in an entry; a path that something was renamed from has none


def _status(named: Sequence[str], within: Path, others: Sequence[str]) -> list[bytes] | None:
    """Return the entries of ``git status`` for some paths, or None where it has none.

    A file that Git is set not to look at has one, too.
    """
    try:
        if (place := _place(within.resolve())) is None:
            return None
        git, work_tree = place
        if git.stat().st_uid != os.geteuid() or _holds_pipe(git) or _has_filters(git):
            return None
        work = _work(*place)
        asked = ("status", "--porcelain", "-z", *others, "--ignore-submodules=all")
        done = _run([*work, *asked, "--", *named], work_tree)
        kept = _run([*work, "ls-files", "-v", "--stage", "-z", "--", *named], work_tree)
    except (OSError, ValueError):
        return None
    if done.returncode or kept.returncode:
        return None
    not_looked_at = _not_looked_at(kept.stdout, work_tree, is_named=others is not TRACKED_ONLY)
    return [*filter(None, done.stdout.split(b"\0")), *not_looked_at]


def _work(git: Path, work_tree: Path) -> Sequence[str]:
    return ("--literal-pathspecs", f"--git-dir={git}", f"--work-tree={work_tree}")


def _not_looked_at(index: bytes, work_tree: Path, *, is_named: bool) -> Iterator[bytes]:
    """Yield an entry for what the index says is as in the commit, without a look at the files.

    Those are files with ``--assume-unchanged`` or ``--skip-worktree``, and repositories within this
    one. Beside what is named, files that a sparse checkout leaves out are no edits.
    """
    for kept in index.split(b"\0"):
        about, _, path = kept.partition(b"\t")
        tag, mode = about[:1], about[2:8]
        is_left = tag == b"S" and (is_named or os.path.lexists(work_tree / os.fsdecode(path)))
        if tag.islower() or is_left or (mode == _REPOSITORY and is_named):
            yield b" h " + path


_REPOSITORY = b"160000"
_IGNORED = b"!! "
_READ = (b".yaml", b".yml", b".json", b"/")


def _counts(entry: bytes) -> bool:
    """Return whether an entry of ``git status`` counts: what Git ignores, if it may be a manifest.

    Such a manifest is applied, and in no commit. A folder is a repository within this one.
    """
    path = entry.removeprefix(_IGNORED)
    is_read = path.endswith(_READ) and not any(part[:1] == b"." for part in path.split(b"/"))
    return is_read or not entry.startswith(_IGNORED)


def _holds_pipe(git: Path) -> bool:
    """Return whether Git would wait for a writer of one of its own files."""
    return any((git / name).is_fifo() for name in ("config", "index"))


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


def _run(words: Sequence[str], folder: Path) -> CompletedProcess[bytes]:
    """Run Git.

    Raises:
        OSError: it is not installed, or took too long.
    """
    import subprocess

    settings = [word for setting in _SAFE for word in ("-c", setting)]
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    try:
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
    except subprocess.TimeoutExpired as failure:
        raise TimeoutError from failure


def parents(commit: str, folder: Path) -> tuple[str, ...]:
    """Return the parents of a commit, by its full id; none where Git does not know it.

    A repository with settings of its own may be asked: no filter is run for this.
    """
    try:
        found = _run(["rev-parse", f"{commit}^{{commit}}", f"{commit}^@"], folder)
    except OSError:
        return ()
    return (
        tuple(found.stdout.decode("ascii", "replace").split()[1:]) if not found.returncode else ()
    )
