"""States of objects beside a plan: which are inactive, and which can be made so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from reconciler.diagnostics import Diagnostic, error
from reconciler.resources.ref import ResourceRef
from reconciler.state import ObservedObject, ObservedState, Resource

Pairs = Sequence[tuple[Resource, ObservedObject | None]]


def left_inactive(pairs: Pairs, kept: Sequence[ObservedObject]) -> tuple[ResourceRef, ...]:
    """Return the inactive objects whose state no manifest says, in order: they stay so.

    Args:
        pairs: Every declared resource with the object it is, or None.
        kept: Objects that are declared nowhere and stay.
    """
    unsaid = (held for resource, held in pairs if held is not None and resource.active is None)
    return tuple(sorted(held.ref for held in chain(unsaid, kept) if not held.active))


def not_deactivatable(pairs: Pairs, observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield an error for each resource that the service has no call to deactivate."""
    for resource, held in pairs:
        if resource.active is not False or (held is not None and not held.active):
            continue
        kind = resource.ref.kind
        is_able = kind not in observed.only_active if held is None else held.can_be_inactive
        if not is_able:
            yield error(
                "PLAN-NOT-DEACTIVATABLE",
                "the service cannot deactivate the object",
                f"{_OLD if observed.keeps_history else _FAMILY} Leave metadata.active out, or "
                f"remove {resource.ref} instead.",
                resource.source.place("metadata", "active"),
                resource.ref,
            )


_OLD = "The service is older than this tool and has no call for it: upgrade it."
_FAMILY = (
    "This ZITADEL has no call that deactivates an identity provider of its present calls: only one "
    "that an old call made can be deactivated."
)
