"""Texts that become part of an address."""

from __future__ import annotations

import re
from urllib.parse import unquote

_STEPS = {"", ".", ".."}  # what a proxy takes out of a path


def stays_in_place(text: str) -> bool:
    """Return whether a text, escaped as the end of a path, means the same behind any proxy.

    Proxies decode a path, take `.`, `..` and empty segments out of it and send the rest on: nginx
    with a path in ``proxy_pass``, Envoy and HAProxy where they are told to normalize. So would
    `roles/..%2F..%2F2` become the address of project 2. Some decode several times, and some take
    a backslash for a slash.
    """
    while (decoded := unquote(text)) != text:
        text = decoded
    return _STEPS.isdisjoint(re.split(r"[/\\]", text))
