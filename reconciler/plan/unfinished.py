"""Leave out of the guards what an interrupted create still has to write.

An object that is declared inactive is made, then deactivated. A run that is killed in between
leaves it active, and to the next plan its deactivation looks like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from reconciler.plan.diff import ACTIVE, field_changes
from reconciler.plan.model import Change, Create, Delete, Pair
from reconciler.resources.fields import Spec
from reconciler.state import holds


def deactivates(pairs: Iterable[Pair]) -> bool:
    """Return whether an active object is declared inactive, as the rest of a create would be."""
    return any(
        resource.active is False and held is not None and held.active for resource, held in pairs
    )


def guarded(changes: Sequence[Change], begun: Mapping[str, Spec], tree: str) -> Sequence[Change]:
    """Return the changes that guards judge: all but the rest of a tree's own creates.

    ``begun`` has the specs of the inactive objects that an interrupted run was about to make, by
    the id of the object.
    """
    return [change for change in changes if not _is_rest(change, begun, tree)] if begun else changes


def _is_rest(change: Change, begun: Mapping[str, Spec], tree: str) -> bool:
    if isinstance(change, Create | Delete) or change.resource.active is not False:
        return False
    held = change.held
    spec = begun.get(held.id)
    # The object is as it was made, and nothing but its state is left to write. A service that does
    # not tell owners has None.
    is_as_made = spec is not None and holds(held, spec) and held.owner in {None, tree}
    return is_as_made and [each.name for each in field_changes(change)] == [ACTIVE]
