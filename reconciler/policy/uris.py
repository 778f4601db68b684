"""The functions ``host`` and ``path`` that rules may call.

An address is parsed as RFC 3986 says, and refused where browsers repair what they read: white
space, backslashes, percent signs or letters beyond ASCII in a host, http without two slashes or
without a host. What is repaired there and not here is a hole (reliability-security 3.7).
"""

from __future__ import annotations

import re
from functools import lru_cache

_URI = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*):"
    r"(?://(?:[^/?#\[\]@]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~*-]*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    r"([^?#]*)(?:\?[^#]*)?(?:#.*)?"
)
_REPAIRED = re.compile(r"[\x00-\x20\x7f\\]")
_NEED_HOSTS = {"http", "https"}


def host(uri: str) -> str:
    """Return the host of an absolute URI in lower case, without port; empty where it has none.

    Raises:
        ValueError: the text is no absolute URI, or browsers would read another one.
    """
    return _parts(uri)[0]


def path(uri: str) -> str:
    """Return the path of an absolute URI, as it is written; empty where it has none.

    Raises:
        ValueError: as ``host``.
    """
    return _parts(uri)[1]


@lru_cache  # several rules ask about the same address, one after another
def _parts(uri: str) -> tuple[str, str]:
    found = None if _REPAIRED.search(uri) else _URI.fullmatch(uri)
    if found is None or (found[1].lower() in _NEED_HOSTS and not found[2]):
        raise ValueError(f"not an absolute URI: {uri[:100]!r}")
    return (found[2] or "").lower(), found[3]
