"""URIs, header names and names of resources, judged as text: nothing is repaired.

The service takes any text here. What can never be right is an error; what is only dangerous is
a warning. Names are for people to read and compare: one spelling, nothing hidden in them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from reconciler.diagnostics import Diagnostic, cut, error, warning
from reconciler.resources.nearest import within
from reconciler.resources.origin import DEFAULT_PORTS, check_host, is_loopback_host, parse_port

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
_BARE_VARIABLE = re.compile(r"\$([A-Za-z][A-Za-z0-9_]*)", re.ASCII)
_EXAMPLE = "https://shop.example.com/callback"


class UriError(Exception):
    """A URI can never be right; ``problem`` says why."""

    def __init__(self, code: str, summary: str, remedy: str) -> None:
        super().__init__(summary)
        self.problem = error(code, summary, remedy)


def is_ordinary(uri: str) -> bool:
    """Return whether a URI is https to a named host, with a path of plain words: nothing to judge.

    Most are. A test holds this shortcut to the rules below.
    """
    return len(uri) <= _ORDINARY_LENGTH and _ORDINARY.fullmatch(uri) is not None


def redirect_uri_problems(uri: str, *, native: bool, dev_mode: bool) -> tuple[Diagnostic, ...]:
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
            warning(
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
    meant = within(scheme.lower(), ("https", "http"), 1)
    if meant is not None and scheme.lower() != meant:
        remedy = f"Write {meant}:. For an app, write a domain backwards: com.example.app:/callback."
        raise UriError("URI-SCHEME", f"the scheme {scheme.lower()} is nearly {meant}", remedy)
    if scheme != scheme.lower():
        raise UriError("URI-CASE", "upper case in the scheme", f"Write {scheme.lower()}:.")
    return scheme, rest


def bare_variable(text: str) -> str:
    """Return the first name in a text that is written as shells write a variable, or nothing."""
    found = _BARE_VARIABLE.search(text)
    return found[1] if found else ""


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
    if name := bare_variable(host):
        remedy = f"Write ${{{name}}} for a variable, which reconciler.yaml declares."
        raise UriError("URI-HOST", f"${name} in a host", remedy)
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


def _claimable(scheme: str, *, native: bool) -> Iterator[Diagnostic]:
    if not native:
        yield warning(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} in an application that is not native",
            "Write an https URI, or set appType: OIDC_APP_TYPE_NATIVE.",
        )
    elif "." not in scheme:
        yield warning(
            "URI-CUSTOM-SCHEME",
            f"the custom scheme {cut(scheme)} has no dot",
            "Any app can claim it: write a domain of yours backwards, com.example.app:/callback.",
        )


def _insecure(scheme: str, host: str, *, native: bool, dev_mode: bool) -> Iterator[Diagnostic]:
    if scheme != "http":
        return
    if not is_loopback_host(host):
        yield warning(
            "URI-HTTP",
            "plain http to a host other than this machine",
            "Codes and tokens are sent there in the clear: write https.",
        )
    elif not native and not dev_mode:
        yield warning(
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
_PLAIN_HTTP = warning(
    "IDP-HTTP", "plain http", "Anyone on the way can replace what is sent: write https."
)


_HTTP_LOGOUT = warning(
    "URI-HTTP",
    "plain http to a host other than this machine",
    "Logout tokens are sent there in the clear: write https.",
)


def endpoint_problems(url: str) -> Iterator[Diagnostic]:
    """Yield what is wrong or dangerous about a URL that the service asks for tokens or keys."""
    return _called(url, "IDP-ENDPOINT", "https://login.example.com/keys", _PLAIN_HTTP)


def logout_uri_problems(uri: str) -> Iterator[Diagnostic]:
    """Yield what is wrong or dangerous about the URI that logout tokens are posted to.

    OpenID Connect Back-Channel Logout 1.0 asks for an absolute URI without a fragment, which should
    be https.
    """
    return _called(uri, "URI-SCHEME", "https://shop.example.com/logout", _HTTP_LOGOUT)


def _called(url: str, code: str, example: str, plain_http: Diagnostic) -> Iterator[Diagnostic]:
    """Yield what is wrong or dangerous about a URL that the service itself calls."""
    if is_ordinary(url):
        return
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in DEFAULT_PORTS:
        remedy = f"Write the whole URL, such as {example}."
        yield error(code, f"{cut(url)} is not an http or https URL", remedy)
        return
    try:
        check_text(url)
        host, _ = check_authority(rest)
    except UriError as fault:
        yield fault.problem
        return
    if scheme == "http" and not is_loopback_host(host):
        yield plain_http


def issuer_problems(issuer: str) -> Iterator[Diagnostic]:
    """Yield what is dangerous about an issuer; it is compared as text and may be any."""
    if issuer.startswith("http://"):
        yield _PLAIN_HTTP


def header_problems(name: str) -> Iterator[Diagnostic]:
    """Yield why a header cannot carry a token; empty means ``authorization``."""
    if not name:
        return
    if not _TOKEN.fullmatch(name):
        remedy = "Write letters, digits and hyphens, such as x-partner-token."
        yield error("IDP-HEADER", "the header name is not valid", remedy)
    elif name.lower() in _NOT_FOR_TOKENS:
        remedy = "HTTP itself needs this header; write another, such as x-partner-token."
        yield error("IDP-HEADER", f"the header {name.lower()} cannot carry a token", remedy)


# Letters of these scripts look like each other's; within any one of them they do not.
_LOOKALIKE = {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU"}
_STYLED = {"FULLWIDTH", "MATHEMATICAL", "CIRCLED", "PARENTHESIZED", "SQUARED", "MODIFIER"}
_CONTROL = {"Cc", "Zl", "Zp", "Cs"}

# Drawn as nothing although they are letters or marks to Unicode, besides all of category Cf.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
)


def is_plain(name: str) -> bool:
    """Return whether a name is of visible ASCII characters only: nothing to judge."""
    return name.isascii() and name.isprintable() and name == name.strip(" ")


@lru_cache(maxsize=4096)  # the names of organizations and projects come back all the time
def name_problems(name: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong or dangerous about a name."""
    return () if is_plain(name) else tuple(_problems(name))


def _problems(name: str) -> Iterator[Diagnostic]:
    hidden = next((character for character in name if _is_hidden(character)), None)
    if name != name.strip():
        yield error(
            "NAME-SPACE",
            "the name starts or ends with a space",
            "Remove the space: it cannot be seen, and it is part of the name.",
        )
    if hidden is not None:
        yield error(
            "NAME-INVISIBLE",
            f"the name contains the invisible character U+{ord(hidden):04X}",
            "Remove it: the name looks like another one.",
        )
    elif not unicodedata.is_normalized("NFC", name):
        yield error(
            "NAME-NFC",
            "the name is not in Unicode's normal form NFC",
            f"Write it as {unicodedata.normalize('NFC', name)!a} (escapes shown).",
        )
    else:
        yield from _confusables(name)


def _is_hidden(character: str) -> bool:
    category = unicodedata.category(character)
    return category in _CONTROL or category == "Cf" or character in _BLANK


def _confusables(name: str) -> Iterator[Diagnostic]:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    found = sorted(scripts & (_LOOKALIKE | _STYLED))
    if len(found) > 1 or scripts & _STYLED:
        yield warning(
            "NAME-CONFUSABLE",
            f"the name mixes letters that look alike ({', '.join(found).lower()})",
            f"Make sure that it is what it looks like: {name!a}.",
        )
