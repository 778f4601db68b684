"""Signed tokens (JWT) of tests, right ones and forged ones, and the keys that sign them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from reconciler.resources.secret import Secret
from reconciler.service_client.machine_keys import NewKey, make_key

GITHUB = "https://token.actions.githubusercontent.com"
GITLAB = "https://gitlab.com"
ORIGIN = "https://id.example.com"
RULE = {
    "repository_id": "1001",
    "repository_owner_id": "77",
    "ref": "refs/heads/main",
    "job_workflow_ref": "acme/identity/.github/workflows/apply.yml@refs/heads/main",
    "event_name": "push",
    "environment": "production",
}
"""Claims of a job of GitHub that a rule for its applies asks for."""


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def load_key(private: Secret) -> rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(private.reveal().encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey)
    return key


def signature_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, content: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    r, s = decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def part(fields: object) -> str:
    return encoded(json.dumps(fields).encode())


def joined(*sets: str) -> str:
    """Return one key set of several."""
    return json.dumps({"keys": [key for each in sets for key in json.loads(each)["keys"]]})


def github_claims(now: int, **changes: Any) -> dict[str, Any]:
    """Return the claims of a job's token; a change to None leaves one out."""
    claims = {
        "iss": GITHUB,
        "aud": ORIGIN,
        "sub": "repo:acme/identity:environment:production",
        "iat": now - 5,
        "nbf": now - 5,
        "exp": now + 300,
        "jti": "one",
        "repository": "acme/identity",
        "run_id": "4711",
        "actor": "ada",
        **RULE,
        **changes,
    }
    return {name: value for name, value in claims.items() if value is not None}


@dataclass
class Forge:
    """Signs as an issuer does, and as a forger could."""

    rsa: NewKey = field(default_factory=lambda: make_key("RS256"))
    ec: NewKey = field(default_factory=lambda: make_key("ES256"))
    stranger: NewKey = field(default_factory=lambda: make_key("RS256"))

    @property
    def now(self) -> int:
        return int(time.time())

    @property
    def keys(self) -> str:
        """Return the key set of the issuer."""
        return joined(self.rsa.public, self.ec.public)

    def token(self, **changes: Any) -> str:
        """Return a right token, but for these claims."""
        return self.signed(github_claims(self.now, **changes))

    def signed(
        self, claims: object, key: NewKey | None = None, header: Mapping[str, Any] | None = None
    ) -> str:
        """Return claims signed by a key; a header is changed as claims are."""
        key = key or self.rsa
        private = load_key(key.private)
        algorithm = "RS256" if isinstance(private, rsa.RSAPrivateKey) else "ES256"
        fields = {"alg": algorithm, "kid": key.id, "typ": "JWT", **(header or {})}
        body = f"{part({n: v for n, v in fields.items() if v is not None})}.{part(claims)}"
        return f"{body}.{encoded(signature_of(private, body.encode()))}"

    def unsigned(self, algorithm: str, signature: str = "") -> str:
        header = {"alg": algorithm, "kid": self.rsa.id}
        return f"{part(header)}.{part(github_claims(self.now))}.{signature}"

    def with_hmac(self, secret: bytes, algorithm: str = "HS256") -> str:
        """Return a token whose secret is something that everybody knows, such as a public key."""
        digest = hashlib.sha512 if algorithm == "HS512" else hashlib.sha256
        body = self.unsigned(algorithm).rstrip(".")
        return f"{body}.{encoded(hmac.new(secret, body.encode(), digest).digest())}"

    def with_pss(self, **changes: Any) -> str:
        """Return a right token signed by the same RSA key in another way."""
        private = load_key(self.rsa.private)
        assert isinstance(private, rsa.RSAPrivateKey)
        header = {"alg": "PS256", "kid": self.rsa.id}
        body = f"{part(header)}.{part(github_claims(self.now, **changes))}"
        way = padding.PSS(padding.MGF1(hashes.SHA256()), hashes.SHA256.digest_size)
        return f"{body}.{encoded(private.sign(body.encode(), way, hashes.SHA256()))}"

    def public_pem(self) -> bytes:
        return (
            load_key(self.rsa.private)
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
