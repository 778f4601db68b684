"""The server as ``serve`` puts it together: sockets, store, transports."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from reconciler.cli.connection import Connection, is_file, require_seal_key, store_path
from reconciler.cli.embedded import open_service
from reconciler.cli.output import show_warnings
from reconciler.diagnostics import warning
from reconciler.errors import UsageError
from reconciler.report.visible import visible
from reconciler.resources.process import collect_seldom
from reconciler.service.build import IdentityService
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.eventstore.port import RemoteStore
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import all_tokens
from reconciler.service.transport.batching import Batcher
from reconciler.service.transport.connections import ListenError, bind, tls_context
from reconciler.service.transport.listener import Serving, no_wait, one_queue, run_loop, serve
from reconciler.service.transport.logs import set_up_logs
from reconciler.service.transport.observer import Observer, StoreFigures
from reconciler.service_client.endpoint import is_loopback

LOG = logging.getLogger("reconciler.serve")
Place = tuple[str, int]


class Listening(NamedTuple):
    """Addresses and certificate of a server."""

    calls: socket.socket
    metrics: socket.socket | None
    tls: ssl.SSLContext | None


def listen_on(
    place: Place, metrics: Place | None, tls: tuple[Path | None, Path | None]
) -> Listening:
    """Begin to listen, before anything is made or opened.

    Raises:
        UsageError: an address or a certificate cannot be used.
    """
    certificate, key = tls
    try:
        context = tls_context(certificate, key) if certificate and key else None
        return Listening(bind(*place), bind(*metrics) if metrics else None, context)
    except ListenError as failure:
        raise UsageError(failure.problem, remedy=failure.remedy) from failure


def warn_of_plain(place: Place, log_format: str) -> None:
    """Warn where tokens and secrets would cross a network in plain text."""
    host, port = place
    if is_loopback(host):
        return
    shown = f"[{host}]" if ":" in host else host
    finding = warning(
        "SERVE-PLAIN",
        f"calls to {visible(shown)}:{port} are not encrypted",
        "Give --tls-cert and --tls-key, or say --behind-proxy if a proxy in front of this server "
        "speaks TLS and nothing else reaches this address.",
    )
    if log_format == "json":
        set_up_logs(log_format)
        LOG.warning("%s: %s. %s", finding.code, finding.summary, finding.remedy)
    else:
        show_warnings([finding])


def serve_store(connection: Connection, listening: Listening, log_format: str) -> None:
    """Serve the store of a connection until a signal ends it.

    Raises:
        ServiceError: the store or the key that seals secrets cannot be used.
    """
    require_seal_key(connection)
    service = connection.service
    with open_service(connection, create=True) as opened:
        set_up_logs(log_format)
        opened.hold_seal_key()
        if not _has_token(opened):
            _announce(log_format, _how_to_begin(service))
        queue_of = one_queue if is_file(service) else opened.dispatcher.organization_of
        serving = Serving(
            batcher=Batcher(opened.dispatcher, queue_of),
            observer=Observer(),
            listening=listening.calls,
            metrics=listening.metrics,
            tls=listening.tls,
            figures=partial(_figures, opened, _size_of(service)),
            is_open=partial(_is_open, opened),
            abandon=_abandon(opened),
            on_ready=partial(_ready, log_format),
        )
        try:
            run_loop(serve(serving))
        except ListenError as failure:
            raise UsageError(failure.problem, remedy=failure.remedy) from failure


def _has_token(opened: IdentityService) -> bool:
    return bool(all_tokens(opened.store))


def _abandon(opened: IdentityService) -> Callable[[], None]:
    """Return what ends the waits for a store; those for a file end by themselves."""
    store = opened.store
    return store.abandon if isinstance(store, RemoteStore) else no_wait


def _is_open(opened: IdentityService) -> bool | None:
    try:
        return _has_token(opened)
    except StoreError:
        return None


def _ready(log_format: str, address: str) -> None:
    """Print the address of the server once it can answer calls."""
    collect_seldom()
    _announce(log_format, f"listening on {address}")


def _announce(log_format: str, words: str) -> None:
    """Print a message for the person who started the server; for machines, as a record."""
    if log_format == "json":
        LOG.info(words)
    else:
        click.echo(words, err=True)


def _how_to_begin(service: str) -> str:
    """Print how the first token is made: until then no caller is known."""
    return (
        "This service has no token yet, so it refuses every request. Make the first one:\n"
        f"  reconciler token create --name admin --role admin --service {visible(service)}"
    )


def _figures(opened: IdentityService, size_of: Callable[[], int | None]) -> StoreFigures | None:
    try:
        with opened.store.snapshot() as view:
            heads = view.heads()
    except StoreError:
        return None
    return StoreFigures(
        events=sum(head.events for head in heads),
        organizations=len(heads),
        last_commit=max((head.sequence for head in heads), default=0) / MICROSECONDS,
        size=size_of(),
    )


def _size_of(service: str) -> Callable[[], int | None]:
    """Return what tells the size of the store at an address, if its files are here."""
    if not is_file(service):
        return lambda: None
    path = store_path(service)
    files = [path, path.with_name(path.name + "-wal")]
    return lambda: sum(file.stat().st_size for file in files if file.exists())
