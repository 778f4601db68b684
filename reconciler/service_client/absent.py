"""A service that is not there yet: it holds nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reconciler.errors import ObjectNotFoundError
from reconciler.state import ObjectEvent, ObservedState, Removal


class AbsentService:
    """An empty service: a plan is made against it before the embedded store exists."""

    def observe(self, organizations: Collection[str]) -> ObservedState:
        """Return nothing, of no instance."""
        return ObservedState(instance="", objects={})

    def organizations(self) -> Sequence[str]:
        """Return no organization."""
        return ()

    def history(self, object_id: str) -> Sequence[ObjectEvent]:
        """Refuse: there is no object of any id."""
        raise ObjectNotFoundError(
            "there is no service yet, and so no history", remedy="Apply something first."
        )

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Return that nothing was removed."""
        return ()
