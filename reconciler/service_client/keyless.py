"""Keyless login: a CI job's signed token is exchanged for a short one of the service (RFC 8693).

The signed token is made for the origin that was named, and the service has to call itself that. It
is asked for anew, or read again, each time: nothing is written anywhere.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from reconciler.errors import (
    AccessDeniedError,
    LocalFileError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.resources.files import read_start
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.secret import Secret
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service_client.credentials import (
    MAX_FILE,
    Fetch,
    ShortToken,
    given_token,
    token_endpoint,
    token_of,
)
from reconciler.service_client.endpoint import Endpoint

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:id_token"
VARIABLE = "RECONCILER_ID_TOKEN"
REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"


class IdTokens(Protocol):
    """A way to have a signed token of the job."""

    def token(self, fetch: Fetch, origin: str) -> Secret:
        """Return a signed token for a service.

        Raises:
            AccessDeniedError, LocalFileError, ServiceError: there is none.
        """
        ...


class OfJob:
    """A signed token that the job was given in a variable, for all of its time."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    def token(self, fetch: Fetch, origin: str) -> Secret:
        """Return it."""
        return self._token


class OfFile:
    """A signed token in a file, which another program may replace by a newer one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self, fetch: Fetch, origin: str) -> Secret:
        """Return what the file has now."""
        try:
            content, _ = read_start(self._path, MAX_FILE)
        except OSError as failure:
            raise LocalFileError(
                f"cannot read {self._path}: {failure.strerror or failure}",
                remedy="Name the file of the signed token with --id-token-file.",
            ) from failure
        return token_of(content.decode("ascii", errors="replace"), str(self._path))


class OfGitHub:
    """Signed tokens that GitHub's runner gives a job that has the permission."""

    def __init__(self, url: str, bearer: Secret) -> None:
        """Take address and token of the runner's own variables.

        Raises:
            UsageError: the address is not encrypted.
        """
        parts = urlsplit(url)
        if parts.scheme != "https" and not is_loopback_host(parts.hostname or ""):
            raise UsageError(
                f"{REQUEST_URL} is not an https address",
                remedy="GitHub's runner sets it: run the command in a job, without setting it.",
            )
        self._url = url
        self._bearer = bearer

    def token(self, fetch: Fetch, origin: str) -> Secret:
        """Return a new one, made for this service alone."""
        url = f"{self._url}{'&' if '?' in self._url else '?'}audience={quote(origin, safe='')}"
        headers = {"authorization": f"bearer {self._bearer.reveal()}", "accept": "application/json"}
        try:
            response = fetch("GET", url, headers, None)
            value = read_object(response.content).get("value") if response.status == 200 else None
        except (ServiceError, JsonError) as failure:
            raise ServiceUnavailableError(
                f"GitHub gave the job no signed token: {failure}",
                remedy="Run the job again; nothing was written.",
            ) from None
        if not isinstance(value, str):
            raise AccessDeniedError(
                f"GitHub gives the job no signed token (status {response.status})",
                remedy="Give the job `permissions: id-token: write`.",
            )
        return token_of(value, "the answer of GitHub")


def id_tokens(file: Path | None, environ: Mapping[str, str]) -> IdTokens:
    """Return where the signed token of this job comes from: a file, a variable, or GitHub.

    Raises:
        UsageError: this is no job that has one.
        AccessDeniedError: what the variable holds cannot be a token.
    """
    if file is not None:
        return OfFile(file)
    if text := environ.get(VARIABLE):
        return OfJob(token_of(text, VARIABLE))
    url, bearer = environ.get(REQUEST_URL), environ.get(REQUEST_TOKEN)
    if url and bearer:
        return OfGitHub(url, token_of(bearer, REQUEST_TOKEN))
    raise UsageError(
        "--keyless found no signed token of this job",
        remedy="On GitHub give the job `permissions: id-token: write`; on GitLab an entry "
        f"{VARIABLE} of id_tokens; elsewhere --id-token-file FILE.",
    )


class KeylessToken(ShortToken):
    """Credentials that exchange signed tokens, and do so again before the short one ends."""

    def __init__(
        self, source: IdTokens, endpoint: Endpoint, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(clock)
        self._source = source
        self._endpoint = endpoint

    def _new_token(self, fetch: Fetch, now: int) -> tuple[Secret, float]:
        origin, where = token_endpoint(fetch, self._endpoint)
        signed = self._source.token(fetch, origin)
        form = {
            "grant_type": GRANT,
            "subject_token": signed.reveal(),
            "subject_token_type": TYPE,
        }
        return given_token(fetch, where, form, "this job", _WHY_NONE)


_WHY_NONE = (
    "The log of the service says why. `reconciler trust test` on the service's side compares a "
    "token with every rule."
)
