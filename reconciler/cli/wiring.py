"""From the address of a service to a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.cli.addresses import is_database, is_remote, no_store, store_path
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import ServiceClient, ServiceInquiry
from reconciler.service_client.read_only import AbsentService, Inquiry, ReadingWire


def holds_anything(service: str) -> bool:
    """Return whether there is a service at the address; an embedded store may not exist yet."""
    if is_database(service):
        from reconciler.cli.embedded import database_holds_store

        return database_holds_store(service)
    return is_remote(service) or store_path(service).exists()


def require_store(service: str) -> None:
    """Refuse an address of a store that does not exist.

    An empty answer would look like good news: no drift, nothing to export.

    Raises:
        ServiceError: there is no store at the address.
    """
    if not holds_anything(service):
        raise no_store(service)


@contextmanager
def open_for_plan(service: str) -> Iterator[ServiceInquiry]:
    """Open a service for asking; a store that does not exist yet holds nothing."""
    if not holds_anything(service):
        yield AbsentService()
        return
    with open_inquiry(service) as inquiry:
        yield inquiry


@contextmanager
def open_inquiry(service: str) -> Iterator[ServiceInquiry]:
    """Open a service for asking what is there and what was; nothing can be written through it.

    Raises:
        ServiceError: there is no store at the address.
    """
    require_store(service)
    if is_remote(service):
        from reconciler.cli.remote import remote_inquiry

        with remote_inquiry(service) as inquiry:
            yield inquiry
        return
    from reconciler.cli.embedded import open_wire

    with open_wire(service, read_only=True) as wire:
        reading = ReadingWire(wire)
        yield Inquiry(OperationsClient(reading, this_process()), reading)


@contextmanager
def open_client(service: str) -> Iterator[ServiceClient]:
    """Open a service for writing; a store that does not exist yet is made."""
    if is_remote(service):
        from reconciler.cli.remote import remote_client

        with remote_client(service) as client:
            yield client
        return
    from reconciler.cli.connection import connection
    from reconciler.cli.embedded import open_wire

    told = connection()
    with open_wire(
        service, read_only=False, seal_key_file=told.seal_key_file, keep_owed=told.keep_owed
    ) as wire:
        yield OperationsClient(wire, this_process())
