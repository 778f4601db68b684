"""An OIDC application: what is refused, its client secret, and the origins it may call from."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from urllib.parse import urlsplit

from reconciler.kinds.oidc_application.compliance import has_client_secret, oidc_problems
from reconciler.resources.fields import Spec
from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import invalid

# Sentences of our own: those of the check itself quote what was sent.
_RULES = {
    "responseTypes": "no grant type covers this response type",
    "additionalOrigins": "must be scheme, host and port only, such as https://app.example.com",
}
LENGTH = 64  # characters of a client secret
ALPHABET = string.ascii_letters + string.digits

# Bytes below the greatest multiple of 62 pick a letter, the others are thrown away: so every
# letter is equally likely.
_USABLE = 256 - 256 % len(ALPHABET)
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_THROWN_AWAY = bytes(range(_USABLE, 256))


def check_spec(spec: Spec) -> None:
    """Accept a configuration that OIDC knows how to carry out (wire facts 2.2, domain check).

    Raises:
        Refusal: it does not; the first problem is named.
    """
    for problem in oidc_problems(spec):
        raise invalid(f"{problem.field}[{problem.position}]", _RULES[problem.field])


def ends_secret(before: Spec, after: Spec) -> bool:
    """Return whether an update moves to a sign-in method without a client secret."""
    method = "authMethodType"
    return before[method] != after[method] and not has_client_secret(after)


def make_secret(random_bytes: Callable[[int], bytes]) -> Secret:
    """Return a new secret: 64 letters and digits, 381 random bits."""
    letters = b""
    while len(letters) < LENGTH:
        letters += random_bytes(LENGTH + 16).translate(_LETTERS, _THROWN_AWAY)
    return Secret(letters[:LENGTH].decode("ascii"))


def hash_of(secret: Secret) -> str:
    """Return what is kept of a secret. It is random, so a fast hash is the right one."""
    return sha256(secret.reveal().encode("ascii")).hexdigest()


def allowed_origins(spec: Spec) -> list[str]:
    """Return the origins an application may call from: of its redirect URIs, then the others."""
    origins = [*_origins(spec["redirectUris"]), *spec["additionalOrigins"]]
    return list(dict.fromkeys(origins))


def _origins(uris: Sequence[str]) -> Iterator[str]:
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        if parts.netloc:
            yield f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
