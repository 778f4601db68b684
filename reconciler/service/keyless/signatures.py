"""Signed tokens (JWT): reading them strictly, and checking signature, service and times.

A token is read before anything about it is known, so that its issuer can be looked up. Nothing of
it counts until its signature was checked. The algorithm must be on our list and fit the type of the
key, so that no key is ever used for something else than it was made for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import import_key

from reconciler.resources.strict_json import read_object
from reconciler.service.domain.trust import octets

MAX_TOKEN = 16 * 1024  # characters
SKEW = 60  # seconds by which the clocks of issuer and service may differ
LATEST = 1 << 40  # seconds; a later time is invalid
LONGEST_ASSERTION = 3600  # seconds that a machine's own statement may count
# Type and curve of the keys of each algorithm.
_RSA, _P256, _P384 = ("RSA", ""), ("EC", "P-256"), ("EC", "P-384")
ALGORITHMS: Mapping[str, tuple[str, str]] = {
    "RS256": _RSA,
    "RS384": _RSA,
    "RS512": _RSA,
    "PS256": _RSA,
    "ES256": _P256,
    "ES384": _P384,
}
OF_MACHINES = frozenset({"RS256", "ES256"})
_PART = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class SignedTokenError(Exception):
    """A signed token is refused. The reason is for the log of the operator, never for a caller."""


@dataclass(frozen=True, slots=True)
class SignedToken:
    """A signed token as it was read. Nothing in it counts before ``check_signature``.

    Attributes:
        digest: Of what is signed: the same for every way to write the same token.
    """

    text: str = field(repr=False)
    algorithm: str
    key_id: str
    claims: Mapping[str, Any]
    digest: str

    @property
    def issuer(self) -> str:
        """Return the issuer that it names; empty for none, and for what no rule could name."""
        issuer = self.claims.get("iss")
        is_text = isinstance(issuer, str) and issuer.isascii() and issuer.isprintable()
        return str(issuer) if is_text else ""


def read_signed(text: str, algorithms: Collection[str] = ALGORITHMS) -> SignedToken:
    """Return the token in a text.

    Raises:
        SignedTokenError: the text is not a signed token, or its algorithm is not accepted.
    """
    parts = text.split(".")
    if len(text) > MAX_TOKEN or len(parts) != 3 or not all(map(_PART.fullmatch, parts)):
        raise SignedTokenError("it is not a signed token in three parts")
    header, claims = _read(parts[0], "header"), _read(parts[1], "claims")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in algorithms:
        raise SignedTokenError(f"its algorithm {algorithm!r:.40} is not accepted")
    if not isinstance(key_id, str) or not key_id:
        raise SignedTokenError("its header names no key (kid)")
    if {"crit", "b64"} & header.keys():
        raise SignedTokenError("its header asks for extensions (crit)")
    signed = ".".join(parts[:2])
    return SignedToken(text, algorithm, key_id, claims, sha256(signed.encode()).hexdigest())


def _read(part: str, name: str) -> Mapping[str, Any]:
    try:
        return read_object(octets(part), fractions=True)
    except ValueError:
        raise SignedTokenError(f"its {name} cannot be read") from None


def check_signature(token: SignedToken, keys: Mapping[str, Mapping[str, Any]]) -> None:
    """Accept the signature of a token by the key that its header names.

    Raises:
        SignedTokenError: there is no such key, it is of another kind, or it did not sign this.
    """
    key = keys.get(token.key_id)
    if key is None:
        raise SignedTokenError(f"its key {token.key_id!r:.60} is not one of the issuer's")
    if (key.get("kty"), key.get("crv", "")) != ALGORITHMS[token.algorithm]:
        raise SignedTokenError(f"its key is not of the type that {token.algorithm} needs")
    if key.get("alg", token.algorithm) != token.algorithm:
        raise SignedTokenError("its key is for another algorithm")
    registry = jws.JWSRegistry(algorithms=[token.algorithm], strict_check_header=False)
    try:
        jws.deserialize_compact(token.text, import_key(dict(key)), registry=registry)
    except (JoseError, ValueError):
        raise SignedTokenError("its signature is wrong") from None


def wrong_times(token: SignedToken, now: int, *, names: Collection[str]) -> str:
    """Return why the times of a token do not fit a time in seconds; empty where they fit.

    ``names`` are those that it must have.
    """
    for name in ("exp", "iat", "nbf"):
        value = token.claims.get(name)
        if value is None and name not in names:
            continue
        if type(value) is not int or not 0 <= value < LATEST:
            return f"its {name} is missing or invalid"
        if name == "exp" and value <= now - SKEW:
            return f"it has ended (exp {value}, now {now})"
        if name != "exp" and value > now + SKEW:
            return f"it has not begun ({name} {value}, now {now})"
    return ""


def wrong_service(token: SignedToken, origin: str) -> str:
    """Return why a token is not for one service alone: any other could use it there; or nothing."""
    meant_for = token.claims.get("aud")
    is_right = meant_for in (origin, [origin])
    return "" if is_right else f"its aud {meant_for!r:.200} is not {origin} alone"
