"""Limits of a server: sizes, times and counts; and the memory that it takes at most, from them.

A container ends a process that takes more than its limit, so the sum has to fit the one in
``docs/serving/kubernetes.yaml``; a server logs it at its start. Each part is a number of things
times the bytes of each. Bytes that no limit gives were measured, and rounded up. What the allocator
keeps of what was freed is taken again by the next part that needs memory: it counts once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.service.operations.texts import MAX_PAGE_BYTES, MAX_TEXTS_BYTES

KIB = 1024
MIB = 1024 * KIB
MAX_JSON = MIB
MAX_MESSAGE = MIB  # of gRPC, without its head
# What the system keeps of a connection until it is read; it doubles the number for its own needs,
# and would let it grow to megabytes.
RECEIVE_BYTES = 32 * KIB
SMALL_BODY = 16 * KIB  # read at once; connections bound how many there are
STREAM_WINDOW = 16 * KIB  # bytes of a call over gRPC that may come before its message is asked for
MOST_KEPT = 64 * KIB  # bytes of such a call; more than peers may send before they get more window
WAITING = 4096  # calls that are not answered yet
WAITING_OF_ONE = 1024  # those of one caller
READERS = 8  # threads that read at one time
UNREAD = 16 * MIB  # of answers that callers have not taken yet
UNCOUNTED = 8 * KIB  # the number of connections and of calls bounds shorter answers

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


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a listener; tests shorten the times.

    Attributes:
        head_bytes: Request line and headers together.
        body_bytes: A body of any content type; a message of 1 MiB and its envelope fit in.
        chunks: Pieces a chunked body may come in.
        connections: Of all kinds, those included that shake hands for TLS.
        http2_connections: Those of them that speak HTTP/2.
        silent_seconds: How long a connection is left alone that carries out no call, before it
            may have to make room for another.
        chunk_bytes: The least average length of chunks, their framing included, beyond the first.
        pipelined: Requests sent on one connection before the first of them is answered.
        progress_bytes: How much of a body must come in every ``progress_seconds``.
        write_seconds: How long a caller may leave an answer unread.
        linger_seconds: How long a refused connection is read, and thrown away, before it closes;
            else the caller might never see why.
        large_bytes: Large bodies held at one time, all callers together; in memory one can be
            ten times as long (see ``json_bodies.MAX_SIGNS``).
        large_share_bytes: The share of those that one caller may have.
        large_seconds: How long a large body waits while no other one of its caller comes to an
            end; then it is refused. It is not read meanwhile.
        room_seconds: How long a large message of gRPC waits for room before it is refused.
        drain_seconds: How long calls in flight have when the server stops.
        grpc_calls: Calls of gRPC at one time, whatever they wait for.
        grpc_known: Calls of gRPC with a token at one time, from before their message until they are
            answered.
        grpc_known_of_one: The share of those that one token may have.
        grpc_large_bytes: Messages of gRPC longer than ``SMALL_BODY`` at one time, together.
        grpc_share_bytes: The share of those that one connection may have.
        grpc_waiting: Those that wait for room at one time, before others are refused at once.
        grpc_waiting_of_one: The share of those that one connection may have.
        grpc_new_of_one: Calls of a connection that the gRPC server has not begun, where the newest
            one that was judged had a valid token. Others wait.
        grpc_new_of_strangers: Those of all other connections together, one of each.
        grpc_held_bytes: What of such waiting calls has come, on all connections; beyond it, the
            connection that has most of it is ended.
        grpc_open: Calls of gRPC at one time that need no token, of each kind.
        grpc_stream_seconds: How long a call without a token may ask and be answered.
    """

    head_bytes: int = 16 * KIB
    target_bytes: int = 8 * KIB
    headers: int = 100
    body_bytes: int = MAX_JSON + 64 * KIB
    chunks: int = 10_000
    chunk_bytes: int = 32
    pipelined: int = 2
    connections: int = 320
    http2_connections: int = 128
    silent_seconds: float = 1
    head_seconds: float = 5
    body_seconds: float = 30
    progress_seconds: float = 10
    progress_bytes: int = KIB
    idle_seconds: int = 30
    write_seconds: float = 30
    linger_seconds: float = 1
    large_bytes: int = 8 * MIB
    large_share_bytes: int = 2 * MIB
    large_seconds: float = 30
    room_seconds: float = 10
    drain_seconds: int = 10
    grpc_calls: int = 1024
    grpc_known: int = 768
    grpc_known_of_one: int = 384
    grpc_large_bytes: int = 8 * MIB
    grpc_share_bytes: int = 2 * MIB
    grpc_waiting: int = 128
    grpc_waiting_of_one: int = 32
    grpc_new_of_one: int = 8
    grpc_new_of_strangers: int = 2
    grpc_held_bytes: int = 8 * MIB
    grpc_open: int = 128
    grpc_stream_seconds: float = 1800


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
