"""The events of client secrets, which only applications have."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.resources.fields import Spec
from reconciler.service.domain.events import (
    Event,
    Held,
    ImpossibleHistoryError,
    KindEvents,
    OwnEvent,
    Unborn,
)


@dataclass(frozen=True, slots=True)
class SecretChanged(OwnEvent):
    """An application was given a new client secret; the one before has ended."""

    VERB = "secret.changed"
    GIVES_OWNER = False
    secret_hash: str

    def after(self, state: Unborn | Held) -> Held:
        """Return the application with the new secret."""
        if isinstance(state, Unborn):
            raise ImpossibleHistoryError(self, state)
        return replace(state, secret_hash=self.secret_hash)


@dataclass(frozen=True, slots=True)
class SecretClaimed(Event):
    """An owed secret was answered again. It changes nothing, and stands in a stream of its own.

    Attributes:
        application: Its id.
        made_at: Sequence of the event that made the secret, as text.
    """

    VERB = "secret.claimed"
    application: str
    made_at: str


def ends_secret(before: Spec, after: Spec) -> bool:
    """Return whether an update moves to a sign-in method without a client secret."""
    method = "authMethodType"
    return before[method] != after[method] and not has_client_secret(after)


ROW = KindEvents((SecretChanged,), (SecretClaimed,), ends_secret)
