"""The rules of the roles of projects: what users lose with one, and keys that cannot be written."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator

from reconciler.diagnostics import Diagnostic, error, listed, warning
from reconciler.resources.paths import stays_in_place
from reconciler.resources.ref import PROJECT_ROLE, ResourceRef, fold
from reconciler.rules.form import KindRules, Planned, break_glass, place_of
from reconciler.rules.risks import Removal
from reconciler.state import DesiredState, ObservedState


def _guards(planned: Planned, _: ObservedState, named: Collection[str]) -> Iterator[Diagnostic]:
    yield from _rewritten(planned)
    yield from _removed(planned, named)


def _rewritten(planned: Planned) -> Iterator[Diagnostic]:
    """Yield roles that no call names safely, whatever stands before the service.

    A role is created by a body, not by an address. It is stopped all the same: what was made could
    be neither changed nor removed.
    """
    for resource, _ in planned.written:
        if not stays_in_place(resource.ref.name):
            yield error(
                "GUARD-ROLE-KEY",
                _ANOTHER_ADDRESS,
                f"Choose another key than {resource.ref.name!r}: {_NO_STEPS}",
                resource.source.place("metadata", "name"),
                ref=resource.ref,
            )
    for held in planned.deleted:
        if not stays_in_place(held.ref.name):
            yield error(
                "GUARD-ROLE-KEY",
                _ANOTHER_ADDRESS,
                f"Remove {held.ref} in the console of the service. To keep it, declare it as it is "
                f"held: reconciler export {shlex.quote(held.ref.address)}.",
                ref=held.ref,
            )


_ANOTHER_ADDRESS = (
    "a proxy before the service could send a request for this role to another address"
)
_NO_STEPS = "one without an empty part, . or .. between slashes, also where they are escaped."


def _removed(planned: Planned, named: Collection[str]) -> Iterator[Diagnostic]:
    """Yield roles that are deleted: a new one of the same key has no grants."""
    for held in planned.deleted:
        if held.ref.folded not in named and stays_in_place(held.ref.name):
            yield error(
                "GUARD-ROLE-REMOVED",
                "a role would be deleted, and users would lose it",
                f"With {held.ref}, every user and organization that it was granted to loses it, "
                f"and making it again restores no grant. {break_glass(held.ref)}",
                ref=held.ref,
            )


def _same_but_for_case(
    planned: Planned, desired: DesiredState, observed: ObservedState
) -> Iterator[Diagnostic]:
    """Yield new roles that a ZITADEL refuses: its unique constraints ignore case."""
    made = [resource for resource, held in planned.written if held is None]
    if observed.keeps_history or not made:
        return
    keys = {ref for ref in (*desired.resources, *observed.objects) if ref.kind is PROJECT_ROLE}
    counts = Counter(map(_folded, keys))
    clashing = [each for each in made if counts[_folded(each.ref.key)] > 1]
    if clashing:
        yield warning(
            "PLAN-ROLE-CASE",
            "ZITADEL refuses a role whose key differs from that of another only in case",
            "Choose another key, or remove the other role first: "
            f"{listed(clashing, named=place_of)}",
            clashing[0].source.place("metadata", "name"),
        )


def _folded(key: ResourceRef) -> ResourceRef:
    return key._replace(name=fold(key.name))


RULES = KindRules(
    removal=Removal(
        "role-removed", 910, "users lose it: their grants of the role are removed with it"
    ),
    guards=_guards,
    advice=_same_but_for_case,
)
