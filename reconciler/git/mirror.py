"""A private copy of a repository: its tip, its history, and the files of a commit.

Nothing is checked out. Files are written from their objects, so that no filter, attribute or link
of the repository takes part.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reconciler.errors import RepositoryError, writing
from reconciler.git.address import Access, Address
from reconciler.git.program import FETCHING, MIB, Git, Limits, failed, too_large
from reconciler.resources.files import make_folder, new_private, write_whole
from reconciler.state import COMMIT

OLDEST = (2, 34)  # the first one that verifies signatures of SSH
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)
MOST_FILES = 100_000
MOST_BYTES = 256 * MIB  # of all files of a commit together
MOST_PARTS = 64  # folders in folders
_LISTING = Limits(file_bytes=64 * MIB)
_HEADERS = 128 * MOST_FILES  # what `git cat-file --batch` prints beside the files themselves
_TIP = "refs/reconciler/tip"
_SHA256 = 64  # digits of a commit in a repository with SHA-256
_MARKER = (
    "The files beside this one were written from a commit by `reconciler run`.\n"
    "This file marks the root of their repository.\n"
)


class Entry(NamedTuple):
    """One entry of a commit: its kind, the id of its object, its size in bytes, its path."""

    kind: str
    id: str
    size: int
    path: str


_FILE = "file"
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("100644", "100755", "100664"), _FILE),
    "120000": "symbolic link",
    "160000": "submodule",
}
"""The kinds of entries by their modes."""


class Mirror:
    """The mirror of one repository, in a folder of ours."""

    def __init__(
        self,
        state: Path,
        address: Address,
        access: Access,
        path: str,
        stops: Callable[[], int] = lambda: 0,
    ) -> None:
        """Take the folder of the state, and where the repository is; see ``Git`` for the rest."""
        self._address = address
        name = hashlib.sha256(address.text.encode()).hexdigest()[:16]
        self._git = Git(state / f"mirror-{name}.git", access, path, stops)

    def check(self) -> None:
        """Refuse a Git that would still read settings of this machine.

        Raises:
            RepositoryError: it is too old, or not installed.
        """
        said = self._git.ask("version").decode("utf-8", "replace")
        found = _VERSION.search(said)
        if found is None or tuple(map(int, found.groups())) < OLDEST:
            raise RepositoryError(
                f"git is too old: {said.strip()}",
                remedy=f"Install git {OLDEST[0]}.{OLDEST[1]} or newer.",
            )

    def tip(self, ref: str) -> str:
        """Return the commit that a ref of the repository names now, with its history fetched.

        Raises:
            RepositoryError: the repository cannot be read, or has no such ref.
        """
        words = ("ls-remote", "--quiet", "--", self._address.text, ref)
        found = dict(_advertised(self._git.ask(*words, limits=_LISTING)))
        if ref not in found:
            raise RepositoryError(
                f"the repository has no {ref}",
                remedy="Name a ref that it has: --ref refs/heads/NAME.",
            )
        self._open(found[ref])
        if self._held(_TIP) != found[ref]:
            self._fetch(ref)
        return self._git.ask("rev-parse", "--verify", f"{_TIP}^{{commit}}").decode().strip()

    def _open(self, object_id: str) -> None:
        """Make the mirror if it is missing, for ids of this length."""
        folder = self._git.folder
        if (folder / "HEAD").is_file():
            return
        remedy = "Name a folder with --state that this user may write to."
        with writing(f"make the folder {folder}", remedy):
            make_folder(folder)
        form = "sha256" if len(object_id) == _SHA256 else "sha1"
        self._git.ask("init", "--quiet", "--bare", "--template=", f"--object-format={form}")

    def _fetch(self, ref: str) -> None:
        for left in self._unfinished():  # by a fetch that was ended in the middle
            with suppress(OSError):
                left.unlink()
        words = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        named = ("--", self._address.text, f"+{ref}:{_TIP}")
        done = self._git.run("fetch", *words, *named, limits=FETCHING)
        if done.returncode and any(
            each.stat().st_size >= FETCHING.file_bytes for each in self._unfinished()
        ):
            raise too_large("fetch", FETCHING)
        if done.returncode:
            raise failed("fetch", done)

    def _unfinished(self) -> Sequence[Path]:
        return [*(self._git.folder / "objects" / "pack").glob("tmp_*")]

    def _held(self, name: str) -> str:
        if not (self._git.folder / "HEAD").is_file():
            return ""
        found = self._git.ask_whether("rev-parse", "--quiet", "--verify", name)
        return "" if found is None else found.decode("ascii", "replace").strip()

    def holds(self, commit: str) -> bool:
        """Return whether the mirror has a commit.

        Raises:
            RepositoryError: the mirror cannot be read.
        """
        return bool(COMMIT.fullmatch(commit)) and self._held(f"{commit}^{{commit}}") == commit

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Return whether a commit is another one or comes before it; False if one is missing."""
        if not (self.holds(older) and self.holds(newer)):
            return False
        return self._git.ask_whether("merge-base", "--is-ancestor", older, newer) is not None

    def unsigned(self, commit: str, signers: Path) -> str:
        """Return why a commit is not signed by an allowed signer with an SSH key; empty if it is.

        ``signers`` is a file of the form that ``ssh-keygen`` calls ALLOWED SIGNERS. Signatures of
        other forms do not count.
        """
        settings = (
            "gpg.format=ssh",
            "gpg.program=false",
            "gpg.x509.program=false",
            "gpg.ssh.program=ssh-keygen",
            "gpg.minTrustLevel=fully",
            f"gpg.ssh.allowedSignersFile={signers}",
        )
        words = [each for setting in settings for each in ("-c", setting)]
        done = self._git.run(*words, "verify-commit", "--raw", commit)
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        return (said or "it is not signed") if done.returncode else ""

    def entries(self, commit: str) -> Sequence[Entry]:
        """Return the files, links and submodules of a commit, with names that are safe to write.

        Raises:
            RepositoryError: there are too many, or a name is not safe.
        """
        listed = self._git.ask("ls-tree", "-r", "-l", "-z", "--full-tree", commit, limits=_LISTING)
        found = [_entry(line) for line in listed.split(b"\0") if line]
        if len(found) > MOST_FILES or sum(each.size for each in found) > MOST_BYTES:
            raise RepositoryError(
                f"commit {commit} holds more than {MOST_FILES} files or {MOST_BYTES // MIB} MiB",
                remedy="Keep the manifests in a repository of their own.",
            )
        check_names(each.path for each in found)
        return found

    def write_out(self, commit: str, folder: Path) -> Sequence[Entry]:
        """Write the regular files of a commit into a new folder; return what was left out.

        A marker makes the folder count as the root of a repository.

        Raises:
            RepositoryError: the commit holds what cannot be written.
            LocalFileError: the disk does not take it.
        """
        entries = self.entries(commit)
        regular = [each for each in entries if each.kind == _FILE]
        asked = "".join(f"{each.id}\n" for each in regular).encode()
        limits = Limits(file_bytes=MOST_BYTES + _HEADERS)
        contents = _contents(self._git.ask("cat-file", "--batch", given=asked, limits=limits))
        remedy = "Name a folder with --state that has room and that this user may write to."
        with writing(f"write commit {commit}", remedy):
            folder.mkdir(mode=0o700)
            paths = [folder / each.path for each in regular]
            for parent in {path.parent for path in paths}:  # beneath a folder for this user alone
                parent.mkdir(parents=True, exist_ok=True)
            for path, content in zip(paths, contents, strict=True):
                _write(path, content)
            _write(folder / ".git", _MARKER.encode())
        return [each for each in entries if each.kind != _FILE]


def _advertised(listed: bytes) -> Iterator[tuple[str, str]]:
    """Yield the name and the object of each ref of a listing."""
    for line in listed.decode("utf-8", "replace").splitlines():
        object_id, _, name = line.partition("\t")
        if COMMIT.fullmatch(object_id):
            yield name, object_id


def _entry(line: bytes) -> Entry:
    facts, _, path = line.partition(b"\t")
    mode, _, object_id, size = facts.decode("ascii").split()
    kind = _KINDS.get(mode, "entry of an unknown kind")
    return Entry(kind, object_id, 0 if size == "-" else int(size), os.fsdecode(path))


def check_names(paths: Iterable[str]) -> None:
    """Refuse paths that would lead elsewhere, or be one file on some disks.

    Raises:
        RepositoryError: one of them is not safe.
    """
    seen: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        if len(parts) > MOST_PARTS or "\0" in path or any(map(_leads_elsewhere, parts)):
            raise _unsafe(path, "leads elsewhere, or into too many folders")
        for end in range(1, len(parts) + 1):
            shorter = "/".join(parts[:end])
            known = seen.setdefault(_folded(shorter), shorter)
            if known != shorter:
                raise _unsafe(path, f"differs from {known} only by case or by form of its letters")


def _leads_elsewhere(part: str) -> bool:
    return part in {"", ".", ".."} or _folded(part) == ".git"


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _unsafe(path: str, why: str) -> RepositoryError:
    return RepositoryError(
        f"the name {os.fsencode(path).decode('utf-8', 'backslashreplace')} {why}",
        remedy="Rename it in the repository. Nothing of this commit is read.",
    )


def _contents(batch: bytes) -> Iterator[bytes]:
    """Yield the contents that ``git cat-file --batch`` printed: ``ID TYPE SIZE``, then bytes."""
    at, view = 0, memoryview(batch)
    while at < len(batch):
        end = batch.index(b"\n", at)
        _, kind, size = batch[at:end].decode("ascii").split()
        if kind != "blob":
            raise RepositoryError(
                f"an object of the commit is a {kind}, not a file",
                remedy="Check the repository with `git fsck`.",
            )
        start = end + 1
        at = start + int(size) + 1
        yield bytes(view[start : at - 1])


def _write(path: Path, content: bytes) -> None:
    descriptor = new_private(path)
    try:
        write_whole(descriptor, content)
    finally:
        os.close(descriptor)
