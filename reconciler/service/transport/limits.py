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
from reconciler.service.scheduling.shares import READERS, UNCOUNTED, UNREAD, WAITING

KIB = 1024
MIB = 1024 * KIB
MAX_JSON = MIB
MAX_MESSAGE = MIB  # of gRPC, without its head
MAX_FORM = 18 * KIB  # that asks for a token: a signed token of 16 KiB, and the rest
# What the system keeps of a connection until it is read; it doubles the number for its own needs,
# and would let it grow to megabytes.
RECEIVE_BYTES = 32 * KIB
SMALL_BODY = 16 * KIB  # over HTTP/1.1, read at once; connections bound how many there are
SMALL_MESSAGE = KIB  # over HTTP/2, taken in without a place; calls bound how many there are
CONNECTION_WINDOW = 64 * KIB - 1  # bytes of all calls of a connection that are not taken yet
STREAM_WINDOW = 16 * KIB  # bytes of one call over HTTP/2 that may come before its body is asked for

PROGRAM = 72 * MIB  # code, models, descriptors and threads; 65 were measured
TOKENS = 16 * MIB  # code of the token endpoint; 14 were measured
STORE = 32 * MIB  # pages that the writer of a SQLite store and its readers keep
CONNECTION = 8 * KIB  # objects of the event loop and of HTTP/1.1
HTTP2 = 48 * KIB  # objects of a connection over HTTP/2, closed streams and tables included
LINGERING = 64  # connections that stay for a moment, so that their callers can read why they end
STREAMS_OF_STRANGER = 8  # calls that every connection may have, however many others have
TLS = 40 * KIB  # state and buffers of one connection
CALL = 12 * KIB  # objects of a call over HTTP/2, its headers included
WAITING_CALL = 2 * KIB  # objects of a call that waits for its turn
JSON_FACTOR = 10  # a JSON body as objects, per byte; see ``json_bodies.MAX_SIGNS``
MESSAGE_FACTOR = 40  # a message of gRPC, its parts and its fields, per byte
DOUBLED = 2  # the kernel doubles the buffer size that is set for a socket
JOINED = 2  # pages that are put together at one time: a thread takes a millisecond to do so


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a listener; tests shorten the times.

    Attributes:
        head_bytes: Request line and headers together.
        body_bytes: A body of any content type; a message of 1 MiB and its envelope fit in.
        chunks: Pieces a chunked body may come in.
        connections: Of all kinds, those included that shake hands for TLS.
        silent_seconds: How long a connection with a valid token is left alone that carries out no
            call, before it may have to make room for another.
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
        drain_seconds: How long calls in flight have when the server stops.
        http2_calls: Calls over HTTP/2 at one time, beside the first few of each connection.
        http2_known: Those with a valid token, from before their message until they are answered.
        http2_known_of_one: The share of those that one token may have.
        http2_open: Those that need no token, of each kind.
        http2_open_of_one: The share of those that one address may have.
        stream_seconds: How long a call without a token may ask and be answered.
    """

    head_bytes: int = 16 * KIB
    target_bytes: int = 8 * KIB
    headers: int = 100
    body_bytes: int = MAX_JSON + 64 * KIB
    chunks: int = 10_000
    chunk_bytes: int = 32
    pipelined: int = 2
    connections: int = 320
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
    drain_seconds: int = 10
    http2_calls: int = 1024
    http2_known: int = 768
    http2_known_of_one: int = 384
    http2_open: int = 128
    http2_open_of_one: int = 32
    stream_seconds: float = 1800


def most_memory(limits: Limits, *, gives_tokens: bool = False) -> Mapping[str, int]:
    """Return the bytes that each part of a server takes at most, by a name for it.

    A server that ``gives_tokens`` has a token endpoint.

    A connection is counted as what takes more, one over HTTP/1.1 or one over HTTP/2.
    """
    received = DOUBLED * RECEIVE_BYTES
    http1 = CONNECTION + limits.head_bytes + received + SMALL_BODY * JSON_FACTOR
    forms = limits.http2_open * MAX_FORM * JSON_FACTOR
    http2 = HTTP2 + CONNECTION_WINDOW + received + STREAMS_OF_STRANGER * CALL
    return {
        "program": PROGRAM,
        "store": STORE,
        "texts of objects": MAX_TEXTS_BYTES,
        "connections": limits.connections * (received + max(http1, http2)),
        "connections that are ending": LINGERING * (CONNECTION + received),
        "TLS": (limits.connections + LINGERING) * TLS,
        "large bodies": limits.large_bytes * JSON_FACTOR,
        "calls over HTTP/2": limits.http2_calls * (CALL + STREAM_WINDOW),
        "small messages of HTTP/2": limits.http2_known * SMALL_MESSAGE * MESSAGE_FACTOR,
        "calls that wait": WAITING * WAITING_CALL,
        "pages for people": MAX_JSON * JSON_FACTOR,  # one object at a time is read for one of them
        "pages of lists": (READERS + JOINED) * MAX_PAGE_BYTES,
        "answers not read": UNREAD,
        **({"tokens": TOKENS + forms} if gives_tokens else {}),
        "short answers not read": (limits.connections * 2 + limits.http2_calls) * UNCOUNTED,
    }
