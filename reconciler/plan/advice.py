"""Warnings for the reader of a plan, which do not keep it from being applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, note, warning
from reconciler.kinds.fields import KINDS
from reconciler.plan.alike import HeldAlike
from reconciler.plan.diff import is_not_sent
from reconciler.plan.guards import LET_THROUGH, addresses_of
from reconciler.plan.model import Adopt, Change, Create, Delete, Scope, Update
from reconciler.resources.capabilities import SOURCE
from reconciler.resources.ref import Kind, ResourceRef, fold, owner_of
from reconciler.state import DesiredState, ObservedObject, ObservedState, Resource, other_owner

DEPRECATED = "UpdateOrgIDPJWTConfig"
NOT_IDENTIFIED = "SERVICE-NOT-IDENTIFIED"
NAMED = 20
_LOGOUT = "backChannelLogoutUri"


def advice(
    changes: Sequence[Change],
    desired: DesiredState,
    observed: ObservedState,
    scope: Scope,
    named: Mapping[str, str],
) -> tuple[Diagnostic, ...]:
    """Return the warnings of a plan. They are not part of its digest.

    ``named`` are the addresses given with ``--break-glass``: folded, and as given.
    """
    return (
        *_other_capabilities(desired, observed),
        *unidentified(observed),
        *_logouts_checked(changes),
        *_deprecated(changes, observed),
        *_audiences(changes, desired, observed),
        *_no_longer_named(desired, observed, scope),
        *_allowed_for_nothing(changes, named),
    )


def _other_capabilities(desired: DesiredState, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield a warning where the service is not of the kind that the manifests are meant for."""
    chosen, found = desired.capabilities, observed.capabilities
    # Where the generation cannot be told, a ZITADEL counts as the oldest that takes as much.
    is_sure = observed.generation != 0 or SOURCE in {chosen, found}
    if chosen and chosen != found and observed.instance and is_sure:
        yield warning(
            "PLAN-CAPABILITIES",
            f"the capabilities {chosen} were chosen, and the service has those of {found}",
            "The plan goes by the service; `reconciler validate` goes by what was chosen. Write "
            f"capabilities: {found} for the environment, or name the service that is meant.",
        )


def _logouts_checked(changes: Sequence[Change]) -> Iterator[Diagnostic]:
    """Yield a note on updates that send an old back-channel logout URI, which is checked again."""
    sent = [
        change.resource
        for change in changes
        if isinstance(change, Update | Adopt)
        and change.held.spec.get(_LOGOUT)
        and change.resource.spec.get(_LOGOUT) == change.held.spec[_LOGOUT]
        and change.resource.spec != change.held.spec
        and not is_not_sent(change)
    ]
    if sent:
        yield note(
            "PLAN-LOGOUT-CHECKED",
            f"the server checks the back-channel logout URI of {len(sent)} application(s) again",
            "A newer ZITADEL refuses an update of an application whose backChannelLogoutUri it can "
            "no longer resolve (PROJECT-msNebo), also where the manifest does not say it. Then "
            f"write another one, or an empty text: {_listed([_place(each) for each in sent])}",
            sent[0].source.place("spec"),
        )


def _deprecated(changes: Sequence[Change], observed: ObservedState) -> Iterator[Diagnostic]:
    # A ZITADEL is written to with newer calls, unless it is too old for them.
    if not observed.keeps_history and observed.knows_audience is not False:
        return
    using = [
        change.resource
        for change in changes
        if isinstance(change, Update | Adopt)
        and change.resource.ref.kind is Kind.IDP_JWT_CONFIG
        and change.resource.spec != change.held.spec
        and change.resource.spec.get("audience") == change.held.spec.get("audience")
    ]
    if using:
        yield warning(
            "PLAN-DEPRECATED-OPERATION",
            "the plan uses a deprecated operation of the service",
            f"{DEPRECATED} may be removed in a future version of the service. It is used for "
            f"{_listed([_place(resource) for resource in using])}. Nothing is wrong today; keep "
            "it in mind before the service is upgraded.",
            using[0].source.place("spec"),
        )


_UPGRADE = "ZITADEL knows it from 3.4.12 and 4.15.2 on: upgrade it."


def _audiences(
    changes: Sequence[Change], desired: DesiredState, observed: ObservedState
) -> Iterator[Diagnostic]:
    """Yield one warning about audiences that are not checked, and one where they may be lost."""
    providers = [each for each in desired.resources.values() if "audience" in each.spec]
    unchecked = [each for each in providers if not each.spec["audience"]]
    if providers and observed.knows_audience is False:
        yield warning(
            "PLAN-AUDIENCE-UNKNOWN",
            "the server does not know the audience of identity providers",
            f"It never checks `aud`, so for {len(providers)} provider(s) a token that their issuer "
            f"made for another application is accepted (CVE-2026-55669). {_UPGRADE}",
        )
        return
    if unchecked:
        yield warning(
            "PLAN-NO-AUDIENCE",
            f"{len(unchecked)} JWT identity provider(s) accept tokens for any audience",
            "`aud` is not checked: a token that the issuer made for another application is "
            "accepted (CVE-2026-55669). Write spec.audience: "
            f"{_listed([_place(each) for each in unchecked])}",
            unchecked[0].source.place("spec"),
        )
    setting = [
        change.resource
        for change in changes
        if not isinstance(change, Delete) and change.resource.spec.get("audience")
    ]
    if setting and observed.knows_audience is None:
        yield warning(
            "PLAN-AUDIENCE-UNKNOWN",
            "whether the server knows the audience of identity providers shows only after apply",
            f"The plan sets it for {len(setting)} provider(s). If the next plan sets it again, the "
            f"server never checks `aud`. {_UPGRADE}",
            setting[0].source.place("spec"),
        )


def _place(resource: Resource) -> str:
    return f"{resource.ref} ({resource.source.place('metadata', 'name')})"


def _no_longer_named(
    desired: DesiredState, observed: ObservedState, scope: Scope
) -> Iterator[Diagnostic]:
    named = {fold(name) for name in desired.organizations}
    left = sorted(
        name
        for name, trees in observed.elsewhere.items()
        if scope.tree in trees and fold(name) not in named and scope.covers(name)
    )
    if left and desired.whole:  # a part of a tree does not say what the whole no longer names
        yield warning(
            "PLAN-ORGANIZATION-LEFT",
            "the tree no longer names an organization it applied before",
            f"Tree {scope.tree} applied objects to {_listed(left)}, and no manifest names "
            f"{'it' if len(left) == 1 else 'them'} any more. What is there is neither compared "
            "nor deleted. Declare the Organization again to see it in the plan, and to let "
            "--prune delete what is in it.",
        )


def _allowed_for_nothing(
    changes: Sequence[Change], named: Mapping[str, str]
) -> Iterator[Diagnostic]:
    touched = {address for change in changes for address in addresses_of(change)}
    idle = sorted(given for folded, given in named.items() if folded not in touched)
    if idle:
        yield warning(
            "PLAN-BREAK-GLASS-UNUSED",
            "--break-glass names what this plan does not touch",
            f"Nothing is planned for {_listed(idle)}. Correct the name, or leave the flag out.",
        )


def second_objects(
    changes: Sequence[Change], kept: Sequence[ObservedObject], tree: str
) -> Iterator[Diagnostic]:
    """Yield creates beside an object that stays, is declared nowhere, and has the same content.

    That is what a rename without ``metadata.id`` looks like. Each held object is named once. What
    another tree owns is left out: that tree declares it.
    """
    places: dict[tuple[Kind, ResourceRef | None], HeldAlike] = {}
    for held in sorted(kept, key=lambda each: (each.ref.key, each.id)):
        if KINDS[held.ref.kind].renamable and not other_owner(held, tree):
            places.setdefault((held.ref.kind, owner_of(held.ref.key)), HeldAlike()).add(held)
    for change in changes if places else ():
        if not isinstance(change, Create):
            continue
        resource = change.resource
        beside = places.get((resource.ref.kind, owner_of(resource.ref.key)))
        twin = beside.take(resource) if beside is not None else None
        if twin is not None:
            yield _second_object(resource, twin)


def _second_object(resource: Resource, twin: ObservedObject) -> Diagnostic:
    is_application = twin.ref.kind is Kind.OIDC_APPLICATION
    return warning(
        "PLAN-SECOND-OBJECT",
        "a second object of the same content would be created",
        f"The service holds {twin.ref} with the same content, and no manifest declares it. "
        f"{resource.ref} will be a second object with a new "
        f"{'client id' if is_application else 'id'}. To rename the one that is held instead, "
        f'write in its manifest: metadata.id: "{twin.id}"',
        resource.source.place("metadata", "name"),
        resource.ref,
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def unidentified(observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield a warning where the service does not tell its id."""
    if observed.unidentified:
        yield warning(
            NOT_IDENTIFIED,
            "the service does not tell its id",
            f"{observed.unidentified} The id {observed.instance} is made of the address instead: "
            "under another address, or once the service tells its id, plan files do not fit, and "
            "journals and locks of this one are not found. Which project is of its own console is "
            f"not known, so no application is deleted. {LET_THROUGH}.",
        )
