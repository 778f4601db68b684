"""Endpoints and the header of a JWT identity provider."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.resources.origin import DEFAULT_PORTS, is_loopback_host
from reconciler.validation.problem import Problem, cut, doubtful, wrong
from reconciler.validation.redirect_uris import UriError, check_authority, check_text, is_ordinary

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_NOT_FOR_TOKENS = {
    *("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"),
    *("cookie", "set-cookie"),
}


def endpoint_problems(url: str) -> Iterator[Problem]:
    """Yield what is wrong or dangerous about a URL that the service asks for tokens or keys."""
    if is_ordinary(url):
        return
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in DEFAULT_PORTS:
        remedy = "Write the whole URL, such as https://login.example.com/keys."
        yield wrong("IDP-ENDPOINT", f"{cut(url)} is not an http or https URL", remedy)
        return
    try:
        check_text(url)
        host, _ = check_authority(rest)
    except UriError as fault:
        yield fault.problem
        return
    if scheme == "http" and not is_loopback_host(host):
        yield _plain_http()


def issuer_problems(issuer: str) -> Iterator[Problem]:
    """Yield what is dangerous about an issuer; it is compared as text and may be any."""
    if issuer.startswith("http://"):
        yield _plain_http()


def header_problems(name: str) -> Iterator[Problem]:
    """Yield why a header cannot carry a token; empty means ``authorization``."""
    if not name:
        return
    if not _TOKEN.fullmatch(name):
        remedy = "Write letters, digits and hyphens, such as x-partner-token."
        yield wrong("IDP-HEADER", "the header name is not valid", remedy)
    elif name.lower() in _NOT_FOR_TOKENS:
        remedy = "HTTP itself needs this header; write another, such as x-partner-token."
        yield wrong("IDP-HEADER", f"the header {name.lower()} cannot carry a token", remedy)


def _plain_http() -> Problem:
    return doubtful(
        "IDP-HTTP", "plain http", "Anyone on the way can replace what is sent: write https."
    )
