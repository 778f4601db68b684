"""The authority of a URI, which decides where it leads, and whether it is sent unencrypted."""

from __future__ import annotations

import re

from reconciler.resources.origin import is_loopback_host

# Browsers take a backslash for a slash, so the authority ends at either.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/\\?#]*))?")
_PORT = re.compile(r":[0-9]*$")


def authority_of(uri: str) -> str:
    """Return what decides where a URI leads: scheme, and user, host and port as they stand.

    It tells apart more than it must. A default port written out, or a user before the host, is
    another authority: where reading is a matter of opinion, it is news.
    """
    found = _URI.match(uri)
    if found is None:
        return uri
    scheme, authority = found.group(1).lower(), found.group(2)
    return f"{scheme}://{authority.lower()}" if authority else f"{scheme}:"


def is_plain_http(uri: str) -> bool:
    """Return whether a URI goes over the network unencrypted. The machine itself is no network."""
    found = _URI.match(uri)
    if found is None or found.group(1).lower() != "http":
        return False
    return not is_loopback_host(_PORT.sub("", (found.group(2) or "").lower()))
