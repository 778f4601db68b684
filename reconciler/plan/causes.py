"""Why a change is in a plan: somebody declared it, or somebody changed the service.

The service keeps with every event which tree wrote it. Where the last event of an object is of
this tree, the service holds what was applied, and the manifests have changed since; where it is
not, the service has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.plan.model import Change, Create, Delete, Update
from reconciler.state import ObservedObject


class CauseKind(StrEnum):
    """What made a change necessary."""

    NOT_HELD = "not_held"
    DECLARED = "declared"
    SERVICE = "changed_on_service"
    NEVER_APPLIED = "never_applied"
    UNDECLARED = "no_longer_declared"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a change is there.

    Attributes:
        by: Name of the token behind the object's last event, where that is the cause.
        at: When, RFC 3339.
        sequence: That of the event.
        tree: The other tree that applied it, if one did.
    """

    kind: CauseKind
    by: str = ""
    at: str = ""
    sequence: int = 0
    tree: str = ""


def cause_of(change: Change, tree: str) -> Cause:
    """Return why a change of a tree's plan is there."""
    if isinstance(change, Create):
        return Cause(CauseKind.NOT_HELD)
    held = change.held
    if not held.changed_by:
        return Cause(CauseKind.UNKNOWN)
    if tree not in held.trees:
        return Cause(CauseKind.NEVER_APPLIED)
    if isinstance(change, Update) and held.changed_in != tree:
        return last_change(held)
    return Cause(CauseKind.UNDECLARED if isinstance(change, Delete) else CauseKind.DECLARED)


def last_change(held: ObservedObject) -> Cause:
    """Return the object's last event as a cause."""
    return Cause(
        CauseKind.SERVICE, held.changed_by, held.changed_at, held.sequence, held.changed_in
    )


def cause_in_words(cause: Cause) -> str:
    """Return a cause as half a sentence; empty where there is nothing to say."""
    match cause.kind:
        case CauseKind.DECLARED:
            return "declared differently since it was last applied"
        case CauseKind.SERVICE:
            tree = f" for tree {cause.tree}" if cause.tree else ""
            return (
                f"changed on the service since, by {cause.by}{tree} at {cause.at} "
                f"(sequence {cause.sequence})"
            )
        case CauseKind.NEVER_APPLIED:
            return "never applied by this tree"
        case CauseKind.UNDECLARED:
            return "no longer declared"
        case _:
            return ""
