"""Client secrets in a plan: those that the service owes, and those to be replaced.

The service keeps a secret it made until its delivery is acknowledged. What it keeps for this tree
is delivered by the next apply; what it keeps for other trees is counted and left to them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence

from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import UsageError
from reconciler.plan.model import Scope, signs_in_with_secret
from reconciler.resources.ref import ResourceRef
from reconciler.state import DesiredState, ObservedState, OwedSecret


def owed_to(scope: Scope, observed: ObservedState) -> tuple[OwedSecret, ...]:
    """Return the secrets owed to a tree, or to the organizations of its shard, by their refs."""
    found = [secret for secret in observed.owed if is_owed_to(scope, secret)]
    return tuple(sorted(found, key=lambda secret: (secret.ref.key, secret.id)))


def is_owed_to(scope: Scope, secret: OwedSecret) -> bool:
    """Return whether a secret is for this tree, and in an organization of its shard."""
    return secret.tree == scope.tree and _is_in_shard(scope, secret.ref.organization)


def owed_elsewhere(scope: Scope, observed: ObservedState) -> int:
    """Return how many secrets the service keeps for other trees."""
    return sum(secret.tree != scope.tree and not secret.lost for secret in observed.owed)


def owed_left(desired: DesiredState, scope: Scope, observed: ObservedState) -> int:
    """Return how many secrets are owed to a tree in organizations that it no longer names.

    Part of a tree says nothing about what the whole of it names.
    """
    if not desired.whole:
        return 0
    return sum(
        counts.get(scope.tree, 0)
        for name, counts in observed.owed_left.items()
        if _is_in_shard(scope, name)
    )


def lost_secrets(owed: Sequence[OwedSecret]) -> Iterator[Diagnostic]:
    """Yield a warning about each secret that the service no longer keeps."""
    for secret in owed:
        if secret.lost:
            yield warning(
                "SECRET-LOST",
                "the service no longer keeps a secret that was never delivered",
                f"The client secret of {secret.ref}, made at {secret.since}, was kept for its "
                f"whole time and is gone. If no deployment has it, make a new one: "
                f"reconciler apply --rotate-missing {shlex.quote(secret.ref.address)}",
                ref=secret.ref,
            )


def to_rotate(desired: DesiredState, scope: Scope) -> Collection[ResourceRef]:
    """Return the keys of the declared applications whose secret is to be replaced.

    An application of another shard is left to that shard.

    Raises:
        UsageError: a name is that of no declared application with a client secret.
    """
    if not scope.rotate_missing:
        return frozenset()  # the usual plan does not look through everything declared
    known = {key for key, resource in desired.resources.items() if signs_in_with_secret(resource)}
    named = [key for key in scope.rotate_missing if _is_in_shard(scope, key.organization)]
    for key in named:
        if key not in known:
            raise UsageError(
                f"--rotate-missing {key.path} is not a declared application with a client secret",
                remedy="Write organization/project/name of an application that is declared with "
                "authMethodType BASIC or POST. Nothing was written.",
            )
    return frozenset(named)


def _is_in_shard(scope: Scope, organization: str) -> bool:
    return scope.shard is None or scope.shard.holds(organization)
