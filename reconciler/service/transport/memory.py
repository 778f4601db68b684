"""The memory that a server takes at most, from its limits: one sum, which it logs at its start.

A container ends a process that takes more than its limit, so the sum has to fit the one in
``docs/serving/kubernetes.yaml``. Each part is a number of things times the bytes of each. Bytes
that no limit gives were measured, and rounded up. What the allocator keeps of what was freed is
taken again by the next part that needs memory, so it is not counted a second time.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.service.operations.texts import MAX_PAGE_BYTES, MAX_TEXTS_BYTES
from reconciler.service.transport.batching import WAITING
from reconciler.service.transport.frames import MOST_KEPT
from reconciler.service.transport.limits import (
    KIB,
    MIB,
    RECEIVE_BYTES,
    SMALL_BODY,
    STREAM_WINDOW,
    Limits,
)
from reconciler.service.transport.reading import READERS, UNCOUNTED, UNREAD

PROGRAM = 72 * MIB  # code, models, descriptors and threads; 65 were measured
STORE = 32 * MIB  # pages that the writer of a SQLite store and its readers keep
CONNECTION = 8 * KIB  # objects of the event loop and of HTTP
TLS = 40 * KIB  # state and buffers of one connection
CALL = 12 * KIB  # objects of a call over gRPC that waits for its message
WAITING_CALL = 2 * KIB  # objects of a call that waits for its turn
JSON_FACTOR = 10  # a JSON body as objects, per byte; see ``json_bodies.MAX_SIGNS``
MESSAGE_FACTOR = 4  # a message of gRPC, its parts and its fields, per byte
DOUBLED = 2  # the system takes twice what a socket is told to keep
JOINED = 2  # pages that are put together at one time: a thread takes a millisecond to do so


def most_memory(limits: Limits) -> Mapping[str, int]:
    """Return the bytes that each part of a server takes at most, by a name for it.

    A connection over HTTP/2 without its calls takes less than one over HTTP/1.1, as which it is
    counted here.
    """
    received = DOUBLED * RECEIVE_BYTES
    return {
        "program": PROGRAM,
        "store": STORE,
        "texts of objects": MAX_TEXTS_BYTES,
        "connections": limits.connections * (CONNECTION + received),
        "TLS": limits.connections * TLS,
        "heads and pipelined requests": limits.connections * (limits.head_bytes + received),
        "small bodies": limits.connections * SMALL_BODY * JSON_FACTOR,
        "large bodies": limits.large_bytes * JSON_FACTOR,
        "calls over gRPC": limits.grpc_calls * (CALL + STREAM_WINDOW),
        "large messages of gRPC": limits.grpc_large_bytes * MESSAGE_FACTOR,
        "large messages that wait": limits.grpc_waiting * MOST_KEPT,
        "calls over gRPC that have not begun": limits.grpc_held_bytes,
        "calls that wait": WAITING * WAITING_CALL,
        "pages of lists": (READERS + JOINED) * MAX_PAGE_BYTES,
        "answers not read": UNREAD,
        "short answers not read": (limits.connections * 2 + limits.grpc_calls) * UNCOUNTED,
    }
