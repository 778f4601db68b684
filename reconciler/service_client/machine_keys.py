"""Keys of machines: making them, and signing with them.

The standard library has no RSA and no elliptic curves. ``joserfc`` has them, by ``cryptography``,
and both are an extra (``key-file``), because most who use a token never need it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from reconciler.resources.secret import Secret

RSA_BITS = 2048


class NewKey(NamedTuple):
    """A new key.

    Attributes:
        id: Names it among the keys of its machine.
        private: In PEM.
        public: Key set with its public half, as JSON.
    """

    id: str
    private: Secret
    public: str


def make_key(algorithm: str) -> NewKey:
    """Return a new key for RS256 or ES256."""
    is_elliptic = algorithm == "ES256"
    key = ECKey.generate_key("P-256") if is_elliptic else RSAKey.generate_key(RSA_BITS)
    # In the form that ZITADEL has in its key files.
    pem = load_pem_private_key(key.as_pem(private=True), password=None).private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    )
    made = str(secrets.randbits(63))
    public = {"kid": made, "use": "sig", "alg": algorithm, **key.as_dict(private=False)}
    return NewKey(made, Secret(pem.decode()), json.dumps({"keys": [public]}))


def signed(private: Secret, key_id: str, claims: Mapping[str, Any]) -> str | None:
    """Return claims signed by a key in PEM, as a JWT.

    None where the key cannot be read, or cannot sign for a service.
    """
    key = _read(private)
    if key is None or (isinstance(key, ECKey) and key.curve_name != "P-256"):
        return None
    algorithm = "RS256" if isinstance(key, RSAKey) else "ES256"
    return jwt.encode({"alg": algorithm, "typ": "JWT", "kid": key_id}, dict(claims), key)


def _read(private: Secret) -> RSAKey | ECKey | None:
    # No password: the key file holds the key in the clear, which is why its mode is checked.
    for kind in (RSAKey, ECKey):
        try:
            return kind.import_key(private.reveal())
        except (ValueError, TypeError, JoseError):
            continue
    return None
