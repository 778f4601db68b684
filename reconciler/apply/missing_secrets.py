"""The sink as a witness: which declared applications have their client secret in it.

A service that keeps no secrets cannot be asked what was delivered. The sink can, if it is of a
kind that tells. Nothing is made or replaced here: what is missing is reported.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

from reconciler.apply.outcome import Outcome, Status
from reconciler.apply.sink import Application, SecretSink
from reconciler.diagnostics import Diagnostic, error, warning
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    held_of,
    makes_secret,
    ref_of,
    signs_in_with_secret,
)
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import Written
from reconciler.state import ObservedState


def missing_secrets(
    applications: Sequence[Application], made: Collection[str], sink: SecretSink, *, required: bool
) -> Iterator[Diagnostic]:
    """Yield a finding about each application whose secret is not in the sink.

    It is an error where this run made the secret (``made`` are client ids), or where all of them
    are required; otherwise a warning, as the secret may be kept in another place.
    """
    answers = sink.held(applications)
    for application, is_held in zip(applications, answers, strict=True):
        if is_held is False:
            is_error = required or application.client_id in made
            yield not_in_sink(application.ref, is_error=is_error)
    unknown = sum(is_held is None for is_held in answers)
    if unknown and required:
        yield error(
            "SECRET-SINK-CANNOT-TELL",
            "the sink cannot tell which secrets it holds",
            f"--require-secrets asks for {unknown} of them. Use a sink that can tell, or leave "
            "the flag out.",
        )


def unanswered_secrets(
    changes: Sequence[Change], results: Sequence[object], sink: SecretSink | None
) -> Iterator[Diagnostic]:
    """Yield an error about each created application whose secret the service did not answer.

    That is so where an answer was lost and the service keeps none: the object was found, and no
    new secret is made for what another run may have made and delivered to the same sink.
    """
    for change, result in zip(changes, results, strict=True):
        if not isinstance(change, Create) or not makes_secret(change):
            continue
        if not isinstance(result, Written) or result.client_secret is not None:
            continue
        if sink is None or not sink.held([Application(ref_of(change), result.client_id)])[0]:
            yield not_in_sink(ref_of(change), is_error=True)


def not_in_sink(ref: ResourceRef, *, is_error: bool) -> Diagnostic:
    """Return the finding that the secret of an application is not in the sink."""
    return (error if is_error else warning)(
        "SECRET-NOT-IN-SINK",
        "the sink does not hold the secret of an application",
        f"{ref} signs in with a secret that is not in this sink. If no deployment has it, make a "
        f"new one: reconciler apply --rotate-missing {shlex.quote(ref.address)}",
        ref=ref,
    )


def declared_applications(
    plan: Plan, observed: ObservedState, outcomes: Sequence[Outcome]
) -> Sequence[Application]:
    """Return the declared applications that sign in with a secret, as they are after a run.

    Objects that share their name are left out.
    """
    shared = {double.ref.key for double in observed.name_clashes}
    found = [
        Application(ref, observed.objects[ref.key].client_id)
        for ref in plan.in_step
        if ref.kind is Kind.OIDC_APPLICATION
        and ref.key not in shared
        and signs_in_with_secret(observed.objects[ref.key])
    ]
    for outcome in outcomes:
        change, is_made = outcome.change, outcome.status is Status.MADE
        held = None if isinstance(change, Delete) else held_of(change)
        if is_made and not isinstance(change, Delete) and signs_in_with_secret(change.resource):
            found.append(Application(ref_of(change), outcome.client_id))
        elif not is_made and held is not None and signs_in_with_secret(held):
            found.append(Application(held.ref, held.client_id))
    return found
