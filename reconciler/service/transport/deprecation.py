"""Deprecation of old calls, as their answers tell it: since when, and by what they are replaced.

Each answer, a refusal included, has the header ``Deprecation`` (RFC 9745) and a ``Link`` to the
successor (RFC 5829); over gRPC they are trailing metadata. Deprecated calls go on working.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from urllib.parse import quote

from reconciler.resources.call import ADDRESSES
from reconciler.service.operations.operation import MANAGEMENT, SUCCESSORS

SINCE = "@1795305600"  # 2026-11-22, in seconds since the epoch
_OBJECT = "{id}"


def http_headers(operation: str, fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer; none where the operation is not deprecated.

    ``fields`` are those of the address: the successor of a call that names an object names it, too.
    """
    successor = SUCCESSORS.get(operation)
    if successor is None:
        return []
    _, _, path = ADDRESSES[successor][0].partition(" ")
    for value in fields.values():
        path = path.replace(_OBJECT, quote(value, safe=""))
    return [(b"deprecation", SINCE.encode()), (b"link", _link(path).encode())]


@cache
def grpc_metadata(operation: str) -> tuple[tuple[str, str], ...]:
    """Return the metadata of an answer; none where the operation is not deprecated."""
    successor = SUCCESSORS.get(operation)
    if successor is None:
        return ()
    return (("deprecation", SINCE), ("link", _link(f"/{MANAGEMENT}/{successor}")))


def _link(target: str) -> str:
    return f'<{target}>; rel="successor-version"'
