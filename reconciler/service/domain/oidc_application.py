"""An OIDC application: its secret, what is refused, its events, and what they make of it."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar
from urllib.parse import urlsplit

from reconciler.resources.oidc import has_client_secret, oidc_problems
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.held import Held, ImpossibleHistoryError, Removed, State, Unborn
from reconciler.service.domain.refusal import invalid


@dataclass(frozen=True, slots=True)
class AppOidcAdded:
    """An application came into being in a project. Of its secret only the hash is kept."""

    TYPE: ClassVar[str] = "app.oidc.added"
    name: str
    project: str
    client_id: str
    secret_hash: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AppRenamed:
    """It was given another name."""

    TYPE: ClassVar[str] = "app.renamed"
    name: str


@dataclass(frozen=True, slots=True)
class AppOidcConfigChanged:
    """Its configuration was updated as a whole."""

    TYPE: ClassVar[str] = "app.oidc.config.changed"
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AppOidcSecretChanged:
    """It was given a new client secret; the one before has ended."""

    TYPE: ClassVar[str] = "app.oidc.secret.changed"
    secret_hash: str


@dataclass(frozen=True, slots=True)
class AppOidcSecretClaimed:
    """An owed secret was answered again. It stands beside the application's own events.

    Attributes:
        application: Its id.
        made_at: Sequence of the event that made the secret, as text.
    """

    TYPE: ClassVar[str] = "app.oidc.secret.claimed"
    application: str
    made_at: str


@dataclass(frozen=True, slots=True)
class AppRemoved:
    """It is no more."""

    TYPE: ClassVar[str] = "app.removed"


AppEvent = AppOidcAdded | AppRenamed | AppOidcConfigChanged | AppOidcSecretChanged | AppRemoved


def check_spec(spec: Mapping[str, Any]) -> None:
    """Accept a configuration that OIDC knows how to carry out (wire facts 2.2, domain check).

    Raises:
        Refusal: it does not; the first problem is named.
    """
    for problem in oidc_problems(spec):
        raise invalid(f"{problem.field}[{problem.position}]", _RULES[problem.field])


# Sentences of our own: those of the check itself quote what was sent.
_RULES = {
    "responseTypes": "no grant type covers this response type",
    "additionalOrigins": "must be scheme, host and port only, such as https://app.example.com",
}


def rename(held: Held, name: str) -> tuple[AppEvent, ...]:
    """Decide what another name means; the same one is no event."""
    return () if held.name == name else (AppRenamed(name),)


def change_config(held: Held, spec: Mapping[str, Any]) -> tuple[AppEvent, ...]:
    """Decide what another configuration means; one that changes nothing is no event."""
    check_spec(spec)
    return () if held.spec == spec else (AppOidcConfigChanged(spec),)


def _ends_secret(held: Held, spec: Mapping[str, Any]) -> bool:
    """Return whether a new configuration moves to a sign-in method without a client secret."""
    method = "authMethodType"
    return held.spec[method] != spec[method] and not has_client_secret(spec)


def evolve(state: State, event: AppEvent) -> State:
    """Return the application as it is after one more event."""
    match event, state:
        case AppOidcAdded(), Unborn(app_id, owner):
            return Held(
                Kind.OIDC_APPLICATION, app_id, owner, event.project, event.name, event.spec,
                event.client_id, event.secret_hash,
            )  # fmt: skip
        case AppRenamed(name), Held():
            return replace(state, name=name)
        case AppOidcConfigChanged(spec), Held():
            return replace(
                state, spec=spec, secret_hash="" if _ends_secret(state, spec) else state.secret_hash
            )
        case AppOidcSecretChanged(secret_hash), Held():
            return replace(state, secret_hash=secret_hash)
        case AppRemoved(), Held():
            return Removed(state.id, state.organization)
        case _:
            raise ImpossibleHistoryError(event, state)


def allowed_origins(spec: Mapping[str, Any]) -> list[str]:
    """Return the origins an application may call from: of its redirect URIs, then the others."""
    origins = [*_origins(spec["redirectUris"]), *spec["additionalOrigins"]]
    return list(dict.fromkeys(origins))


def _origins(uris: list[str]) -> Iterator[str]:
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        if parts.netloc:
            yield f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


LENGTH = 64
ALPHABET = string.ascii_letters + string.digits

# Bytes below the greatest multiple of 62 pick a letter, the others are thrown away: so every
# letter is equally likely.
_USABLE = 256 - 256 % len(ALPHABET)
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_THROWN_AWAY = bytes(range(_USABLE, 256))


def make_secret(random_bytes: Callable[[int], bytes]) -> Secret:
    """Return a new secret: 64 letters and digits, 381 random bits."""
    letters = b""
    while len(letters) < LENGTH:
        letters += random_bytes(LENGTH + 16).translate(_LETTERS, _THROWN_AWAY)
    return Secret(letters[:LENGTH].decode("ascii"))


def hash_of(secret: Secret) -> str:
    """Return what is kept of a secret. It is random, so a fast hash is the right one."""
    return sha256(secret.reveal().encode("ascii")).hexdigest()
