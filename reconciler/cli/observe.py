"""``reconciler drift``, ``history`` and ``outputs``: what a service holds, and who changed it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import click

from reconciler.cli.clients import open_reader
from reconciler.cli.configured import Need, configured
from reconciler.cli.connection import Connection
from reconciler.cli.manifests import read_desired
from reconciler.cli.moments import Log, log_of, sequences_at
from reconciler.cli.options import command, paths_argument
from reconciler.cli.output import draw, show_warnings
from reconciler.cli.parameter_types import (
    CLIENT,
    At,
    RefType,
    complete_refs_or_files,
    ref_named,
)
from reconciler.cli.process import ExitCode
from reconciler.diagnostics import warning
from reconciler.errors import ObjectNotFoundError, UsageError
from reconciler.loop import histories_of, look_for_drift, observe_declared
from reconciler.plan.advice import unidentified
from reconciler.plan.drift import Drift
from reconciler.plan.history import names_by_id, steps_of, with_specs
from reconciler.plan.matching import match
from reconciler.plan.model import Scope
from reconciler.report.drift_and_history import (
    DRIFT,
    HISTORY,
    LOG,
    DriftDocument,
    HistoryDocument,
    LogDocument,
)
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.layout import Forms, Layout, in_json, in_lines
from reconciler.report.place import Place
from reconciler.report.plan_json import ref_as_json
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject, is_id
from reconciler.resources.ref import KIND_NAMED, PROJECT, Kind, ResourceRef, fold
from reconciler.service_client.port import ReadOnlyService
from reconciler.state import FeedEvent, ObservedObject, ObservedState


@command("history", example="Project acme/shop", formats=(*HISTORY,))
@click.argument("ref", nargs=-1, metavar="[REF]", shell_complete=RefType().shell_complete)
def history_command(
    ref: tuple[str, ...],
    connection: Connection,
    organization: Sequence[str],
    since: At | None,
    until: At | None,
    form: str,
) -> None:
    """List every change of one object: when, by whom, why, and which fields.

    With --organization it lists what happened in an organization, to which object.

    REF is a kind and names, as plans write them (OidcApplication acme/shop/storefront), the names
    of an application alone, as outputs prints them, or an id. A slash inside a name is written %2F.
    """
    text = " ".join(ref).strip()
    if bool(text) == bool(organization):
        raise UsageError(
            "history is of one object, or of organizations",
            remedy="Give a REF such as `Project acme/shop`, or --organization acme.",
        )
    with open_reader(connection) as reader:
        if organization:
            draw(LOG[form], _log(reader, organization, since, until))
            return
        found = _Found(text) if is_id(text) else _find(reader, _ref(text))
        object_id = found.id
        if found.organization_id:
            owners = {object_id: found.organization_id}
            ((_, events),) = histories_of(reader, owners, found.names)
        else:
            ((_, events),) = reader.histories([object_id])
            events = with_specs(events, {})
        steps = list(steps_of(events))
        if since or until:
            log = log_of(reader, [found.ref.organization] if found.ref else ())
            bounds = [_bound(reader, log, at) for at in (since, until)]
            steps = [step for step in steps if _is_within(step.event.sequence, *bounds)]
    name = f"{found.ref.address}  (id {object_id})" if found.ref else f"id {object_id}"
    draw(HISTORY[form], HistoryDocument(name, object_id, steps))


def _bound(reader: ReadOnlyService, log: Log, at: At | None) -> int | None:
    """Return the sequence of a moment in a log; the earliest, where organizations differ."""
    return min(sequences_at(reader, log, at).values(), default=None) if at else None


def _is_within(sequence: int, since: int | None, until: int | None) -> bool:
    return (since is None or sequence > since) and (until is None or sequence <= until)


def _log(
    reader: ReadOnlyService, organizations: Sequence[str], since: At | None, until: At | None
) -> LogDocument:
    """Return what happened in organizations between two moments, the oldest first."""
    log = log_of(reader, organizations)
    begins, ends = (sequences_at(reader, log, at) if at else {} for at in (since, until))
    names = {head.id: head.name for head in log.heads}
    events = [
        (names[owner], event)
        for owner, happened in reader.changes_of(
            {owner: begins.get(name, 0) for owner, name in names.items()}
        )
        for event in happened
        if _is_within(event.sequence, None, ends.get(names[owner]))
    ]
    events.sort(key=lambda found: found[1].sequence)
    projects: Mapping[str, str] = {}
    if any(event.project_id for _, event in events):
        held = reader.observe([*names.values()], flows=False).everything
        projects = {each.id: each.ref.name for each in held if each.ref.kind == PROJECT}
    found = [(name, _name_of(name, event, projects), event) for name, event in events]
    return LogDocument([head.name for head in log.heads], found)


def _name_of(organization: str, event: FeedEvent, projects: Mapping[str, str]) -> str:
    """Return the address of what an event is about; a removed project stands as its id."""
    kind = KIND_NAMED.get(event.kind)
    if kind is None:
        return f"{event.kind} {event.name}"
    project = event.project_id and projects.get(event.project_id, f"project {event.project_id}")
    return ResourceRef(kind, organization, project, event.name).address


def _ref(text: str) -> ResourceRef:
    """Return the ref that a text names: of any kind, or of an application by its names alone.

    Raises:
        UsageError: it names none, or could name several.
    """
    first = re.split("[ /]", text, maxsplit=1)[0]
    is_short = fold(first) not in map(fold, Kind)
    return ref_named(text, kind=CLIENT if is_short and "/" in text else None)


class _Found(NamedTuple):
    """An object with a history.

    Attributes:
        ref: As the service spells it, if a ref named it.
        organization_id: Empty where an id named it.
        names: Names of the actions beside it, by id, for what a flow ran.
    """

    id: str
    ref: ResourceRef | None = None
    organization_id: str = ""
    names: Mapping[str, str] = MappingProxyType({})


def _find(reader: ReadOnlyService, ref: ResourceRef) -> _Found:
    """Return the object of these names, or the last removed one that had them."""
    observed = reader.observe([ref.organization])
    held, names = observed.objects.get(ref.key), names_by_id(observed.everything)
    if held is not None:
        return _Found(held.id, held.ref, held.organization_id, names)
    objects = observed.objects.values()
    removed = [
        _Found(removal.id, removal.ref, organization, names)
        for organization in (each.id for each in objects if each.ref.kind is Kind.ORGANIZATION)
        for removal in reader.removals(organization)
        if removal.ref.key == ref.key
    ]
    if removed:
        return removed[-1]
    raise ObjectNotFoundError(
        f"the service does not hold {ref}, and removed nothing of this name",
        remedy="If it was renamed, give its name of today or its id. Names are the organization, "
        "the project of an application or a role, and its own, with slashes between; a slash "
        "inside a name is written %2F.",
    )


@command(
    "drift",
    example="--env production --detailed-exitcode",
    formats=(*DRIFT,),
    need=Need.ONE,
)
@click.argument("paths", nargs=-1, metavar="[PATHS]...", shell_complete=complete_refs_or_files)
def drift_command(
    paths: tuple[str, ...],
    connection: Connection,
    scope: Scope,
    form: str,
    *,
    detailed_exitcode: bool,
    accept: bool,
    into: str | None,
    dry_run: bool,
    auto_approve: bool,
) -> int:
    """Show what was changed on the service and not in the manifests, by whom and when.

    PATHS are files and folders; the default is the folder manifests. This command can only read
    the service.

    With --accept, what the service holds is written into the manifests: everything that was
    changed there, or the objects and fields that are named beside the PATHS as REF or REF.FIELD.
    REF is Kind/organization[/project]/name.
    """
    if accept:
        from reconciler.cli.accept import Request, accept_drift, is_ref

        if detailed_exitcode or form != "text":
            raise UsageError(
                "--accept is given with --format or --detailed-exitcode",
                remedy="Leave them out: --accept has one form, the difference in files.",
            )
        refs = [path for path in paths if is_ref(path)]
        files = tuple(path for path in paths if not is_ref(path))
        request = Request(refs, files, connection, scope, into or "", dry_run, auto_approve)
        return accept_drift(request)
    if into or dry_run:
        raise UsageError(
            f"{'--into' if into else '--dry-run'} is given without --accept",
            remedy="Add --accept, or leave it out: drift alone writes nothing.",
        )
    desired, warnings = read_desired(paths, configured(), scope.shard)
    with open_reader(connection) as reader:
        drift, observed = look_for_drift(desired, reader, scope)
    place = Place(connection.service, observed.instance, scope.tree, connection.environment)
    show_warnings([*warnings, *unidentified(observed)])
    draw(DRIFT[form], DriftDocument(drift, place))
    show_warnings(
        [
            warning("DRIFT-INCOMPLETE-READ", "the service's listing is not complete", reason)
            for reason in observed.incomplete
        ]
    )
    return exit_code(drift, observed) if detailed_exitcode else ExitCode.DONE


def exit_code(drift: Drift, observed: ObservedState) -> ExitCode:
    """Return the detailed exit code. Part of the objects shows false drift and hides real."""
    if observed.incomplete:
        return ExitCode.BLOCKED
    return ExitCode.CHANGES if drift.refs else ExitCode.DONE


Application = tuple[ResourceRef, ObservedObject | None]


class Outputs(NamedTuple):
    """The applications declared, those held with their ids, and the environment chosen."""

    applications: Sequence[Application]
    environment: str


def _as_json(outputs: Outputs) -> JsonObject:
    return {
        "format_version": FORMAT_VERSION,
        **({"environment": outputs.environment} if outputs.environment else {}),
        "applications": [
            {
                "ref": ref_as_json(ref),
                "id": held.id if held else None,
                "client_id": held.client_id if held else None,
            }
            for ref, held in outputs.applications
        ],
    }


def _as_text(outputs: Outputs) -> Iterator[str]:
    width = max((len(visible(ref.path)) for ref, _ in outputs.applications), default=0)
    for ref, held in outputs.applications:
        if held is not None:
            name = visible(ref.path).ljust(width)
            yield f"{name}  id {visible(held.id)}  client id {visible(held.client_id)}"


def _as_env(outputs: Outputs, layout: Layout) -> str:
    return "".join(f"{line}\n" for line in _variables(outputs))


def _variables(outputs: Outputs) -> Iterator[str]:
    seen: dict[str, ResourceRef] = {}
    for ref, held in outputs.applications:
        name = _variable_name(ref)
        if name in seen:
            raise UsageError(
                f"{seen[name]} and {ref} would share the variable {name}",
                remedy="Take --format json, which keeps them apart.",
            )
        seen[name] = ref
        if held is not None:
            yield f"{name}_ID={shlex.quote(held.id)}"
            yield f"{name}_CLIENT_ID={shlex.quote(held.client_id)}"


def _variable_name(ref: ResourceRef) -> str:
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(ref[1:]).upper())
    return f"_{name}" if name[:1].isdigit() else name


_OUTPUTS: Forms[Outputs] = {"text": in_lines(_as_text), "json": in_json(_as_json), "env": _as_env}


@command("outputs", example="--format env", formats=(*_OUTPUTS,), need=Need.ONE)
@paths_argument
def outputs_command(paths: tuple[str, ...], connection: Connection, form: str) -> None:
    """Show the id and the client id of every declared application.

    PATHS are files and folders; the default is the folder manifests.
    """
    desired, _ = read_desired(paths, configured())
    with open_reader(connection) as reader:
        observed = observe_declared(desired, reader)
    show_warnings(list(unidentified(observed)))
    matching = match(desired, observed)
    applications: list[Application] = sorted(
        ((r.ref, held) for r, held in matching.pairs if r.ref.kind is CLIENT),
        key=lambda application: application[0],
    )
    draw(_OUTPUTS[form], Outputs(applications, connection.environment))
    for ref, held in applications:
        if held is None:
            click.echo(f"not applied yet: {visible(ref.path)}", err=True)
