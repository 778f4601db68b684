"""URIs and names of resources, judged as text: nothing is repaired.

The service takes any text here. What can never be right is an error; what is only dangerous is
a warning. Names are for people to read and compare: one spelling, nothing hidden in them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from reconciler.diagnostics import BLANK, Diagnostic, cut, error, warning
from reconciler.resources.origin import DEFAULT_PORTS, check_host, is_loopback_host, parse_port

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
EXAMPLE = "https://shop.example.com/callback"


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


def check_text(uri: str) -> None:
    """Refuse what may not stand anywhere in a URI.

    Raises:
        UriError: it holds such a character.
    """
    if not uri:
        raise UriError("URI-EMPTY", "the URI is empty", f"Write a URI such as {EXAMPLE}.")
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
    authority, path = split_path(rest[2:])
    check_path(path)
    if "@" in authority:
        remedy = "Leave out everything up to @."
        raise UriError("URI-USERINFO", "a user name in a URI", remedy)
    found = re.fullmatch(_AUTHORITY, authority)
    if found is None or not found[1]:
        problem = "the host is empty" if found else f"the host {cut(authority)}"
        raise UriError("URI-HOST", problem, "Write a host name.")
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
        raise UriError("URI-HOST", f"the host {cut(host)}", remedy) from None
    try:
        return host, None if port is None else parse_port(port)
    except ValueError as why:
        raise UriError("URI-PORT", f"the port {cut(port)}", f"{why}.") from None


def split_path(text: str) -> tuple[str, str]:
    """Return what stands before the path of a URI, and the path without its query."""
    end = next((index for index, character in enumerate(text) if character in "/?"), len(text))
    return text[:end], text[end:].partition("?")[0]


def check_path(path: str) -> None:
    """Refuse a path that servers read in different ways.

    Raises:
        UriError: it is one.
    """
    if re.search(_ESCAPED_SEPARATOR, path):
        remedy = "Servers read it in different ways: write another path."
        raise UriError("URI-PATH", "an escaped slash or backslash in a path", remedy)
    steps = path.replace("%2e", ".").replace("%2E", ".").split("/")
    if "." in steps or ".." in steps:
        remedy = "Browsers take dot segments out before they send the URI: write the path without."
        raise UriError("URI-PATH", "a dot segment in a path", remedy)


def duplicates(values: list[str]) -> Iterator[int]:
    """Yield the positions of values that stand in the list before."""
    seen: set[str] = set()
    for position, value in enumerate(values):
        if value in seen:
            yield position
        seen.add(value)


def called_url_problems(
    url: str, code: str, example: str, plain_http: Diagnostic
) -> Iterator[Diagnostic]:
    """Yield what is wrong or dangerous about a URL that the service itself calls.

    ``code`` is of a text that is no such URL, ``plain_http`` of one that is sent unencrypted.
    """
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


# Letters of these scripts look like each other's; within any one of them they do not.
_LOOKALIKE = {"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU"}
_STYLED = {"FULLWIDTH", "MATHEMATICAL", "CIRCLED", "PARENTHESIZED", "SQUARED", "MODIFIER"}
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def is_plain(name: str) -> bool:
    """Return whether a name is of visible ASCII characters only: nothing to judge."""
    return name.isascii() and name.isprintable() and name == name.strip(" ")


@lru_cache(maxsize=4096)  # the names of organizations and projects come back all the time
def name_problems(name: str) -> tuple[Diagnostic, ...]:
    """Return what is wrong or dangerous about a name."""
    return () if is_plain(name) else tuple(_problems(name))


def _problems(name: str) -> Iterator[Diagnostic]:
    hidden = next(
        (each for each in name if unicodedata.category(each) in _HIDDEN or BLANK.match(each)), None
    )
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


def _confusables(name: str) -> Iterator[Diagnostic]:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    found = sorted(scripts & (_LOOKALIKE | _STYLED))
    if len(found) > 1 or scripts & _STYLED:
        yield warning(
            "NAME-CONFUSABLE",
            f"the name mixes letters that look alike ({', '.join(found).lower()})",
            f"Make sure that it is what it looks like: {name!a}.",
        )
