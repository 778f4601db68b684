"""Limits of a server: sizes, times and counts."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
MAX_JSON = MIB
# What the system keeps of a connection until it is read; it doubles the number for its own needs,
# and would let it grow to megabytes.
RECEIVE_BYTES = 32 * KIB
SMALL_BODY = 16 * KIB  # read at once; connections bound how many there are
STREAM_WINDOW = 16 * KIB  # bytes of a call over gRPC that may come before its message is asked for


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
