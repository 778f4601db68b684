"""The meaning of refusals on the wire to the reconciler, in one table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    InvalidArgumentError,
    LockHeldError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.resources.ref import ResourceRef
from reconciler.service_client.replies import error_id
from reconciler.service_client.wire import NO_ANSWER, WireRefusal

ABORTED = 10  # of the codes of gRPC
AGAIN = "Run the command again; what was done is not repeated."

# gRPC code: what to raise, and what its reader can do.
_MEANINGS: Mapping[int, tuple[type[ServiceError], str]] = {
    3: (
        InvalidArgumentError,
        "Correct the manifest. Where `validate` accepts it, the service is the stricter one.",
    ),
    5: (ObjectNotFoundError, "It was removed in the meantime, or is not visible to this token."),
    6: (
        AlreadyExistsError,
        "Another object has the name. Run `reconciler plan` again to see it.",
    ),
    7: (AccessDeniedError, "Use a token whose role allows this in the organization."),
    8: (ServiceUnavailableError, AGAIN),
    9: (
        PreconditionFailedError,
        "It was changed after it was planned. Run `reconciler plan` again and review.",
    ),
    10: (ServiceUnavailableError, AGAIN),
    14: (ServiceUnavailableError, AGAIN),
    16: (AccessDeniedError, "Give a valid token in RECONCILER_TOKEN or with --token-file."),
}

_MAKE_ANOTHER = (
    "Make a new one with `reconciler token create`, then give it in RECONCILER_TOKEN or with "
    "--token-file."
)

# Reasons that say more than the code does: first those of our own service, then ZITADEL's.
_BY_ID: Mapping[str, tuple[type[ServiceError], str]] = {
    "token.expired": (AccessDeniedError, _MAKE_ANOTHER),
    "token.revoked": (AccessDeniedError, _MAKE_ANOTHER),
    "AUTHZ-cdgFk": (
        AccessDeniedError,
        "Make the user of this token a member of the organization.",
    ),
}


def no_custody() -> ServiceError:
    """Return the refusal of a service that keeps no secrets."""
    return ServiceError(
        "the service keeps no client secrets until they are delivered",
        remedy="Make a new secret: reconciler apply --rotate-missing REF.",
    )


def lease_lost() -> LockHeldError:
    """Return the refusal of a call under a lease that does not count any more."""
    return LockHeldError(
        "another run has taken the lock of the organization, or it ran out",
        remedy=AGAIN,
    )


def not_claimed(message: str, ref: ResourceRef) -> ServiceError:
    """Return why an owed secret was not answered again, and what replaces it."""
    return ServiceError(
        f"the service refused: {message}",
        remedy="Run `reconciler plan` again. If the secret is owed still, make a new one: "
        f"reconciler apply --rotate-missing {shlex.quote(ref.address)}",
    )


def service_error(refusal: WireRefusal) -> ServiceError:
    """Return the error that a refusal is, in words for the reader.

    Where the call may have been carried out all the same, it is none that says otherwise.
    """
    kind, remedy = _MEANINGS.get(refusal.code, (ServiceError, AGAIN))
    kind, remedy = _BY_ID.get(error_id(refusal), (kind, remedy))
    if refusal.unsure or refusal.code == NO_ANSWER:
        kind, remedy = ServiceUnavailableError, AGAIN
    who = "" if refusal.code == NO_ANSWER else "the service refused: "
    return kind(f"{who}{refusal.message}", remedy=refusal.remedy or remedy)
