"""A service that is not there yet: it holds nothing."""

from __future__ import annotations

from collections.abc import Collection

from reconciler.state import ObservedState


class AbsentService:
    """What a plan is made against before the embedded store exists."""

    def observe(self, organizations: Collection[str]) -> ObservedState:
        """Return nothing, of no instance."""
        return ObservedState(instance="", objects={})
