"""One caller's waiting calls over gRPC leave places for the calls of others."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import grpc

from reconciler.service.transport.limits import Limits
from reconciler.service.transport.protobuf import METHODS
from tests.running import STOP_WITHIN, Server, running_server
from tests.wires import refused_by

CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"
LIST_ORGS = "/zitadel.admin.v1.AdminService/ListOrgs"
CONNECTIONS = 5
TOO_MANY = 20


def _channel(server: Server) -> grpc.Channel:
    """Return a connection of its own: a connection has a limit of calls, too."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.insecure_channel(f"127.0.0.1:{server.port}", options=own)


def _bearer(server: Server, name: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {server.known.tokens[name]}"),)


def test_writes_of_one_caller_that_wait_do_not_take_every_call(tmp_path: Path) -> None:
    """They wait for the store, which another program writes to."""
    allowed = Limits().http2_known_of_one
    action = METHODS[CREATE_ACTION].request
    with (
        running_server(tmp_path) as server,
        closing(sqlite3.connect(server.store, isolation_level=None)) as other,
        ExitStack() as stack,
    ):
        channels = [stack.enter_context(_channel(server)) for _ in range(CONNECTIONS)]
        creates = [channel.unary_unary(CREATE_ACTION) for channel in channels]
        lists = stack.enter_context(_channel(server)).unary_unary(LIST_ORGS)
        greedy, stranger = _bearer(server, "editor"), _bearer(server, "stranger")
        other.execute("BEGIN IMMEDIATE")
        calls = [
            creates[number % CONNECTIONS].future(
                action(name=f"n{number}", script="x").SerializeToString(), metadata=greedy
            )
            for number in range(allowed + TOO_MANY)
        ]
        while sum(call.done() for call in calls) < TOO_MANY:
            lists(b"", metadata=stranger, timeout=STOP_WITHIN)
        other.execute("ROLLBACK")
        told = [call.exception(STOP_WITHIN) for call in calls]

    refused = [refused_by(error) for error in told if error is not None]
    assert len(refused) == TOO_MANY
    assert {(each.code, each.reason) for each in refused} == {(8, "service.busy")}
