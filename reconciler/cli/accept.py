"""``reconciler drift --accept``: what the service holds is written into the manifests.

Nothing is written to a service. What comes from one is hostile: it is judged before any file is
written, and read and planned again afterwards.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

from reconciler.cli.accepted_files import File, Work, files_of, write
from reconciler.cli.approval import ask_for_yes
from reconciler.cli.clients import open_reader
from reconciler.cli.configured import Configured, configured
from reconciler.cli.connection import Connection
from reconciler.cli.manifests import read_desired
from reconciler.cli.output import draw, hint, say, show_warnings
from reconciler.cli.parameter_types import ref_named
from reconciler.cli.process import ExitCode
from reconciler.diagnostics import Diagnostic, FindingError, cut, error
from reconciler.errors import InvalidManifestsError, ServiceError, UsageError
from reconciler.kinds.fields import KINDS
from reconciler.loop import look_for_drift
from reconciler.manifests.accept import Acceptance, FileEdit, with_field
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import SCRIPTS, Loaded, Manifest, declared_ref
from reconciler.manifests.placeholders import escaped
from reconciler.plan.accepting import MARKS, Accepted, Wanted, accepted
from reconciler.plan.diff import NAME, field_changes
from reconciler.plan.drift import Drift
from reconciler.plan.matching import match
from reconciler.plan.model import Scope, Update
from reconciler.report.differences import changes_as_text
from reconciler.report.visible import visible
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import HistoryReader
from reconciler.state import DesiredState, ObservedState, Resource, completed
from reconciler.validation.desired import judge

_MOST_UNMANAGED = 5


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one ``drift --accept``.

    Attributes:
        texts: What to accept, as ``REF[.FIELD]``; nothing for everything that drifted.
    """

    texts: Sequence[str]
    paths: Sequence[str]
    connection: Connection
    scope: Scope
    into: str
    dry_run: bool
    auto_approve: bool


class _Look(NamedTuple):
    """What is declared, with warnings, what is held, and the drift between them.

    Attributes:
        named: What the arguments name.
        done: Those of them whose objects are neither declared nor held any more.
    """

    desired: DesiredState
    observed: ObservedState
    drift: Drift
    warnings: Sequence[Diagnostic]
    named: Sequence[Wanted]
    done: Sequence[Wanted]


def is_ref(text: str) -> bool:
    """Return whether an argument names an object and no path: it begins with a kind."""
    kind = _kind_of(text)
    return kind != text and kind in {each.value for each in KINDS}


def _kind_of(text: str) -> str:
    """Return what stands before the first slash or blank."""
    return text.partition("/")[0].partition(" ")[0]


def accept_drift(request: Request) -> int:
    """Write what the service holds into the manifests that declare it; return the exit code.

    Raises:
        InvalidManifestsError: the manifests cannot be used as they are.
        LocalFileError: a file cannot be written.
        ServiceError: the service cannot be read, or not all of it.
        UsageError: a name is that of nothing declared, or the terminal did not approve.
    """
    chosen = configured()
    if request.into and not chosen.layers.overlay:
        raise UsageError(
            "--into overlay is given, and no environment with an overlay is chosen",
            remedy="Choose one with --env, or leave --into out.",
        )
    if request.into and chosen.layers.is_shared:
        raise UsageError(
            f"the overlay of {chosen.name} is that of another environment, too",
            remedy="Give this environment an overlay of its own, or leave --into out.",
        )
    look = _look(request, chosen)
    show_warnings(look.warnings)
    found = _found(request, look)
    work = _work(found, look, request, chosen)
    files = files_of(work)
    show_warnings(work.refused)
    if not files:
        say("Nothing can be accepted." if work.refused else "No drift to accept.")
        return ExitCode.ERROR if work.refused else ExitCode.DONE
    _show(files, request, chosen)
    if not request.dry_run:
        _write_all(files, request)
        left = _remaining(found, [edit for each in files for edit in each.edits], request, chosen)
        show_warnings(left)
        work.refused += left
    return ExitCode.ERROR if work.refused else ExitCode.DONE


def _found(request: Request, look: _Look) -> Sequence[Accepted]:
    """Return what is accepted, and name what is not and why."""
    found: list[Accepted] = []
    left: list[Wanted] = []
    if look.named or not request.texts:
        found, left = accepted(look.drift, look.desired, look.observed, look.named)
    for each in left:
        hint(f"{visible(str(each))} has no drift: nothing to accept.")
    for each in look.done:
        hint(f"{visible(str(each))} is gone from the service and from the manifests: it is done.")
    if not request.texts:
        _name_unmanaged(look.drift)
    return found


def _show(files: Sequence[File], request: Request, chosen: Configured) -> None:
    draw(changes_as_text, [each.shown for each in files])
    edits = [edit for each in files for edit in each.edits]
    say(f"\n{_counted(edits)} to accept, in {_number(files, 'file')}.")
    if chosen.name and not request.into:
        _name_environments(files, chosen)


def _write_all(files: Sequence[File], request: Request) -> None:
    """Write files one after the other, once it is approved."""
    if not request.auto_approve:
        ask_for_yes(f"write {_number(files, 'file')}", "drift --accept")
    for each in files:
        write(each)
        crashpoint("C21")
    say(f"Wrote {_number(files, 'file')}.")


def _look(request: Request, chosen: Configured) -> _Look:
    desired, warnings = read_desired(request.paths, chosen, request.scope.shard)
    with open_reader(request.connection) as reader:
        drift, observed = look_for_drift(desired, reader, request.scope)
        if observed.incomplete:
            raise ServiceError(
                f"the service's listing is not complete: {observed.incomplete[0]}",
                remedy="Run the command again: part of the objects shows false drift.",
            )
        named, done = [], []
        for text in request.texts:
            wanted = _wanted(text, desired)
            if wanted is not None:
                named.append(wanted)
            else:
                done.append(_removed(text, observed, reader))
    return _Look(desired, observed, drift, warnings, named, done)


def _readings(text: str) -> Iterator[Wanted]:
    """Yield what an argument may name: an object, or a field of one, whose name may have dots."""
    yield Wanted(ref_named(text))
    fields = KINDS[Kind(_kind_of(text))].fields
    for name in (*MARKS, *(field.name for field in fields)):
        if text.endswith(f".{name}"):
            yield Wanted(ref_named(text.removesuffix(f".{name}")), name)


def _wanted(text: str, desired: DesiredState) -> Wanted | None:
    """Return the declared object that an argument names, or a field of one; None if none is."""
    declared = ((each, desired.resources.get(each.ref.key)) for each in _readings(text))
    return next((each._replace(ref=found.ref) for each, found in declared if found), None)


def _removed(text: str, observed: ObservedState, reader: HistoryReader) -> Wanted:
    """Return what an argument names that was removed, and is declared no more: nothing is left.

    Raises:
        UsageError: it is held and not declared, or was never removed from the service.
    """
    readings = [*_readings(text)]
    ref = readings[0].ref
    if ref.key in observed.objects:
        raise UsageError(
            f"{ref} is declared nowhere",
            remedy=f"Write a manifest of it: {_exporting(ref)}. Nothing was written.",
        )
    owners = (
        held.id
        for held in observed.objects.values()
        if held.ref.kind is Kind.ORGANIZATION and held.ref.key.organization == ref.key.organization
    )
    for owner in owners if observed.keeps_history else ():
        gone = {removal.ref.key for removal in reader.removals(owner)} - {*observed.objects}
        for each in readings:
            if each.ref.key in gone:
                return each
    raise UsageError(
        f"{ref} is neither declared nor held",
        remedy="Name an object as plans do, such as Action/acme/greet, or one of its fields: "
        "Action/acme/greet.timeout. Nothing was written.",
    )


def _exporting(ref: ResourceRef) -> str:
    """Return the command that exports an object, whose name may be hostile, for a shell."""
    return f"reconciler export {shlex.quote(ref.address)} --out FOLDER"


def _name_unmanaged(drift: Drift) -> None:
    refs = drift.unmanaged
    for ref in refs[:_MOST_UNMANAGED]:
        hint(f"Declared nowhere: {visible(_exporting(ref))} writes it.")
    if refs[_MOST_UNMANAGED:]:
        hint("More objects are declared nowhere: reconciler drift lists them.")


def _work(found: Sequence[Accepted], look: _Look, request: Request, chosen: Configured) -> Work:
    """Return the edits of what is accepted, and why the others are refused."""
    manifests = {key: _manifest(each) for key, each in look.desired.resources.items()}
    acceptance = Acceptance(chosen.layers, [*manifests.values()])
    patches = _patches(request, chosen) if request.into else {}
    work = Work()
    for each in _valid(_without_renames(found, look, work), manifests, work):
        key = each.resource.ref.key
        patched = bool(request.into) and not acceptance.is_of_overlay(manifests[key].file)
        edits = _in_overlay if patched else _in_place
        for edit in edits(acceptance, each, manifests[key], patches.get(key)):
            try:
                work.edits.append(edit())
            except FindingError as refusal:
                work.refused.append(refusal.finding)
    return work


def _manifest(resource: Resource) -> Manifest:
    return cast("Manifest", resource.source)  # every declared resource is read from one


def _patches(request: Request, chosen: Configured) -> Mapping[ResourceRef, Manifest]:
    """Return the documents of the overlay that change others, by what they are about."""
    paths = request.paths or chosen.manifests
    patches = load(paths, request.scope.shard, chosen.layers).patches
    return {ref.key: each for each in patches if (ref := declared_ref(each.document))}


def _without_renames(found: Sequence[Accepted], look: _Look, work: Work) -> Iterator[Accepted]:
    """Yield what is accepted but for new names, which are refused.

    Until a manifest has the id of the renamed object, it is of none that is held: then all is
    refused that is accepted of it.
    """
    drifted = ((each.ref.key, field) for each in look.drift.objects for field in each.fields)
    names = {key: field.after for key, field in drifted if field.name == NAME}
    for each in found:
        fields = {name: held for name, held in each.fields.items() if name != NAME}
        key = each.resource.ref.key
        name = each.fields.get(NAME, names.get(key))
        is_pinned = bool(each.resource.pinned_id)
        is_of_none = key in names and not is_pinned and key not in look.observed.objects
        if NAME in each.fields or is_of_none:
            manifest = _manifest(each.resource)
            work.refused.append(
                error(
                    "ACCEPT-RENAME",
                    f"the service holds it under another name: {cut(str(name))}",
                    "Write that name into metadata.name, and the id of the object, which drift "
                    "shows, into metadata.id. Or take the change back with apply.",
                    manifest.place("metadata", "name"),
                    each.resource.ref,
                )
            )
            if is_of_none:
                continue
        if fields or each.removed:
            yield each._replace(fields=fields)


def _valid(
    found: Iterable[Accepted], manifests: Mapping[ResourceRef, Manifest], work: Work
) -> Sequence[Accepted]:
    """Return what manifests can declare. What the service takes may be refused in a manifest."""
    left = list(found)
    while left:
        held = {**manifests, **{each.resource.ref.key: _as_held(each) for each in left}}
        read = tuple(each for each in held.values() if each is not None)
        wrong = [each for each in judge(Loaded(read, (), whole=True)).diagnostics if each.is_error]
        if not wrong:
            break
        about = {each.ref.key for each in wrong if each.ref is not None}
        kept = [each for each in left if each.resource.ref.key not in about]
        left = kept if len(kept) < len(left) else []
        remedy = "No manifest can declare what the service holds: change it there."
        work.refused += [replace(each, remedy=f"{remedy} {each.remedy}") for each in wrong]
    return left


def _as_held(each: Accepted) -> Manifest | None:
    """Return a manifest with accepted fields as they are held; None for one that goes."""
    manifest = _manifest(each.resource)
    document = manifest.document
    for name, held in each.fields.items():
        document = with_field(document, name, held)
    return None if each.removed else manifest.changed(document, {})


_Edits: TypeAlias = Iterator[Callable[[], FileEdit]]


def _in_place(
    acceptance: Acceptance, each: Accepted, manifest: Manifest, patch: Manifest | None
) -> _Edits:
    ref = each.resource.ref
    if each.removed:
        yield partial(acceptance.removal, manifest, ref)
    for name, held in each.fields.items():
        yield partial(acceptance.field, manifest, ref, name, held)


def _in_overlay(
    acceptance: Acceptance, each: Accepted, manifest: Manifest, patch: Manifest | None
) -> _Edits:
    ref = each.resource.ref
    templated = {name for name in SCRIPTS if manifest.origin("spec", name).text is not None}
    fields = {
        name: escaped(held) if name in templated else held for name, held in each.fields.items()
    }
    if patch is None:
        yield partial(acceptance.new_patch, ref, None if each.removed else fields, manifest.place())
    elif each.removed:
        yield partial(acceptance.patched_removal, patch, ref)
    else:
        for name, held in fields.items():
            has_variables = name not in SCRIPTS or name in templated
            yield partial(acceptance.in_patch, patch, ref, name, held, has_variables=has_variables)


def _remaining(
    found: Sequence[Accepted], edits: Sequence[FileEdit], request: Request, chosen: Configured
) -> Sequence[Diagnostic]:
    """Read and plan again; return what was accepted and is still not in step."""
    written = {(edit.ref.key, edit.field) for edit in edits}
    paths = [path for path in request.paths if Path(path).exists()]  # a file of one may be gone
    if request.paths and not paths:
        return ()
    try:
        look = _look(replace(request, texts=(), paths=paths), chosen)
    except InvalidManifestsError as failure:
        return failure.diagnostics
    except ServiceError as failure:
        problem = f"the files were written and could not be planned again: {failure.problem}"
        return [error("ACCEPT-REMAINS", problem, failure.remedy)]
    held_by = {
        resource.ref.key: held for resource, held in match(look.desired, look.observed).pairs
    }
    remaining = []
    for each in found:
        key = each.resource.ref.key
        names = [name for name in each.fields if {(key, name), (key, "")} & written]
        resource, held = look.desired.resources.get(key), held_by.get(key)
        if each.removed:
            left = ["the document"] if (key, "") in written and resource is not None else []
        elif resource is None or held is None:
            left = names
        else:
            differ = {
                field.name for field in field_changes(Update(completed(resource, held), held))
            }
            left = [name for name in names if name in differ]
        place = resource.source.place() if resource else None
        problem = f"what was written is not what the service holds: {', '.join(left)}"
        remedy = (
            "Another writer may have changed it meanwhile, or another document decides over it: "
            "run `reconciler plan`. `git checkout` takes the files back."
        )
        if left:
            remaining.append(error("ACCEPT-REMAINS", problem, remedy, place, each.resource.ref))
    return remaining


def _name_environments(files: Sequence[File], chosen: Configured) -> None:
    """Say that what is written counts for other environments, too."""
    environments = chosen.configuration.environments if chosen.configuration else {}
    overlay = chosen.layers.overlay
    if len(environments) > 1 and any(each.target.root != overlay for each in files):
        only = f"; --into overlay writes for {chosen.name} alone" if overlay else ""
        hint(f"Files outside of overlays count for all {len(environments)} environments{only}.")


def _counted(edits: Sequence[FileEdit]) -> str:
    fields = [edit for edit in edits if edit.field]
    documents = [edit for edit in edits if not edit.field]
    counts = [_number(each, noun) for each, noun in ((fields, "field"), (documents, "document"))]
    return " and ".join(each for each in counts if not each.startswith("0 "))


def _number(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
