"""The reconciler's own token at a service, kept for one origin and sent to no other.

A token is given from outside, or asked of the service with the key file of a service user: the
JWT profile grant (RFC 7523). ``machine_keys`` signs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias
from urllib.parse import urlencode

from reconciler.errors import (
    AccessDeniedError,
    LocalFileError,
    ServiceUnavailableError,
    UsageError,
    writing,
)
from reconciler.resources.call import JsonObject
from reconciler.resources.files import is_open_to_others, read_start
from reconciler.resources.installation import how_to_install, missing_modules
from reconciler.resources.origin import as_localhost
from reconciler.resources.secret import Secret
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service_client.endpoint import Endpoint

MAX_FILE = 64 * 1024  # bytes
HOW = (
    "Give a token in RECONCILER_TOKEN or with --token-file, or a service user's --key-file, or "
    "store one with `reconciler login ORIGIN`."
)
_TOKEN = re.compile(r"[!-~]{1,8192}", re.ASCII)


class Response(NamedTuple):
    """A response: its status, its content, the headers that count, and its certificate's end."""

    status: int
    content: bytes
    content_type: str = ""
    retry_after: str = ""
    location: str = ""
    date: str = ""
    certificate_ends: str = ""


Fetch = Callable[[str, str, Mapping[str, str], bytes | None], Response]
"""Ask an address (verb, address, headers, body); a ``ServiceError`` where no answer came."""


class Credentials(Protocol):
    """A way to have a token."""

    def bearer(self, fetch: Fetch) -> Secret:
        """Return a token that counts for the next minutes.

        Raises:
            AccessDeniedError: there is none, and none can be had.
            ServiceError: the service that gives it does not answer.
        """
        ...

    def renew(self) -> bool:
        """Take note that the service does not accept the token; say if another can be had."""
        ...


class FixedToken(NamedTuple):
    """A token that was given from outside."""

    token: Secret

    def bearer(self, fetch: Fetch) -> Secret:
        return self.token

    def renew(self) -> bool:
        return False


class NoToken:
    """No token was given."""

    def bearer(self, fetch: Fetch) -> Secret:
        raise self.refusal()

    @staticmethod
    def refusal() -> AccessDeniedError:
        """Return the error that no token was given."""
        return AccessDeniedError("the service needs a token, and none was given", remedy=HOW)

    def renew(self) -> bool:
        return False


def token_of(text: str, where: str) -> Secret:
    """Return the token in a text, which may end with one line break.

    Raises:
        AccessDeniedError: the text cannot be a token. It is not repeated.
    """
    token = text.removesuffix("\n").removesuffix("\r")
    if not _TOKEN.fullmatch(token):
        raise AccessDeniedError(
            f"what {where} holds cannot be a token",
            remedy="A token is one word of printable ASCII characters, and nothing else.",
        )
    return Secret(token)


def read_private(path: Path, *, own: bool = False) -> str:
    """Return the text of a file that only its owner may read.

    With ``own`` it must be this user's, and no symbolic link: a file that this program wrote.

    Raises:
        LocalFileError: it cannot be read, or others may read it.
    """
    with writing(f"read {path}", "Name a file that this user may read."):
        content, status = read_start(path, MAX_FILE + 1, os.O_NOFOLLOW if own else 0)
    if len(content) > MAX_FILE:
        raise LocalFileError(f"{path} is not a small file", remedy="Name the file itself.")
    if own and status.st_uid != os.geteuid():
        raise LocalFileError(
            f"{path} is not this user's own file", remedy="Remove it, then log in again."
        )
    if is_open_to_others(status):
        raise LocalFileError(
            f"{path} can be read by others (mode {status.st_mode & 0o777:04o})",
            remedy=f"It holds a secret: run `chmod 600 {path}`.",
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise LocalFileError(f"{path} is not a text file", remedy="Name the file itself.") from None


LIFE = 3600  # seconds that a signed statement counts
EARLY = 180  # seconds before its end that a token is renewed
SCOPE = "openid urn:zitadel:iam:org:project:id:zitadel:aud"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DISCOVERY = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class ServiceUserKey:
    """The key of a service user."""

    user: str
    id: str
    private: Secret


def read_key(path: Path) -> ServiceUserKey:
    """Return the key in a key file.

    Raises:
        UsageError: the extra that signs is not installed; checked before anything is asked.
        LocalFileError: the file cannot be read, is open to others, or is no key file.
    """
    if missing_modules("key-file"):
        raise UsageError(
            "signing in with a key file needs the extra key-file, which is not installed",
            remedy=f"{how_to_install('key-file')}. Or sign in with a token.",
        )
    text = read_private(path)
    try:
        fields = read_object(text.encode())
    except JsonError:
        fields = {}
    user, key_id, private = (fields.get(name, "") for name in ("userId", "keyId", "key"))
    if not all(isinstance(each, str) and each for each in (user, key_id, private)):
        raise LocalFileError(
            f"{path} is not a key file of a service user",
            remedy="It is JSON with userId, keyId and key, as the service made it.",
        )
    return ServiceUserKey(user, key_id, Secret(private))


NewToken: TypeAlias = Callable[[Fetch, int], tuple[Secret, float]]
"""Asks for a token at a time; returns it and the seconds for which it counts."""


class ShortToken:
    """Credentials that ask the service itself for a token, and for a new one before it ends."""

    def __init__(self, new_token: NewToken, clock: Callable[[], float] = time.time) -> None:
        self._new_token = new_token
        self._clock = clock
        self._token: Secret | None = None
        self._ends = 0.0

    def bearer(self, fetch: Fetch) -> Secret:
        now = self._clock()
        if self._token is None or now > self._ends - EARLY:
            self._token, life = self._new_token(fetch, int(now))
            # At least a second of use: a token of a short life is not renewed before each call.
            self._ends = now + max(life, EARLY + 1)
        return self._token

    def renew(self) -> bool:
        """Forget the token; the next call asks for another."""
        known, self._token = self._token, None
        return known is not None


def by_key_file(key: ServiceUserKey, endpoint: Endpoint) -> NewToken:
    """Return a function that asks for tokens of a service user or a machine, by its key file."""

    def new_token(fetch: Fetch, now: int) -> tuple[Secret, float]:
        issuer, where = token_endpoint(fetch, endpoint)
        form = {"grant_type": GRANT, "assertion": _statement(key, issuer, now), "scope": SCOPE}
        return given_token(fetch, where, form, "this key", _CHECK_KEY)

    return new_token


def given_token(
    fetch: Fetch, where: str, form: Mapping[str, str], whose: str, remedy: str
) -> tuple[Secret, float]:
    """Return the token that an endpoint gives for a form, and the seconds for which it counts.

    Raises:
        AccessDeniedError: it gives none, with this remedy.
        ServiceUnavailableError: it does not answer.
    """
    problem = f"the service gives no token for {whose}"
    answer = _asked(fetch, where, urlencode(form).encode(), problem, remedy)
    token, life = answer.get("access_token"), answer.get("expires_in", LIFE)
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise AccessDeniedError("the token endpoint answered without a token", remedy=remedy)
    return Secret(token), float(life) if isinstance(life, int) else float(LIFE)


def token_endpoint(fetch: Fetch, endpoint: Endpoint) -> tuple[str, str]:
    """Return issuer and token endpoint of a service. What signs in there is sent nowhere else.

    Raises:
        AccessDeniedError: the service names no token endpoint of its own, or another service.
        ServiceUnavailableError: it does not answer.
    """
    problem = "the service does not say where to ask for a token"
    found = _asked(fetch, endpoint.address + DISCOVERY, None, problem, _NO_ENDPOINT)
    issuer, where = found.get("issuer"), found.get("token_endpoint")
    if not isinstance(issuer, str) or not isinstance(where, str):
        raise AccessDeniedError(problem, remedy=_NO_ENDPOINT)
    # A signed token is as good as a token. A discovery document cannot have one made for another
    # service, where it could be used, and cannot send it elsewhere.
    if as_localhost(issuer.removesuffix("/")) != as_localhost(endpoint.same_origin):
        raise AccessDeniedError(
            f"the service calls itself {issuer}, and not {endpoint.same_origin}",
            remedy="Give --service the address that the service itself names (serve --origin).",
        )
    if not where.startswith(f"{endpoint.origin}/"):
        raise AccessDeniedError(
            "the service's token endpoint is not at the service's own address",
            remedy="Give --service the address that the service itself names (serve --origin).",
        )
    return issuer, where


def _statement(key: ServiceUserKey, audience: str, now: int) -> str:
    """Return a signed statement of who the service user is, for one service and one hour.

    Raises:
        AccessDeniedError: the key cannot sign.
    """
    from reconciler.service_client.machine_keys import signed

    claims = {"iss": key.user, "sub": key.user, "aud": audience, "iat": now, "exp": now + LIFE}
    statement = signed(key.private, key.id, claims)
    if statement is None:
        problem = "the key in the key file cannot be read, or is neither RSA nor of P-256"
        raise AccessDeniedError(problem, remedy=_CHECK_KEY)
    return statement


def _asked(fetch: Fetch, url: str, body: bytes | None, problem: str, remedy: str) -> JsonObject:
    headers = {"content-type": "application/x-www-form-urlencoded"} if body else {}
    response = fetch("POST" if body else "GET", url, headers, body)
    if response.status >= 500:
        raise ServiceUnavailableError(
            f"the service gave no token: it did not answer (HTTP status {response.status})",
            remedy="Run the command again; nothing was written.",
        )
    if response.status != 200:
        raise AccessDeniedError(f"{problem} (status {response.status})", remedy=remedy)
    try:
        return read_object(response.content)
    except JsonError as failure:
        raise AccessDeniedError(
            f"the answer with the token cannot be read: it {failure}", remedy=remedy
        ) from None


_NO_ENDPOINT = (
    "Check the address. A service of this project gives tokens where it is started with "
    "`serve --origin`. Or give a token in RECONCILER_TOKEN."
)
_CHECK_KEY = (
    "Check that the key file is of this service, has not expired, and that the user still exists; "
    "or give a token in RECONCILER_TOKEN."
)
