"""What a server needs for gRPC, and what it says where it cannot have it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import Budget
from reconciler.service.transport.bodies import Bodies
from reconciler.service.transport.grpc_front_end import grpc_front_ends
from reconciler.service.transport.limits import Limits
from reconciler.service.transport.observer import Metrics, Observer
from reconciler.service.transport.protobuf import SERVICES


def who_may(address: str) -> int:
    """Return the permissions of the folder of a socket; there must be one."""
    assert Path(address).is_socket()
    return Path(address).parent.stat().st_mode & 0o777


async def nothing(_: Incoming) -> Received:
    """Answer nothing."""
    return Received("", {})


def test_the_socket_is_private_and_goes_with_the_server() -> None:
    """Whoever reached it would reach gRPC past all limits of the port."""

    async def main() -> None:
        limits = Limits()
        bodies = Bodies(nothing, Budget.of(limits))
        async with grpc_front_ends(nothing, Observer(Metrics()), bodies, limits) as front_ends:
            assert who_may(front_ends.inside.address) == 0o700
            assert set(front_ends.web_routes) == set(SERVICES)
            addresses.append(front_ends.inside.address)

    addresses: list[str] = []
    asyncio.run(main())

    assert [address for address in addresses if Path(address).parent.exists()] == []
