"""Keyless login: a CI job's signed token is exchanged for a short one of the service (RFC 8693).

The signed token is made for the origin that was named, and the service has to call itself that. It
is asked for anew, or read again, each time: nothing is written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, urlsplit

from reconciler.errors import (
    AccessDeniedError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
    writing,
)
from reconciler.resources.files import read_start
from reconciler.resources.origin import is_loopback_host
from reconciler.resources.secret import Secret
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service_client.credentials import (
    MAX_FILE,
    Fetch,
    NewToken,
    given_token,
    token_endpoint,
    token_of,
)
from reconciler.service_client.endpoint import Endpoint

GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
TYPE = "urn:ietf:params:oauth:token-type:id_token"
VARIABLE = "RECONCILER_ID_TOKEN"
REQUEST_URL, REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"


IdTokens: TypeAlias = Callable[[Fetch, str], Secret]
"""Returns a signed token of the job for an origin; raises if the job has none."""


def _in_file(path: Path) -> Secret:
    """Return what a file has now: another program may replace the token by a newer one."""
    with writing(f"read {path}", "Name the file of the signed token with --id-token-file."):
        content, _ = read_start(path, MAX_FILE)
    return token_of(content.decode("ascii", errors="replace"), str(path))


def _of_github(request_url: str, bearer: Secret) -> IdTokens:
    """Return a function that asks the runner of GitHub for a token of the job.

    Raises:
        UsageError: the address is not encrypted.
    """
    parts = urlsplit(request_url)
    if parts.scheme != "https" and not is_loopback_host(parts.hostname or ""):
        raise UsageError(
            f"{REQUEST_URL} is not an https address",
            remedy="GitHub's runner sets it: run the command in a job, without setting it.",
        )

    def ask(fetch: Fetch, origin: str) -> Secret:
        url = f"{request_url}{'&' if '?' in request_url else '?'}audience={quote(origin, safe='')}"
        headers = {"authorization": f"bearer {bearer.reveal()}", "accept": "application/json"}
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

    return ask


def id_tokens(file: Path | None, environ: Mapping[str, str]) -> IdTokens:
    """Return where the signed token of this job comes from: a file, a variable, or GitHub.

    Raises:
        UsageError: this is no job that has one.
        AccessDeniedError: what the variable holds cannot be a token.
    """
    if file is not None:
        return lambda _fetch, _origin: _in_file(file)
    if text := environ.get(VARIABLE):
        of_job = token_of(text, VARIABLE)  # for all of its time
        return lambda _fetch, _origin: of_job
    url, bearer = environ.get(REQUEST_URL), environ.get(REQUEST_TOKEN)
    if url and bearer:
        return _of_github(url, token_of(bearer, REQUEST_TOKEN))
    raise UsageError(
        "--keyless found no signed token of this job",
        remedy="On GitHub give the job `permissions: id-token: write`; on GitLab an entry "
        f"{VARIABLE} of id_tokens; elsewhere --id-token-file FILE.",
    )


def by_exchange(source: IdTokens, endpoint: Endpoint) -> NewToken:
    """Return a function that exchanges signed tokens for short ones of a service."""

    def new_token(fetch: Fetch, _now: int) -> tuple[Secret, float]:
        origin, where = token_endpoint(fetch, endpoint)
        form = {
            "grant_type": GRANT,
            "subject_token": source(fetch, origin).reveal(),
            "subject_token_type": TYPE,
        }
        return given_token(fetch, where, form, "this job", _WHY_NONE)

    return new_token


_WHY_NONE = (
    "The log of the service says why. `reconciler trust test` on the service's side compares a "
    "token with every rule."
)
