"""The whole loop, top to bottom: declared state, observed state, plan, apply, observe again.

A preview and a run share every line but the last, so that a preview cannot differ from what
the run then does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from reconciler.diagnostics import Diagnostic, error, listed, warning
from reconciler.errors import ReconcilerError, ServiceError, UnseenOrganizationError
from reconciler.plan.causes import changed_on_service, field_causes
from reconciler.plan.diff import empties_a_list, field_changes, kept_notes
from reconciler.plan.guards import Allowances, deactivates
from reconciler.plan.history import (
    lacks_names,
    names_by_id,
    names_in,
    with_specs,
)
from reconciler.plan.matching import deleted_beside_new, match
from reconciler.plan.model import Cause, Plan, Rewrite, Scope, ref_of
from reconciler.plan.ownership import divided
from reconciler.plan.planner import build_plan
from reconciler.plan.references import needs_referring
from reconciler.plan.selection import narrowed
from reconciler.resources.capabilities import capabilities_of
from reconciler.resources.fields import Spec
from reconciler.resources.process import collector_paused
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.port import HistoryReader, ReadOnlyService, ServiceClient
from reconciler.state import DesiredState, Elsewhere, ObjectEvent, ObservedObject, ObservedState

if TYPE_CHECKING:
    from reconciler.apply.changes import ApplyReport
    from reconciler.apply.executor import Executor
    from reconciler.plan.drift import Drift


Look: TypeAlias = Callable[[Collection[ObservedObject]], Elsewhere]
"""Searches the rest of a repository for manifests of objects; it may take long."""


class LocalFiles(NamedTuple):
    """Files of this machine that a plan may depend on; None where there are none.

    Attributes:
        look: Searches for manifests of the objects that would be deleted.
        begun: Reads which inactive objects an interrupted run was about to make: specs by id.
        approved: The plan that is gone on with, or was just carried out: what it changes stays in
            the part of the tree that it is of.
    """

    look: Look | None = None
    begun: Callable[[ObservedState], Mapping[str, Spec]] | None = None
    approved: Plan | None = None


NO_FILES = LocalFiles()


def preview(
    desired: DesiredState,
    service: HistoryReader,
    scope: Scope,
    allowed: Allowances,
    files: LocalFiles = NO_FILES,
    *,
    all_flows: bool = False,
) -> tuple[Plan, ObservedState]:
    """Return what a run would do, and what it was decided on.

    Of a part of a tree it is that part of the plan of the whole. Whatever costs a request or a
    search of files is asked before, and only where the plan depends on it: an unchanged plan costs
    one observation.

    ``all_flows`` asks for action flows even where the plan does not need them.

    Raises:
        InvalidManifestsError: the manifests contradict what is held.
        UsageError: the scope names what is not there.
        ServiceError: the service cannot be read.
    """
    with collector_paused():
        flows = all_flows or needs_referring(desired, scope)
        observed = observe_declared(desired, service, flows=flows)
        matching = match(desired, observed)
        # Only a ZITADEL has a generation, and only a ZITADEL keeps no history.
        is_untold = observed.generation is None and not observed.keeps_history
        if is_untold and (desired.needs or desired.capabilities or empties_a_list(matching.pairs)):
            observed = with_generation(observed, service)
        deleted = divided(matching.leftover, observed, scope)[0]
        if files.look is not None and deleted:
            desired = replace(desired, elsewhere=files.look(deleted))
        if observed.keeps_history:
            asked = deleted_beside_new(matching.pairs, deleted, scope.tree)
            observed = with_former_names(observed, service, asked)
        if files.begun is not None and deactivates(matching.pairs):
            allowed = replace(allowed, begun=files.begun(observed))
        return narrowed(build_plan(desired, observed, scope, allowed), files.approved), observed


def with_generation(observed: ObservedState, service: HistoryReader) -> ObservedState:
    """Return a state with the generation of a ZITADEL, and what that takes."""
    generation = service.generation()
    name = capabilities_of(generation, observed.capabilities)
    return replace(observed, generation=generation, capabilities=name)


MOST_HISTORIES = 100  # each is a call of its own; a plan must not take minutes to explain itself


def with_former_names(
    observed: ObservedState, service: HistoryReader, asked: Sequence[ObservedObject]
) -> ObservedState:
    """Return a state with every name that some objects have had. Of none, nothing is asked."""
    ids = [held.id for held in asked[:MOST_HISTORIES]]
    if not ids:
        return observed
    names = {object_id: names_in(events) for object_id, events in service.histories(ids)}
    return replace(observed, former_names=names)


def explained(plan: Plan, service: HistoryReader, observed: ObservedState) -> Plan:
    """Return a plan with the cause of each field of the updates of objects that others changed.

    A plan without such updates costs no call. Where a history cannot be read, or there are too
    many, the last writer stands for every field of the object, and a warning says so. A history of
    a flow names the actions that were observed.
    """
    asked = changed_on_service(plan)
    names = names_by_id(observed.everything) if asked else {}
    causes: dict[ResourceRef, Mapping[str, Cause]] = {}
    try:
        changes = {change.held.id: change for change in asked[:MOST_HISTORIES]}
        owners = {each: change.held.organization_id for each, change in changes.items()}
        for object_id, events in histories_of(service, owners, names):
            told = field_causes(changes[object_id], events, plan.scope.tree)
            name = ref_of(changes[object_id])
            causes[name] = {field: cause for field, (_, cause) in told.items()}
    except ServiceError as failure:
        why = f"{failure.problem}."
    else:
        why = f"A plan reads at most {MOST_HISTORIES} histories."
    left = [ref_of(change) for change in asked if ref_of(change) not in causes]
    if not left:
        return replace(plan, causes=causes) if causes else plan
    note = not_explained(
        left,
        f"{why} For ",
        " the plan names the last writer for all fields together; `reconciler history` shows each "
        "of them.",
    )
    return replace(plan, causes=causes, warnings=(*plan.warnings, note))


def histories_of(
    service: HistoryReader, owners: Mapping[str, str], names: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
    """Yield the id and the events of each object; those of a flow name actions, also removed ones.

    ``owners`` has the id of the organization by the id of each object; ``names`` are those of the
    actions that are held, by id.

    Raises:
        ServiceError: the service cannot be read, or keeps no history.
    """
    asked = set[str]()
    for object_id, events in service.histories([*owners]):
        owner = owners[object_id]
        if owner not in asked and lacks_names(events, names):
            asked.add(owner)
            names = {**names_by_id(service.removals(owner)), **names}
        yield object_id, with_specs(events, names)


def not_explained(left: Sequence[ResourceRef], before: str, after: str) -> Diagnostic:
    """Return a warning that histories were not read; objects are named between two texts."""
    named = f"{left[0]}{' and others' if len(left) > 1 else ''}"
    return warning(
        "PLAN-CAUSES-NOT-READ",
        f"the history of {len(left)} object(s) was not read",
        f"{before}{named}{after}",
        ref=left[0],
    )


def observe_declared(
    desired: DesiredState, service: HistoryReader, *, flows: bool = True
) -> ObservedState:
    """Return what is held in the organizations that the manifests name.

    Raises:
        UnseenOrganizationError: an organization may exist, and this caller would not see it.
        ServiceError: the service cannot be read.
    """
    observed = service.observe(desired.organizations, flows=flows)
    if observed.unseen:
        raise UnseenOrganizationError(observed.unseen, remedy=observed.missing_role)
    return observed


def look_for_drift(
    desired: DesiredState, service: ReadOnlyService, scope: Scope
) -> tuple[Drift, ObservedState]:
    """Return what was changed on the service since this tree applied it, and what is held.

    Nothing can be written from here: what is given has no way to.

    Raises:
        InvalidManifestsError: the manifests contradict what is held.
        ServiceError: the service cannot be read.
    """
    from reconciler.plan.drift import selected

    # The whole is looked through: an object that was renamed on the service is found by both names.
    reading = Scope(tree=scope.tree, shard=scope.shard)
    plan, observed = preview(desired, service, reading, Allowances(), all_flows=True)
    drift = drift_in(plan, observed, service)
    return selected(drift, replace(plan, scope=scope)), observed


def drift_in(plan: Plan, observed: ObservedState, service: HistoryReader) -> Drift:
    """Return what of a plan's differences was made on the service.

    The plan deletes nothing, and was made with all flows.

    Raises:
        ServiceError: the service cannot be read.
    """
    from reconciler.plan.drift import find_drift, owners_to_ask, replaced, suspects

    names = names_by_id(observed.everything)
    removals = [
        removal for owner in owners_to_ask(plan, observed) for removal in service.removals(owner)
    ]
    owners = {held.id: held.organization_id for held in suspects(plan, observed)}
    for gone, held in replaced(plan, observed, removals):
        owners[gone.id] = held.organization_id
    return find_drift(plan, observed, dict(histories_of(service, owners, names)), removals)


def carry_out(
    plan: Plan,
    observed: ObservedState,
    desired: DesiredState,
    service: ServiceClient,
    executor: Executor,
    *,
    require_secrets: bool = False,
) -> ApplyReport:
    """Make the service hold what the plan says, then look again for what remains.

    What was done is reported even where the service cannot be read again.
    """
    with collector_paused():
        report = executor.run(plan, observed, require_secrets=require_secrets)
    report = replace(report, left_out=plan.left_out.changes)
    if report.interrupted:
        return report
    if not plan.changes:
        return replace(report, remaining=0)  # a delivery changes no object
    try:
        scope = replace(plan.scope, rotate_missing=())
        again, seen = preview(desired, service, scope, Allowances(), LocalFiles(approved=plan))
    except ReconcilerError as failure:
        note = warning(
            "APPLY-NOT-OBSERVED",
            f"what remains is not known: {failure.problem}",
            f"What was done is still reported. {failure.remedy}",
        )
        return replace(report, notes=(*report.notes, note))
    kept = (*_not_shown(seen), *_not_listed(seen), *_remaining(report, again))
    return replace(
        report,
        remaining=len(again.changes),
        left_out=again.left_out.changes,
        notes=(*report.notes, *kept),
    )


def _not_shown(seen: ObservedState) -> Iterator[Diagnostic]:
    """Yield an error where lists do not show in time what the service says it wrote."""
    if not seen.unshown:
        return
    named = listed(seen.unshown, 1)
    yield error(
        "APPLY-NOT-SHOWN",
        f"the service acknowledged writes that its lists do not show yet: {named}",
        "Lists lag, and in rare cases a server loses a row of them for good. Run `reconciler plan` "
        "again later, or wait longer: reconciler apply --settle 5m. Until they show, the next plan "
        "may want to make them again; an apply looks for an object of the same name before it "
        "keeps a second one, and distinguishes a lost row from a late one.",
        ref=seen.unshown[0],
    )


def _not_listed(seen: ObservedState) -> Iterator[Diagnostic]:
    """Yield an error where a name is taken by an object that lists still do not show."""
    if seen.unlisted:
        named = listed(seen.unlisted, 1)
        yield error(
            "APPLY-ROW-LOST",
            f"the service refuses a name as taken, and its lists lost it: {named}",
            "No list showed an object of the name within the time of --settle. An earlier run, or "
            "another writer, made it: its event is stored, and the server's projection has no row "
            "of it. Waiting does not bring it back. The operator of the server must rebuild that "
            "projection from the events; then plan again. Only what was made within that time can "
            "still show by itself: reconciler apply --settle 5m.",
            ref=seen.unlisted[0],
        )


def _remaining(report: ApplyReport, again: Plan) -> Iterator[Diagnostic]:
    """Yield what the service made of an update that it says it carried out.

    Lists that it keeps get every change, also one for which nothing was sent.
    """
    from reconciler.apply.changes import Status
    from reconciler.kinds.calls import CALLS

    yield from kept_notes(again.changes, "APPLY-LIST-KEPT")

    made = {outcome.id for outcome in report.outcomes if outcome.status is Status.MADE}
    for change in again.changes:
        if isinstance(change, Rewrite) and change.held.id in made:
            ref = change.resource.ref
            names = [field.name for field in field_changes(change) if not field.kept]
            if not names:
                continue
            not_kept = CALLS[ref.kind].not_kept
            reasons = "".join(f" {not_kept[name]}" for name in names if name in not_kept)
            yield warning(
                "APPLY-REMAINING",
                "the service holds something other than what was sent",
                f"{ref}: {', '.join(names)}. Some services cannot empty a list or keep a default "
                f"of their own: declare what the service holds, or change it there.{reasons}",
                ref=ref,
            )
