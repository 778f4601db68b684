"""Problems that the service will report of a change, as far as they are known before."""

from __future__ import annotations

from reconciler.plan.model import Change, Delete
from reconciler.resources.compliance import compliance_problems
from reconciler.resources.ref import Kind


def foreseen_problems(change: Change) -> tuple[str, ...]:
    """Return the compliance keys that the service will report for an application."""
    if isinstance(change, Delete) or change.resource.ref.kind is not Kind.OIDC_APPLICATION:
        return ()
    return compliance_problems(change.resource.spec)
