"""Plan files and snapshots on the disk: read without following links, written whole or not."""

from __future__ import annotations

import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from reconciler import __version__
from reconciler.cli.configured import configured
from reconciler.cli.manifests import Made
from reconciler.cli.output import age_in_words, hint, time_in_words
from reconciler.diagnostics import name_as_text, warning
from reconciler.errors import LocalFileError, writing
from reconciler.loop import LocalFiles, not_explained, preview
from reconciler.manifests.discovery import (
    EXTENSIONS,
    JSON,
    in_one_order,
    is_folder,
    is_json_manifest,
)
from reconciler.manifests.files import OpeningError, read_path
from reconciler.plan.causes import causes_not_read
from reconciler.plan.digest import declared_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.integrity import MAX_SIZE, SavedFileError, seal_of
from reconciler.plan.model import Plan, Scope
from reconciler.plan.planfile import (
    PlanFile,
    Snapshot,
    looks_like_plan_file,
    plan_file_content,
    read_plan_file,
)
from reconciler.plan.snapshot import SnapshotFile, read_snapshot, snapshot_content
from reconciler.report.plan_document import PlanDocument
from reconciler.report.visible import visible
from reconciler.resources.files import write_private
from reconciler.resources.ref import ResourceRef, fold
from reconciler.state import DesiredState, ObservedState

T = TypeVar("T")


def is_plan_file(path: str) -> bool:
    """Return whether a path is meant as a plan file, and not as a file of manifests.

    Manifests end in .yaml, .yml or .json. A plan file may end so, too; then its content decides.
    Where nothing is at the path, its name decides: .json is more often a plan file.
    """
    if is_folder(path):
        return False
    if not os.path.lexists(path):
        return Path(path).suffix not in {"", *EXTENSIONS}
    if not path.endswith((*EXTENSIONS, JSON)):
        return True
    is_json = path.endswith(JSON)
    try:
        content = read_path(path, MAX_SIZE)
    except OpeningError:
        return is_json
    return not is_json_manifest(content) if is_json else looks_like_plan_file(content)


def open_plan_file(path: str) -> PlanFile:
    """Return the plan file at a path.

    Raises:
        LocalFileError: it cannot be read, or was changed.
    """
    return _opened(path, read_plan_file, "Make a new one: reconciler plan --out FILE.")


def save_snapshot(
    observed: ObservedState, service: str, organizations: Sequence[str], path: str
) -> None:
    """Save what a service holds in some organizations, or in all; print on stderr how many objects.

    Raises:
        LocalFileError: the file cannot be written.
    """
    file = SnapshotFile(
        observed,
        __version__,
        name_as_text(service),
        int(time.time()),
        tuple(sorted({fold(name) for name in organizations})) or None,
    )
    _save(path, snapshot_content(file))
    hint(f"Saved {len(observed.objects)} objects to: {visible(path)}")


def _save(path: str, content: bytes) -> None:
    """Write a file for its owner alone, whole or not at all.

    Raises:
        LocalFileError: it cannot be written.
    """
    target = Path(path)
    if is_folder(path) or not target.name:
        raise LocalFileError(f"{path} is a folder", remedy="Name a file that may be written.")
    # A rename replaces whatever has the name. For root that could be a device of the machine, or
    # /dev/stdout, which is a link.
    mode = None
    with suppress(OSError):  # the common case: there is no such file yet
        mode = target.lstat().st_mode
    if mode is not None and not stat.S_ISREG(mode):
        raise LocalFileError(
            f"{path} is not a regular file",
            remedy="Name a regular file or a new one: links, pipes and devices are not replaced.",
        )
    remedy = "Make it a folder this user may write to, with room on the disk."
    with writing(f"write into {target.parent}", remedy):
        write_private(target, content)


def _opened(path: str, read: Callable[[bytes], T], remedy: str) -> T:
    try:
        return read(read_path(path, MAX_SIZE))
    except OpeningError as fault:
        raise LocalFileError(f"{path} {fault}", remedy=remedy) from None
    except SavedFileError as fault:
        raise LocalFileError(
            f"{path} cannot be used: it {fault}", remedy=f"{remedy} Nothing was written."
        ) from None


NOT_REPEATED = {
    "paths", "out", "expires", "against", "form", "max_chars", "docs", "on_merge", "of", "keep",
    "last", "reason", "detailed_exitcode", "service_kind", "token_file", "key_file", "max_rps",
    "use_proxy",
}  # fmt: skip
"""Options that are not repeated: of plan or undo alone, or of the machine and not of the plan."""


def save_plan(
    out: str,
    shown: PlanDocument,
    desired: DesiredState,
    *,
    paths: tuple[str, ...],
    lasting: int,
    made: Made,
    snapshot: SnapshotFile | None = None,
    reason: str = "",
) -> None:
    """Write the file of a plan that was shown, and print on stderr how to apply it.

    ``paths`` are as they were typed. It is good for ``lasting`` seconds. With a snapshot, the plan
    was made against that and not against the service.

    Raises:
        LocalFileError: it cannot be written.
    """
    against = None
    if snapshot is not None:
        against = Snapshot(snapshot.taken_at, seal_of(snapshot_content(snapshot)))
    file = PlanFile(
        plan=shown.plan,
        tool_version=__version__,
        service=name_as_text(shown.service),
        paths=tuple(map(name_as_text, in_one_order(paths or configured().manifests))),
        declared=declared_digest(desired),
        made_at=made.at,
        expires_at=made.at + lasting,
        against=against,
        warnings=tuple(shown.findings),
        revision=made.revision,
        reason=reason,
    )
    _save(out, plan_file_content(file))
    hint(f"\nSaved the plan to: {visible(out)}")
    if against is None:
        command = " ".join(map(_quoted, ["reconciler", "apply", out, *paths, *_options()]))
        until = time_in_words(file.expires_at)
        hint(f"To apply exactly this, until {until}:\n  {visible(command)}")


def plan_against(
    path: str, desired: DesiredState, options: tuple[Scope, Allowances, LocalFiles]
) -> tuple[Plan, SnapshotFile]:
    """Return the plan against what was once seen of a service, and that.

    Raises:
        LocalFileError: the snapshot cannot be used.
        InvalidManifestsError: the manifests contradict what was held.
    """
    again = "Take a new one: reconciler export --snapshot FILE."
    snapshot = _opened(path, read_snapshot, again)
    plan, _ = preview(desired, snapshot, *options)
    age = age_in_words(max(0, int(time.time()) - snapshot.taken_at))
    is_old = warning(
        "PLAN-SNAPSHOT",
        f"this plan was made against a snapshot that is {age} old",
        f"It was taken at {time_in_words(snapshot.taken_at)}. What the service holds now may "
        "differ; apply plans again.",
    )
    notes = [is_old]
    if causes := causes_not_read(plan):
        why = "A snapshot has no history, so the plan does not say who changed "
        how = ". A plan against the service does, as does `reconciler history`."
        notes.append(not_explained([*causes], why, how))
    return replace(plan, causes=causes, warnings=(*notes, *plan.warnings)), snapshot


def _quoted(word: str) -> str:
    """Return a word as a shell reads it, bytes that are no UTF-8 included."""
    if name_as_text(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, os.fsencode(word)))}'"


def _escaped(byte: int) -> str:
    letter = chr(byte)
    is_plain = letter.isascii() and (letter.isalnum() or letter in "/._-")
    return letter if is_plain else f"\\x{byte:02x}"


def _options() -> Iterator[str]:
    """Yield the options of this command that apply needs as well."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if not given or name in NOT_REPEATED or name not in context.params:
            continue
        value = context.params[name]
        for each in value if isinstance(value, tuple) else [value]:
            yield parameter.opts[0]
            if each is not True:
                yield each.address if isinstance(each, ResourceRef) else str(each)
