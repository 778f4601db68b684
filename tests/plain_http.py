"""HTTP without TLS, for servers on this machine.

A client of httpx reads the certificates that the machine trusts when it is made, which takes 0.1 s
of processor. One that is made with ``NO_TRUST`` has none to read.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpx

NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def plain_client(address: str, **more: Any) -> httpx.Client:
    """Return a client of the server at an address, with more arguments of httpx's own."""
    return httpx.Client(**{"base_url": address, "timeout": 30, "verify": NO_TRUST, **more})
