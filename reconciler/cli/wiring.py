"""From the address of a service to a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.service_client.absent import AbsentService
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.holder import this_process
from reconciler.service_client.inquiry import Inquiry, ReadingWire
from reconciler.service_client.port import ServiceClient, ServiceInquiry, ServiceReader


def is_embedded(service: str) -> bool:
    """Say whether an address names a store that this process opens itself."""
    return is_file(service) or is_database(service)


def is_file(service: str) -> bool:
    """Say whether an address names a store in a file of this machine."""
    return service.startswith("sqlite:")


def is_database(service: str) -> bool:
    """Say whether an address names a store in a PostgreSQL database."""
    return service.startswith(("postgresql:", "postgres:"))


def is_remote(service: str) -> bool:
    """Say whether an address names a service that is reached over HTTP."""
    return service.startswith(("http://", "https://"))


def store_path(service: str) -> Path:
    """Return the file of an embedded store.

    Raises:
        UsageError: the address names no such file.
    """
    scheme, _, path = service.partition(":")
    if scheme != "sqlite" or not path or path.startswith("//"):
        raise UsageError(
            f"{service} is no address of a service",
            remedy="Write --service sqlite:PATH, such as sqlite:.reconciler/identity.db, "
            "postgresql://USER@HOST:PORT/DATABASE, or https://HOST.",
        )
    return Path(path)


def holds_anything(service: str) -> bool:
    """Say whether there is a service at the address; an embedded store may not exist yet."""
    if is_database(service):
        from reconciler.cli.embedded import database_holds_store

        return database_holds_store(service)
    return is_remote(service) or store_path(service).exists()


@contextmanager
def open_reader(service: str) -> Iterator[ServiceReader]:
    """Open a service for looking at; a store that does not exist yet holds nothing."""
    with open_inquiry(service) as inquiry:
        yield inquiry


@contextmanager
def open_inquiry(service: str) -> Iterator[ServiceInquiry]:
    """Open a service for asking what is there and what was; nothing can be written through it."""
    if not holds_anything(service):
        yield AbsentService()
        return
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

    key = connection().seal_key_file
    with open_wire(service, read_only=False, seal_key_file=key) as wire:
        yield OperationsClient(wire, this_process())


def require_seal_key(service: str, seal_key_file: Path | None) -> None:
    """Refuse to write to a database without the key that all its servers share.

    Raises:
        UsageError: no key was named.
    """
    if is_database(service) and seal_key_file is None:
        raise UsageError(
            "a store in PostgreSQL needs the key that all its servers share",
            remedy="Give --seal-key-file FILE; the first to use a database makes the file.",
        )
