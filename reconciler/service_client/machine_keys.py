"""Keys of machines: making them, and signing with them.

The standard library has no RSA and no elliptic curves. ``cryptography`` has them, and is an extra
(``key-file``), because most who use a token never need it.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from reconciler.resources.secret import Secret

RSA_BITS = 2048
COORDINATE = 32  # bytes, on P-256
PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


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
    key: PrivateKey
    if algorithm == "ES256":
        key = ec.generate_private_key(ec.SECP256R1())
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,  # as ZITADEL has it in its key files
        serialization.NoEncryption(),
    )
    made = str(secrets.randbits(63))
    public = {"kid": made, "use": "sig", "alg": algorithm, **_members(key)}
    return NewKey(made, Secret(pem.decode()), json.dumps({"keys": [public]}))


def _members(key: PrivateKey) -> Mapping[str, str]:
    if isinstance(key, rsa.RSAPrivateKey):
        numbers = key.public_key().public_numbers()
        size = (numbers.n.bit_length() + 7) // 8
        return {"kty": "RSA", "n": _number(numbers.n, size), "e": _number(numbers.e, 3)}
    point = key.public_key().public_numbers()
    x, y = _number(point.x, COORDINATE), _number(point.y, COORDINATE)
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y}


def _number(number: int, size: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(size, "big")).decode().rstrip("=")


def load_key(private: Secret) -> PrivateKey | None:
    """Return a key in PEM; None where it cannot be read, or cannot sign for a service."""
    try:
        # No password: the key file holds the key in the clear, which is why its mode is checked.
        key = serialization.load_pem_private_key(private.reveal().encode(), password=None)
    except (ValueError, TypeError):
        return None
    if isinstance(key, rsa.RSAPrivateKey):
        return key
    is_ours = isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1)
    return key if is_ours and isinstance(key, ec.EllipticCurvePrivateKey) else None


def algorithm_of(key: PrivateKey) -> str:
    """Return the algorithm that a key signs with, by its name in JWT."""
    return "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"


def sign(key: PrivateKey, content: bytes) -> bytes:
    """Return the signature of a content, as JWT has it."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    r, s = decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(COORDINATE, "big") + s.to_bytes(COORDINATE, "big")
