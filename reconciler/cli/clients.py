"""The service that a command works on, and the sink of its secrets: ways to open them.

What only a service elsewhere needs is imported where it is used: an embedded plan starts faster.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from reconciler.apply.sink import Delivery, Kept, SecretSink, Stops, never
from reconciler.apply.sinks import KINDS, open_sink
from reconciler.cli.connection import (
    Connection,
    is_database,
    is_embedded,
    is_file,
    is_remote,
    no_store,
    place_of_store,
    store_errors,
    store_path,
)
from reconciler.cli.output import detail, hint
from reconciler.cli.process import chosen
from reconciler.diagnostics import warning
from reconciler.errors import LocalFileError, LockHeldError, writing
from reconciler.plan.model import Plan, makes_secret
from reconciler.report.visible import visible
from reconciler.resources.files import make_folder
from reconciler.resources.installation import SECRETS, STATE_FOLDER
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import ReadOnlyService, ServiceClient
from reconciler.service_client.read_only import EmptyService, OperationsReader, ReadOnlyWire

if TYPE_CHECKING:
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.credentials import Credentials
    from reconciler.service_client.http_wire import HttpWire

T = TypeVar("T")

STATE = Path(STATE_FOLDER)
RETRY_SECONDS = 0.5
_ELSEWHERE = "Run the command in a folder this user may write to."


def holds_anything(service: str) -> bool:
    """Return whether there is a service at the address; an embedded store may not exist yet.

    Raises:
        ServiceError: it cannot be looked at; or a database holds something else under our names.
        UsageError: the text is not the address of a service.
    """
    if is_remote(service):
        return True
    with store_errors():
        if is_database(service):
            from reconciler.service.build import postgres_holds_store

            return postgres_holds_store(service)
        from reconciler.service.eventstore.sqlite_files import is_there

        return is_there(store_path(service))


def require_store(service: str) -> None:
    """Refuse an address of a store that does not exist.

    An empty answer would look like good news: no drift, nothing to export.
    """
    if not holds_anything(service):
        raise no_store(service)


@contextmanager
def open_for_plan(connection: Connection) -> Iterator[ReadOnlyService]:
    """Open a service for asking; a store that does not exist yet holds nothing."""
    if not holds_anything(connection.service):
        yield EmptyService(place_of_store(connection.service))
        return
    with open_reader(connection) as reader:
        yield reader


@contextmanager
def open_reader(connection: Connection) -> Iterator[ReadOnlyService]:
    """Open a service for asking what is there and what was; nothing can be written through it.

    Raises:
        ServiceError: there is no store at the address, or the service cannot be reached.
        UsageError: the address or the credentials contradict themselves.
        AccessDeniedError: there are no credentials.
    """
    if is_remote(connection.service):
        from reconciler.service_client.client import read_only_client

        with remote_service(connection) as remote:
            yield read_only_client(remote)
        return
    from reconciler.cli.embedded import open_wire

    with open_wire(connection, read_only=True) as wire:
        yield OperationsReader(ReadOnlyWire(wire))


@contextmanager
def open_client(connection: Connection) -> Iterator[ServiceClient]:
    """Open a service for writing; a store that does not exist yet is made. Raises as for asking."""
    if is_remote(connection.service):
        from reconciler.service_client.client import client_of

        for folder in (STATE, connection.state):
            with writing(f"make the folder {folder}", _ELSEWHERE):
                make_folder(folder)
        with remote_service(connection) as remote:
            yield client_of(remote)
        return
    from reconciler.cli.embedded import open_wire

    with open_wire(connection, read_only=False) as wire:
        yield OperationsClient(wire, this_process(), until_refused=wire.send_until_refused)


@contextmanager
def remote_service(connection: Connection) -> Iterator[RemoteService]:
    """Open the way to a service over HTTP. Raises as for asking."""
    from reconciler.cli.login import credentials_of
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.endpoint import parse_endpoint

    endpoint = parse_endpoint(connection.service)
    credentials, _ = credentials_of(connection, endpoint)
    with closing(http_wire(connection, credentials)) as wire:
        yield RemoteService(
            wire,
            this_process(),
            connection.service_kind,
            endpoint.address,
            STATE,
            connection.max_rps,
            connection.settle,
        )


def http_wire(connection: Connection, credentials: Credentials) -> HttpWire:
    """Return the wire to a service over HTTP, to be closed."""
    from reconciler.service_client.endpoint import parse_endpoint, parse_proxy
    from reconciler.service_client.http_wire import HttpWire, Limits

    endpoint = parse_endpoint(connection.service)
    named = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or ""
    return HttpWire(
        endpoint,
        credentials,
        Limits(per_second=connection.max_rps),
        proxy=parse_proxy(named, endpoint) if connection.use_proxy else None,
        observe=detail if chosen().verbose else None,
        tell_retry=(lambda text: hint(visible(text))) if sys.stderr.isatty() else None,
    )


@contextmanager
def locked(client: ServiceClient, organizations: Collection[str], timeout: float) -> Iterator[None]:
    """Hold the lock of organizations, waiting for it at most ``timeout`` seconds.

    Raises:
        LockHeldError: another run still holds it.
    """
    wait_for_lock(lambda: client.acquire(organizations), timeout)
    try:
        yield
    finally:
        client.release()


def wait_for_lock(take: Callable[[], T], timeout: float) -> T:
    """Return what ``take`` returns once no other run holds it; wait at most ``timeout`` seconds.

    Raises:
        LockHeldError: another run still holds it.
    """
    deadline = time.monotonic() + timeout
    is_waiting = False
    while True:
        try:
            return take()
        except LockHeldError as failure:
            if time.monotonic() >= deadline:
                raise
            if not is_waiting:
                hint(f"Waiting, at most {timeout:g} s: {visible(failure.problem)}.")
                is_waiting = True
            time.sleep(RETRY_SECONDS)


def sink_for(connection: Connection, secrets_to: str | None) -> SecretSink | None:
    """Return the sink that was asked for, or the one of an embedded service's state, or none."""
    address = sink_address(connection, secrets_to)
    if not address:
        return None
    sink = open_sink(address, os.environ)
    return _MaskingSink(sink) if os.environ.get("GITHUB_ACTIONS") == "true" else sink


def sink_address(connection: Connection, secrets_to: str | None) -> str:
    """Return the address of the sink; empty without a sink."""
    own = f"file:{connection.state}/{SECRETS}" if is_embedded(connection.service) else ""
    return secrets_to or own


class _MaskingSink:
    """A sink that has the runner of a GitHub job mask each secret before the real sink gets it.

    The runner takes this line out of the log; it goes to stderr, which is never a result.
    """

    def __init__(self, sink: SecretSink) -> None:
        self._sink = sink
        self.follows, self.prove, self.held = sink.follows, sink.prove, sink.held
        self.follow = sink.follow

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        for delivery in deliveries:
            click.echo(f"::add-mask::{delivery.client_secret.reveal()}", err=True)
        return self._sink.deliver(deliveries, stops)


def why_a_sink(plan: Plan) -> str:
    """Return the reason why a plan needs a sink, as half a sentence; empty if it needs none."""
    if any(makes_secret(change) for change in plan.changes):
        return "the plan creates client secrets"
    return "client secrets are owed to this tree" if plan.deliverable else ""


def prove_seal_key(connection: Connection) -> None:
    """Prove that a new client secret can be sealed, before anything is written.

    A missing key of a store in a file is made. A database is opened with its key, and a service
    elsewhere manages its own.

    Raises:
        ServiceError: the key cannot be used.
    """
    if is_file(connection.service):
        from reconciler.service.build import seal_key_beside
        from reconciler.service.seal import KeyFile

        path = connection.seal_key_file or seal_key_beside(store_path(connection.service))
        with store_errors():
            KeyFile(path).ready()


def warn_without_sink(plan: Plan, sink: SecretSink | None) -> Plan:
    """Add a warning to a plan with secrets that have no sink. It is not in the digest."""
    why = why_a_sink(plan)
    if not why or sink is not None:
        return plan
    nowhere = warning(
        "SECRET-NO-SINK",
        f"{why}, and no destination is chosen",
        f"The service answers a secret only once. Choose a destination with --secrets-to "
        f"{KINDS}; apply refuses without one.",
    )
    return replace(plan, warnings=(*plan.warnings, nowhere))
