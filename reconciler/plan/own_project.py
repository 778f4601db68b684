"""The project of a service's own console, which no run deletes anything of.

A ZITADEL signs its console in with an application of an ordinary project, and tells which project
that is together with its own id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.plan.model import Change, Delete
from reconciler.resources.ref import Kind
from reconciler.state import ObservedState

LET_THROUGH = "Let GET /management/v1/iam through to the service"


def unidentified(observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield a warning where the service does not tell its id."""
    if observed.unidentified:
        yield warning(
            "SERVICE-NOT-IDENTIFIED",
            "the service does not tell its id",
            f"{observed.unidentified} The id {observed.instance} is made of the address instead: "
            "under another address, plan files do not fit, and journals and locks of this one are "
            "not found. Which project is of its own console is not known, so no application is "
            f"deleted. {LET_THROUGH}.",
        )


def unsure_deletes(changes: Sequence[Change], observed: ObservedState) -> Iterator[Diagnostic]:
    """Yield why no application is deleted while the project of the console is not known."""
    deleted = [change.held.ref for change in changes if isinstance(change, Delete)]
    applications = [ref for ref in deleted if ref.kind is Kind.OIDC_APPLICATION]
    if observed.unidentified and applications:
        yield error(
            "GUARD-OWN-PROJECT",
            "applications would be deleted, and one may be that of the service's own console",
            f"The service does not tell which project is its own, so {applications[0]} may be of "
            f"it. {LET_THROUGH}, or leave out the flag that deletes.",
            ref=applications[0],
        )
