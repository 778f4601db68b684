"""Services that a client is open to, each with an organization of one test alone.

The kinds of service are opened by name, so that one suite runs over all of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.cli.embedded import InProcessWire
from reconciler.errors import ServiceError
from reconciler.resources.ref import IN_PROJECT, Kind, ResourceRef
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import ProcessIdentity, this_process
from reconciler.service_client.port import CreateOrder, Order, ServiceClient, Written
from reconciler.service_client.zitadel.client import ListDelays
from reconciler.state import ObservedObject
from tests.builders import a_ref, declared
from tests.http_clients import http_client, zitadel_client
from tests.memory_store import open_memory
from tests.running import Server
from tests.zitadel.stand_in import IAM

IN_PROCESS, OVER_HTTP = "in process", "over HTTP"
CONTEXT = {"tree": "default", "revision": "abc", "plan": "sha256:1"}
Open = Callable[[ProcessIdentity], AbstractContextManager[ServiceClient]]
_AT_ONCE = ListDelays(settling=0.01, step=0.01, longest=2.0)


@dataclass
class House:
    """A service with an organization of this test alone, and a project in it.

    Attributes:
        remembers: Whether the service tells trees and keeps a history.
    """

    open: Open
    client: ServiceClient
    organization: str
    remembers: bool = True
    organization_id: str = ""
    project_id: str = ""

    def ref(self, kind: Kind, name: str) -> ResourceRef:
        return a_ref(kind, name, self.organization, "shop")

    def create(self, kind: Kind, name: str, said: dict[str, Any] | None = None) -> CreateOrder:
        ref = self.ref(kind, name)
        return CreateOrder(
            declared(ref, said),
            self.organization_id if kind is not Kind.ORGANIZATION else "",
            self.project_id if kind in IN_PROJECT else "",
        )

    def write(self, *orders: Order) -> Sequence[Written | ServiceError]:
        return self.client.write(orders, CONTEXT)

    def made(self, order: CreateOrder) -> ObservedObject:
        (result,) = self.write(order)
        assert isinstance(result, Written), result
        return self.held(order.ref)

    def held(self, ref: ResourceRef) -> ObservedObject:
        return self.client.observe([self.organization]).objects[ref.key]


@contextmanager
def house_of(opener: Open, *, remembers: bool = True) -> Iterator[House]:
    """Open a client, and make the organization and the project."""
    with opener(this_process()) as client:
        house = House(opener, client, f"acme-{uuid.uuid4().hex}", remembers)
        (made,) = house.write(house.create(Kind.ORGANIZATION, house.organization))
        assert isinstance(made, Written), made
        house.organization_id = made.id
        house.project_id = house.made(house.create(Kind.PROJECT, "shop")).id
        yield house


@contextmanager
def in_process() -> Iterator[Open]:
    """Open a store in memory; yield what opens clients of it."""
    with closing(open_memory()) as service:

        @contextmanager
        def opener(holder: ProcessIdentity) -> Iterator[ServiceClient]:
            wire = InProcessWire(service)
            yield OperationsClient(wire, holder, until_refused=wire.send_until_refused)

        yield opener


def over_http(server: Server) -> Open:
    """Return what opens clients of a server of ours."""
    return lambda holder: http_client(server.address, server.token("admin"), holder=holder)


def of_zitadel(address: str, folder: Path) -> Open:
    """Return what opens clients of a stand-in of a ZITADEL."""
    return lambda _: zitadel_client(address, IAM, folder, _AT_ONCE)


def held_specs(house: House) -> Mapping[ResourceRef, Any]:
    """Return the spec of everything that the organization holds, by its key."""
    objects = house.client.observe([house.organization]).objects
    return {key: held.spec for key, held in objects.items()}
