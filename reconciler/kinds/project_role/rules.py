"""The rules of the roles of projects: what users lose with one, and keys that a ZITADEL refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from reconciler.diagnostics import Diagnostic, error, listed, warning
from reconciler.resources.ref import PROJECT_ROLE, ResourceRef, fold
from reconciler.rules.form import KindRules, Planned, break_glass, place_of
from reconciler.rules.risks import Removal
from reconciler.state import DesiredState, ObservedState


def _removed(planned: Planned, _: ObservedState, named: Collection[str]) -> Iterator[Diagnostic]:
    """Yield roles that are deleted: a new one of the same key has no grants."""
    for held in planned.deleted:
        if held.ref.folded not in named:
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
    guards=_removed,
    advice=_same_but_for_case,
)
