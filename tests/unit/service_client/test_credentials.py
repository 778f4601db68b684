"""Tokens and key files: where they may lie, what they may hold, and how a key becomes a token."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from reconciler.errors import (
    AccessDeniedError,
    LocalFileError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.resources.secret import Secret
from reconciler.service_client.credentials import (
    FixedToken,
    NoToken,
    Response,
    ServiceUserKey,
    ShortToken,
    by_key_file,
    read_key,
    read_private,
    token_of,
)
from reconciler.service_client.endpoint import parse_endpoint
from tests.rows import each_row

HERE = parse_endpoint("https://id.example.com")
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = PRIVATE.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
).decode()


def private_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "file"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("text", ["abc", "abc\n", "abc\r\n", "rct_-._~+/=\n"])
def test_a_token_may_end_with_one_line_break(text: str) -> None:
    """Editors and shells put it there."""
    assert token_of(text, "it").reveal() == text.strip()


@each_row(
    "text", ["", "\n", "a b", "abc\n\n", "\u00e4", "a\0", " geheim", "geheim\r\nb", "x" * 9000]
)
def test_what_cannot_be_a_token_is_refused_and_not_repeated(text: str) -> None:
    """It would break the header it is put into."""
    with pytest.raises(AccessDeniedError) as refused:
        token_of(text, "RECONCILER_TOKEN")

    assert "RECONCILER_TOKEN" in refused.value.problem
    assert "geheim" not in refused.value.problem


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """Who can read it is who we are."""
    with pytest.raises(LocalFileError, match="read by others") as refused:
        read_private(private_file(tmp_path, "abc", mode))

    assert "chmod 600" in refused.value.remedy


def test_a_private_file_is_read(tmp_path: Path) -> None:
    """Read-only is private as well."""
    assert read_private(private_file(tmp_path, "abc\n")) == "abc\n"
    assert read_private(private_file(tmp_path, "", 0o400) if os.getuid() else tmp_path / "file")


def test_what_is_no_plain_small_file_is_refused(tmp_path: Path) -> None:
    """A pipe would keep the run waiting, a folder has no token."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").chmod(0o600)
    large = private_file(tmp_path, "x" * 70_000)
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", tmp_path / "binary", large):
        with pytest.raises(LocalFileError):
            read_private(path)


def test_credentials_show_themselves_to_nobody() -> None:
    """A log line or a traceback may hold them whole."""
    token = FixedToken(Secret("geheim"))

    assert "geheim" not in repr((token, token.token))
    assert not token.renew()
    with pytest.raises(AccessDeniedError, match="needs a token") as refused:
        NoToken().bearer(nobody)
    assert "RECONCILER_TOKEN" in refused.value.remedy
    assert not NoToken().renew()


def nobody(verb: str, url: str, headers: Mapping[str, str], body: bytes | None) -> Response:
    """Find no answer."""
    raise ServiceUnavailableError("it did not answer", remedy="Try again.")


def test_a_key_file_is_read(tmp_path: Path) -> None:
    """As the service makes it, with fields that readers do not need."""
    fields = {"type": "serviceaccount", "keyId": "9", "key": PEM, "userId": "7", "x": 1}

    key = read_key(private_file(tmp_path, json.dumps(fields)))

    assert (key.user, key.id, key.private.reveal()) == ("7", "9", PEM)
    assert "BEGIN" not in repr(key)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"userId": "7"}', '{"userId": 7, "keyId": "9", "key": "k"}',
             '{"userId": "7", "keyId": "9", "key": ""}'],
)  # fmt: skip
def test_what_is_no_key_file_is_refused(tmp_path: Path, text: str) -> None:
    """With what it should be."""
    with pytest.raises(LocalFileError, match="not a key file"):
        read_key(private_file(tmp_path, text))


@dataclass
class Issuer:
    """A service that gives tokens."""

    found: Any = field(
        default_factory=lambda: {
            "issuer": "https://id.example.com",
            "token_endpoint": "https://id.example.com/oauth/v2/token",
        }
    )
    given: Any = field(default_factory=lambda: {"access_token": "t-1", "expires_in": 1000})
    status: int = 200
    asked: list[tuple[str, str, bytes | None]] = field(default_factory=list)

    def __call__(
        self, verb: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self.asked.append((verb, url, body))
        if verb == "GET":
            return Response(200, json.dumps(self.found).encode())
        assert headers == {"content-type": "application/x-www-form-urlencoded"}
        return Response(self.status, json.dumps(self.given).encode())


class Clock:
    """A clock that a test sets."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def user(key: str = PEM) -> ServiceUserKey:
    return ServiceUserKey("7", "9", Secret(key))


def decoded(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_key_signs_who_its_user_is_and_gets_a_token() -> None:
    """The grant of RFC 7523: discovery, then one form with a signed statement."""
    issuer, clock = Issuer(), Clock()

    token = ShortToken(by_key_file(user(), HERE), clock).bearer(issuer)

    assert token.reveal() == "t-1"
    (_, discovery, _), (_, endpoint, body) = issuer.asked
    assert discovery == "https://id.example.com/.well-known/openid-configuration"
    assert endpoint == "https://id.example.com/oauth/v2/token"
    form = parse_qs((body or b"").decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    assert form["scope"] == ["openid urn:zitadel:iam:org:project:id:zitadel:aud"]
    head, claims, signature = form["assertion"][0].split(".")
    assert decoded(head) == {"alg": "RS256", "typ": "JWT", "kid": "9"}
    assert decoded(claims) == {
        "iss": "7", "sub": "7", "aud": "https://id.example.com",
        "iat": 1_800_000_000, "exp": 1_800_003_600,
    }  # fmt: skip
    PRIVATE.public_key().verify(
        base64.urlsafe_b64decode(signature + "=="),
        f"{head}.{claims}".encode(),
        padding.PKCS1v15(),
        hashes.SHA256(),
    )


def test_a_token_is_used_until_shortly_before_it_ends() -> None:
    """A write must not meet a token that has just run out."""
    issuer, clock = Issuer(), Clock()
    credentials = ShortToken(by_key_file(user(), HERE), clock)

    credentials.bearer(issuer)
    clock.now += 800
    credentials.bearer(issuer)
    assert len(issuer.asked) == 2
    clock.now += 50
    issuer.given = {"access_token": "t-2", "expires_in": 1000}
    assert credentials.bearer(issuer).reveal() == "t-2"
    assert len(issuer.asked) == 4


def test_a_token_that_is_refused_is_replaced_once() -> None:
    """A key can have been used on a service that was set up anew."""
    issuer = Issuer()
    credentials = ShortToken(by_key_file(user(), HERE), Clock())

    assert not credentials.renew()
    credentials.bearer(issuer)
    assert credentials.renew()
    credentials.bearer(issuer)
    assert len(issuer.asked) == 4


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example.com/token", "http://id.example.com/token",
     "https://id.example.com.evil.example.com/t", "https://id.example.com@evil.example.com/t"],
)  # fmt: skip
def test_a_key_signs_in_nowhere_else(elsewhere: str) -> None:
    """An answer must not choose where a statement of who we are goes."""
    issuer = Issuer()
    issuer.found["token_endpoint"] = elsewhere

    with pytest.raises(AccessDeniedError, match="own address"):
        ShortToken(by_key_file(user(), HERE)).bearer(issuer)

    assert [verb for verb, _, _ in issuer.asked] == ["GET"]


@each_row(
    ("found", "given", "status"),
    [
        ({}, {}, 200),
        ({"issuer": 1, "token_endpoint": 2}, {}, 200),
        (None, {"error": "invalid_grant"}, 400),
        (None, {"access_token": 7}, 200),
        (None, {"access_token": "a\nb"}, 200),
        (None, {}, 200),
        (None, [], 200),
    ],
)
def test_a_service_that_gives_no_token_denies_access(found: Any, given: Any, status: int) -> None:
    """Exit code 7, with what to look at; nothing of the key is told."""
    issuer = Issuer(given=given, status=status)
    issuer.found = issuer.found if found is None else found

    with pytest.raises(AccessDeniedError) as refused:
        ShortToken(by_key_file(user(), HERE)).bearer(issuer)

    assert any(words in refused.value.remedy for words in ("key file", "serve --origin"))
    assert "BEGIN" not in refused.value.problem


def test_a_service_that_does_not_answer_is_not_one_that_says_no() -> None:
    """Another key would not help."""
    for fetch in (nobody, Issuer(status=503)):
        with pytest.raises(ServiceUnavailableError, match="did not answer"):
            ShortToken(by_key_file(user(), HERE)).bearer(fetch)


@pytest.mark.parametrize("key", ["nonsense", "elliptic"])
def test_a_key_that_cannot_sign_is_told(key: str) -> None:
    """A service takes RSA and P-256."""
    if key == "elliptic":
        key = ec.generate_private_key(ec.SECP384R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()  # fmt: skip

    with pytest.raises(AccessDeniedError, match="key"):
        ShortToken(by_key_file(user(key), HERE)).bearer(Issuer())


def test_without_the_library_that_signs_its_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra, because most never need it."""
    for name in list(sys.modules):
        if name.split(".")[0] == "cryptography":
            monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(UsageError) as refused:
        read_key(private_file(tmp_path, "{}"))

    assert "the extra key-file" in refused.value.problem
    assert "make extras" in refused.value.remedy


@each_row("issuer", ["https://other.example", f"{HERE.origin}.evil.example", "http://x"])
def test_no_statement_is_made_for_another_service(issuer: str) -> None:
    """A service could have one made for another, and use it there."""
    found = Issuer()
    found.found = {**found.found, "issuer": issuer}

    with pytest.raises(AccessDeniedError, match="calls itself"):
        ShortToken(by_key_file(user(), HERE)).bearer(found)
    assert [verb for verb, *_ in found.asked] == ["GET"]
