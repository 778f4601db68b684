"""URIs and header names, judged as text: nothing is repaired, so nothing hides (reliability 3.7).

The service takes any text here. What can never be right is an error; what is only dangerous is
a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.resources.origin import DEFAULT_PORTS, check_host, is_loopback_host, parse_port
from reconciler.validation.problem import Problem, cut, doubtful, wrong

_DANGEROUS = {"javascript", "data", "file", "vbscript", "blob", "about"}
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*):(.*)"
_AUTHORITY = r"(\[[0-9a-f:.]*\]|[^:\[\]]*)(?::(.*))?"
_NOT_IN_URI = r"[^\x21-\x7e]|[\"<>\\^`{|}]"
_BAD_ESCAPE = r"%(?![0-9A-Fa-f]{2})"
_ESCAPED_SEPARATOR = r"%(?:2[fF]|5[cC])"
_ORDINARY = re.compile(
    r"https://(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}(?:/[\w~-][\w.~-]*)*/?",
    re.ASCII,
)
_ORDINARY_LENGTH = 200  # less than the longest host name
_EXAMPLE = "https://shop.example.com/callback"


class UriError(Exception):
    """A URI can never be right; ``problem`` says why."""

    def __init__(self, code: str, summary: str, remedy: str) -> None:
        super().__init__(summary)
        self.problem = wrong(code, summary, remedy)


def is_ordinary(uri: str) -> bool:
    """Return whether a URI is https to a named host, with a path of plain words: nothing to judge.

    Most are. A test holds this shortcut to the rules below.
    """
    return len(uri) <= _ORDINARY_LENGTH and _ORDINARY.fullmatch(uri) is not None


def redirect_uri_problems(uri: str, *, native: bool, dev_mode: bool) -> tuple[Problem, ...]:
    """Return what is wrong or dangerous about a redirect URI or post-logout redirect URI."""
    try:
        check_text(uri)
        scheme, rest = _split_scheme(uri)
        if scheme not in DEFAULT_PORTS:
            _check_custom(scheme, rest)
            return tuple(_claimable(scheme, native=native))
        host, port = check_authority(rest)
    except UriError as fault:
        return (fault.problem,)
    warnings = [*_insecure(scheme, host, native=native, dev_mode=dev_mode)]
    if port == DEFAULT_PORTS[scheme]:
        warnings.append(
            doubtful(
                "URI-DEFAULT-PORT",
                f"port {port} is the port of {scheme} anyway",
                "URIs are compared as text: leave the port out unless clients send it.",
            )
        )
    return tuple(warnings)


def check_text(uri: str) -> None:
    """Refuse what may not stand anywhere in a URI.

    Raises:
        UriError: it holds such a character.
    """
    if not uri:
        raise UriError("URI-EMPTY", "the URI is empty", f"Write a URI such as {_EXAMPLE}.")
    found = re.search(_NOT_IN_URI, uri)
    if found is not None:
        character = found.group()
        shown = character if character.isascii() and character.isprintable() else ""
        shown = shown.strip() or f"U+{ord(character):04X}"
        remedy = "Write it percent-encoded; host names in ASCII (xn--...)."
        raise UriError("URI-CHARACTER", f"the character {shown} in a URI", remedy)
    if "#" in uri:
        raise UriError("URI-FRAGMENT", "a fragment in a URI", "Leave out # and what follows it.")
    if "*" in uri:
        remedy = "URIs are compared exactly: list each one."
        raise UriError("URI-WILDCARD", "a wildcard in a URI", remedy)
    if re.search(_BAD_ESCAPE, uri) or "%00" in uri:
        remedy = "Write % as %25; %00 is never allowed."
        raise UriError("URI-ESCAPE", "a wrong percent-escape in a URI", remedy)


def _split_scheme(uri: str) -> tuple[str, str]:
    found = re.fullmatch(_SCHEME, uri)
    if found is None:
        remedy = f"Write the whole URI, such as {_EXAMPLE}."
        raise UriError("URI-SCHEME", "a URI without a scheme", remedy)
    scheme, rest = found.groups()
    if scheme.lower() in _DANGEROUS:
        remedy = f"Write a URI such as {_EXAMPLE}."
        raise UriError("URI-SCHEME", f"the dangerous scheme {scheme.lower()}", remedy)
    if scheme != scheme.lower():
        raise UriError("URI-CASE", "upper case in the scheme", f"Write {scheme.lower()}:.")
    return scheme, rest


def check_authority(rest: str) -> tuple[str, int | None]:
    """Return host and port of what follows ``http:`` or ``https:``.

    Raises:
        UriError: there is no host, or it or the port or the path can never be right.
    """
    if not rest.startswith("//"):
        raise UriError("URI-HOST", "a URI without a host", "Write two slashes and the host.")
    authority, path = _split_path(rest[2:])
    _check_path(path)
    if "@" in authority:
        remedy = "Leave out everything up to @."
        raise UriError("URI-USERINFO", "a user name in a URI", remedy)
    found = re.fullmatch(_AUTHORITY, authority)
    if found is None:
        raise UriError("URI-HOST", f"the host {cut(authority)}", "Write a host name.")
    host, port = found.groups()
    if host != host.lower():
        raise UriError("URI-CASE", "upper case in the host", f"Write {cut(host.lower())}.")
    try:
        check_host(host)
    except ValueError as why:
        remedy = f"Write a host name or an address: {why}."
        raise UriError("URI-HOST", f"the host {cut(host) or 'is empty'}", remedy) from None
    try:
        return host, None if port is None else parse_port(port)
    except ValueError as why:
        raise UriError("URI-PORT", f"the port {cut(port)}", f"{why}.") from None


def _split_path(text: str) -> tuple[str, str]:
    end = next((index for index, character in enumerate(text) if character in "/?"), len(text))
    return text[:end], text[end:].partition("?")[0]


def _check_path(path: str) -> None:
    if re.search(_ESCAPED_SEPARATOR, path):
        remedy = "Servers read it in different ways: write another path."
        raise UriError("URI-PATH", "an escaped slash or backslash in a path", remedy)
    steps = path.replace("%2e", ".").replace("%2E", ".").split("/")
    if "." in steps or ".." in steps:
        remedy = "Browsers take dot segments out before they send the URI: write the path without."
        raise UriError("URI-PATH", "a dot segment in a path", remedy)


def _check_custom(scheme: str, rest: str) -> None:
    if not rest.strip("/"):
        remedy = f"Write a path, such as {cut(scheme)}:/callback."
        raise UriError("URI-PATH", "a custom scheme with nothing after it", remedy)
    authority, path = _split_path(rest[2:]) if rest.startswith("//") else ("", rest)
    if "@" in authority:
        raise UriError("URI-USERINFO", "a user name in a URI", "Leave out everything up to @.")
    if "[" in authority or "]" in authority:
        remedy = f"Write a name, or a path alone: {cut(scheme)}:/callback."
        raise UriError("URI-HOST", f"the host {cut(authority)}", remedy)
    _check_path(path.partition("?")[0])


def _claimable(scheme: str, *, native: bool) -> Iterator[Problem]:
    if not native:
        yield doubtful(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} in an application that is not native",
            "Write an https URI, or set appType: OIDC_APP_TYPE_NATIVE.",
        )
    elif "." not in scheme:
        yield doubtful(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} has no dot",
            "Any app can claim it: write a domain of yours backwards, com.example.app:/callback.",
        )


def _insecure(scheme: str, host: str, *, native: bool, dev_mode: bool) -> Iterator[Problem]:
    if scheme != "http":
        return
    if not is_loopback_host(host):
        yield doubtful(
            "URI-HTTP",
            "plain http to a host other than this machine",
            "Codes and tokens are sent there in the clear: write https.",
        )
    elif not native and not dev_mode:
        yield doubtful(
            "URI-LOOPBACK",
            "a loopback address in an application that is not native",
            "It works on one machine only: leave it to an application with devMode: true.",
        )


def duplicates(values: list[str]) -> Iterator[int]:
    """Yield the positions of values that stand in the list before."""
    seen: set[str] = set()
    for position, value in enumerate(values):
        if value in seen:
            yield position
        seen.add(value)


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
