"""The memory that a server takes at most, from its limits: one sum, which a test holds.

A container ends a process that takes more than its limit, so the sum has to fit the one in
``docs/serving/kubernetes.yaml``. Each part is a number of things times the bytes of each. Bytes
that no limit gives were measured, and rounded up.

Two things are bounded by time and not in the sum: answers that callers do not read, which end
after ``Limits.write_seconds``, and what the allocator keeps of what was freed.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.service.transport.front import WAITING
from reconciler.service.transport.limits import KIB, MIB, RECEIVE_BYTES, SMALL_BODY, Limits
from reconciler.service.transport.reading import READERS
from reconciler.service.transport.unread import UNREAD

PROGRAM = 80 * MIB  # code, models, descriptors and threads; 65 were measured
STORE = 32 * MIB  # page caches of the connections to the store
CONNECTION = 8 * KIB  # objects of the event loop and of HTTP
TLS = 40 * KIB  # state and buffers of one connection
HTTP2 = 64 * KIB  # the gRPC library's side of a connection; 25 were measured
CALL = 12 * KIB  # objects of a call over gRPC that waits for its message
WAITING_CALL = 2 * KIB  # objects of a call that waits for its turn
JSON_FACTOR = 10  # a JSON body as objects, per byte; see ``json_bodies.MAX_SIGNS``
MESSAGE_FACTOR = 4  # a message of gRPC, its parts and its fields, per byte
DOUBLED = 2  # the system takes twice what a socket is told to keep
PAGE = 1000 * 8 * KIB  # the longest page as text: objects, and bytes of each


def most_memory(limits: Limits, stream_window: int) -> Mapping[str, int]:
    """Return the bytes that each part of a server takes at most, by a name for it.

    ``stream_window`` is how much a call over gRPC can send before its message is asked for.
    """
    return {
        "program": PROGRAM,
        "store": STORE,
        "connections": limits.connections
        * (CONNECTION + limits.head_bytes + DOUBLED * RECEIVE_BYTES),
        "TLS": limits.connections * TLS,
        "small bodies": limits.connections * SMALL_BODY * JSON_FACTOR,
        "large bodies": limits.large_bytes * JSON_FACTOR,
        "connections over HTTP/2": limits.http2_connections * HTTP2,
        "calls over gRPC": limits.grpc_calls * (CALL + stream_window),
        "large messages of gRPC": limits.grpc_large_bytes * MESSAGE_FACTOR,
        "calls that wait": WAITING * WAITING_CALL,
        "pages of lists": READERS * PAGE,
        "answers not read": UNREAD,
    }
