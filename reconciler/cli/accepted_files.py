"""Files of manifests with accepted values: read, compared with Git, shown, and written.

They are opened beneath the root of their repository without following links. Each is replaced in
one step, if it still is what was shown. Git is the way back, so a file with changes that are in no
commit is not written.
"""

from __future__ import annotations

import codecs
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.cli.git import CRLF, LF, checked_out_ends, uncommitted
from reconciler.diagnostics import Diagnostic, FindingError, SourceLocation, error
from reconciler.errors import LocalFileError, cannot_write
from reconciler.manifests.accept import FileEdit, Target
from reconciler.manifests.discovery import MAX_FILE
from reconciler.manifests.files import (
    OpeningError,
    Reason,
    folder_beneath,
    git_root,
    is_read_only,
    read_file,
)
from reconciler.manifests.resolve import MAX_SCRIPT_FILE
from reconciler.manifests.rewrite import RewriteError, rewritten
from reconciler.manifests.text import decode, with_whole_escapes
from reconciler.manifests.yaml_source import read_documents
from reconciler.report.differences import FileChange
from reconciler.resources.files import remove_in, replace_in


@dataclass
class Work:
    """What is to be written, and what is refused."""

    edits: list[FileEdit] = field(default_factory=list)
    refused: list[Diagnostic] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class File:
    """A file to write.

    Attributes:
        top: The root of its repository.
        parts: The way to it from there.
        before: Its bytes; None where it is new.
        after: The same afterwards; None where it goes.
    """

    target: Target
    top: Path
    parts: tuple[str, ...]
    before: bytes | None
    after: bytes | None
    edits: Sequence[FileEdit]

    @property
    def shown(self) -> FileChange:
        """Return the file for the report."""
        before, after = (
            None if data is None else data.decode("utf-8", "replace")
            for data in (self.before, self.after)
        )
        return FileChange(self.target.name, before, after)


def files_of(work: Work) -> Sequence[File]:
    """Return the files with their new content; those that must not be written are refused."""
    by_target: dict[Target, list[FileEdit]] = defaultdict(list)
    for edit in work.edits:
        by_target[edit.target].append(edit)
    files = []
    for target, edits in sorted(by_target.items()):
        try:
            found = _opened(target, edits, work)
        except FindingError as refusal:
            work.refused.append(refusal.finding)
        else:
            files += [found] if found.before != found.after else []
    return [*_same_after_checkout([*_committed(files, work)], work)]


def _opened(target: Target, edits: Sequence[FileEdit], work: Work) -> File:
    path = Path(os.path.realpath(target.root or ".")).joinpath(*target.parts)
    top = git_root(path.parent)
    if top is None:
        raise _refused(target, "ACCEPT-GIT", "the file is in no Git repository", _COMMIT)
    parts = path.relative_to(top).parts
    before = _read(target, top, parts, is_new=edits[0].is_new)
    if before is None:
        return File(target, top, parts, None, (edits[0].text or "").encode(), edits)
    if any(_as_read(target, before, edit) != edit.before for edit in edits):
        raise _refused(target, "ACCEPT-FILE", "the file was changed meanwhile", _AGAIN)
    kept, after = _rewritten(target, before, edits, work)
    limit = MAX_FILE if edits[0].text is None else MAX_SCRIPT_FILE
    if after is not None and len(after) > limit:
        problem = f"the file would have {len(after)} bytes, and at most {limit} are read"
        raise _refused(
            target, "ACCEPT-FILE", problem, "Split the file, then run the command again."
        )
    return File(target, top, parts, before, after, kept)


def _read(target: Target, top: Path, parts: Sequence[str], *, is_new: bool) -> bytes | None:
    """Return the bytes of a file that can be written; None for one that is to be made."""
    *folders, name = parts
    try:
        with folder_beneath(top, folders) as folder:
            data = read_file(name, folder, MAX_FILE)
            if is_read_only(name, folder):
                raise _refused(target, "ACCEPT-READ-ONLY", "the file is read-only", _WRITABLE)
    except OpeningError as fault:
        if is_new and fault.reason is Reason.MISSING:
            return None
        raise _refused(target, "ACCEPT-FILE", f"the file {fault}", _AGAIN) from None
    if is_new:
        remedy = "Move it away, or write the values by hand."
        raise _refused(target, "ACCEPT-FILE", "a file of this name is there already", remedy)
    return data


def _as_read(target: Target, data: bytes, edit: FileEdit) -> str | None:
    """Return the text that reading the manifests makes of a file; None if it is none any more."""
    try:
        if edit.text is not None:
            return data.decode("utf-8")
        return with_whole_escapes(decode(data)) if target.is_json else decode(data)
    except (FindingError, UnicodeDecodeError):
        return None


def _rewritten(
    target: Target, before: bytes, edits: Sequence[FileEdit], work: Work
) -> tuple[Sequence[FileEdit], bytes | None]:
    """Return the edits that could be made, and the new bytes; None where no document is left."""
    texts = [edit.text for edit in edits if edit.text is not None]
    if texts:
        return edits, texts[-1].encode()
    removed = [edit.removed for edit in edits if edit.removed is not None]
    left = list(edits)
    while True:
        values = [edit.edit for edit in left if edit.edit is not None]
        try:
            text = rewritten(decode(before), values, removed, is_json=target.is_json)
        except RewriteError as fault:
            (wrong,) = (each for each in left if each.edit is fault.edit)
            left.remove(wrong)
            problem = f"{wrong.field} cannot be written in its place"
            remedy = "Write it by hand: `reconciler drift` shows what the service holds."
            work.refused.append(error("ACCEPT-PLACE", problem, remedy, wrong.place, wrong.ref))
        else:
            break
    if removed and not any(read_documents(text).documents):
        return left, None
    mark = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
    return left, mark + text.encode()


def _committed(files: Sequence[File], work: Work) -> Iterator[File]:
    """Yield the files that are as in the commit that is checked out; others are refused."""
    names: dict[Path, list[str]] = defaultdict(list)
    for each in files:
        names[each.top] += ["/".join(each.parts)] if each.before is not None else []
    found = {top: uncommitted(own, top) for top, own in names.items() if own}
    for each in files:
        edited = found.get(each.top, ())
        if each.before is None:
            yield each
        elif edited is None:
            problem = "Git does not show whether the file is committed"
            work.refused.append(_refused(each.target, "ACCEPT-GIT", problem, _GIT).finding)
        elif "/".join(each.parts) in edited:
            problem = "the file has changes that are not committed"
            work.refused.append(
                _refused(each.target, "ACCEPT-UNCOMMITTED", problem, _COMMIT).finding
            )
        else:
            yield each


def _same_after_checkout(files: Sequence[File], work: Work) -> Iterator[File]:
    """Yield the files but for scripts whose line ends Git would change; those are refused.

    A manifest may have any line ends: its values are the same.
    """
    names: dict[Path, list[str]] = defaultdict(list)
    for each in files:
        if each.before is not None and each.edits[0].text is not None:
            names[each.top].append("/".join(each.parts))
    ends = {
        (top, name): end
        for top, own in names.items()
        for name, end in checked_out_ends(own, top).items()
    }
    for each in files:
        end = ends.get((each.top, "/".join(each.parts)))
        after = each.after.decode() if end is not None and each.after is not None else ""
        if end is None or after.replace(CRLF, LF).replace(LF, end) == after:
            yield each
            continue
        shown = "CRLF" if end == CRLF else "LF"
        instead = "-text" if CRLF in after else "text eol=lf"
        work.refused.append(
            _refused(
                each.target,
                "ACCEPT-LINE-ENDS",
                f"a checkout gives the script {shown} as line ends, and the service holds others",
                f"Give the file `{instead}` in .gitattributes and commit that, then run the "
                "command again; or take the change back with apply.",
            ).finding
        )


def _refused(target: Target, code: str, problem: str, remedy: str) -> FindingError:
    return FindingError(error(code, problem, remedy, SourceLocation(target.name)))


_COMMIT = "Commit it first: Git is the way back from what is written into it."
_AGAIN = "Run the command again. Links are not followed."
_WRITABLE = "Make it writable with chmod u+w, or leave it out."
_GIT = "Install git, or take settings of filters out of the repository's own configuration."


def write(file: File) -> None:
    """Write one file, which must still be what was shown.

    Raises:
        LocalFileError: it is not, or cannot be written.
    """
    *folders, name = file.parts
    try:
        with folder_beneath(file.top, folders) as folder:
            if file.before is None:
                replace_in(folder, name, file.after or b"", is_new=True)
                return
            changed = read_file(name, folder, MAX_FILE) != file.before
            if not changed and file.after is None:
                remove_in(folder, name)
            elif not changed:
                replace_in(folder, name, file.after or b"")
    except OpeningError as fault:
        raise _unwritten(file, str(fault)) from None
    except OSError as failure:
        remedy = f"{_WRITTEN} Let this user write to the folder, then run the command again."
        raise cannot_write(f"write {file.target.name}", failure, remedy) from failure
    if changed:
        raise _unwritten(file, "was changed meanwhile")


def _unwritten(file: File, why: str) -> LocalFileError:
    return LocalFileError(f"{file.target.name} {why}", remedy=f"{_WRITTEN} Run the command again.")


_WRITTEN = "Files before it were written and are complete: `git diff` shows them."
