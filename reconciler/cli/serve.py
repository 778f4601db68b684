"""``reconciler serve``: sockets, store and transports put together.

The transports are imported where they are used: their libraries are an extra, which is checked
first.
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli.connection import (
    Connection,
    is_file,
    require_extra,
    require_seal_key,
    store_path,
    with_absolute_path,
)
from reconciler.cli.embedded import open_service
from reconciler.cli.options import command
from reconciler.cli.output import show_warnings
from reconciler.diagnostics import warning
from reconciler.errors import UsageError
from reconciler.report.page import served_policy
from reconciler.report.service_page import draw
from reconciler.report.visible import visible
from reconciler.resources.origin import in_url, is_loopback_host, parse_origin
from reconciler.resources.process import collect_seldom, return_large_memory
from reconciler.service.build import IdentityService
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.eventstore.sqlite_files import log_of
from reconciler.service.operations.answers import MICROSECONDS

if TYPE_CHECKING:
    import socket

    from reconciler.service.keyless.exchange import Exchange
    from reconciler.service.transport.connections import Certificate
    from reconciler.service.transport.observer import StoreFigures

LOG = logging.getLogger("reconciler.serve")
Place = tuple[str, int]
_PLACE = re.compile(r"(?P<host>[!-~]+):(?P<port>[0-9]{1,5})", re.ASCII)


@command("serve", example="--listen 127.0.0.1:8080")
def serve_command(
    connection: Connection,
    listen: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    metrics_listen: str,
    log_format: str,
    origin: str,
    allow_issuer: Sequence[str],
    *,
    behind_proxy: bool,
) -> None:
    """Run the identity service: JSON, gRPC and gRPC-web on one port.

    SIGTERM ends it: calls in flight are finished first. SIGHUP reads the certificate again.
    """
    if (tls_cert is None) != (tls_key is None):
        raise UsageError(
            "a certificate and its key go together", remedy="Give both --tls-cert and --tls-key."
        )
    require_extra("serve", "serve")
    from reconciler.service.transport.connections import Certificate, ListenError, bind

    place = address_to_listen("--listen", listen)
    metrics_place = (
        address_to_listen("--metrics-listen", metrics_listen) if metrics_listen else None
    )
    if tls_cert is None and not behind_proxy:
        _warn_of_plain(place, log_format)
    try:  # to listen comes before anything is made or opened
        tls = Certificate(tls_cert, tls_key) if tls_cert and tls_key else None
        calls = bind(*place)
        metrics = bind(*metrics_place, "--metrics-listen") if metrics_place else None
        name = _origin(origin)
        exchange = partial(_exchange, name, allow_issuer) if name else None
        _serve_store(connection, calls, metrics, tls, exchange, log_format)
    except ListenError as failure:
        raise UsageError(failure.problem, remedy=failure.remedy) from failure


def address_to_listen(flag: str, text: str) -> Place:
    """Return host and port of a text such as ``127.0.0.1:8080`` or ``[::1]:8080``.

    Raises:
        UsageError: the text has another form.
    """
    parts = _PLACE.fullmatch(text)
    if not parts or int(parts["port"]) > 65535:
        raise UsageError(
            f"{flag} {text} is not an address to listen on",
            remedy=f"Write {flag} HOST:PORT, such as 127.0.0.1:8080.",
        )
    return parts["host"].removeprefix("[").removesuffix("]"), int(parts["port"])


def _origin(text: str) -> str:
    """Return the name of the service that tokens must be for; empty for no token endpoint."""
    if not text:
        return ""
    try:
        origin = parse_origin(text)
    except ValueError as failure:
        raise UsageError(
            f"--origin {visible(text)} is not an origin: {failure}",
            remedy="Write --origin https://HOST, the address by which callers know this service.",
        ) from None
    if origin.scheme != "https" and not (origin.scheme == "http" and origin.is_loopback):
        raise UsageError(
            f"--origin {visible(text)} is not encrypted",
            remedy="Write https://HOST; http:// is for this machine alone.",
        )
    return text


def _warn_of_plain(place: Place, log_format: str) -> None:
    """Warn where tokens and secrets would cross a network in plain text."""
    host, port = place
    if is_loopback_host(host):
        return
    finding = warning(
        "SERVE-PLAIN",
        f"calls to {visible(in_url(host))}:{port} are not encrypted",
        "Give --tls-cert and --tls-key, or say --behind-proxy if a proxy in front of this server "
        "speaks TLS and nothing else reaches this address.",
    )
    if log_format == "json":
        from reconciler.service.transport.logs import set_up_logs

        set_up_logs(log_format)
        LOG.warning("%s: %s. %s", finding.code, finding.summary, finding.remedy)
    else:
        show_warnings([finding])


def _exchange(name: str, allowed: Sequence[str], opened: IdentityService) -> Exchange:
    """Return what gives short tokens for signed ones that are for a service of this name."""
    from reconciler.service.keyless.exchange import Exchange
    from reconciler.service.keyless.issuers import Fetcher, Issuers

    return Exchange(opened.store, name, Issuers(Fetcher(allowed)), opened.now)


def _serve_store(
    connection: Connection,
    calls: socket.socket,
    metrics: socket.socket | None,
    tls: Certificate | None,
    exchange: Callable[[IdentityService], Exchange] | None,
    log_format: str,
) -> None:
    """Serve the store of a connection until a signal ends it."""
    from reconciler.service.scheduling.batching import Batcher
    from reconciler.service.transport.listener import (
        Serving,
        on_signals,
        one_queue,
        run_loop,
        serve,
    )
    from reconciler.service.transport.logs import set_up_logs
    from reconciler.service.transport.observer import Observer
    from reconciler.service.transport.ui import Drawing

    require_seal_key(connection)
    service = connection.service
    with open_service(connection, create=True) as opened:
        set_up_logs(log_format)
        opened.hold_seal_key()
        if not _has_token(opened):
            # Until then no caller is known.
            address = shlex.quote(visible(with_absolute_path(service)))
            _announce(
                log_format,
                "This service has no token yet, so it refuses every request. Make the first one:\n"
                f"  reconciler token create --name admin --role admin --service {address}",
            )
        store, dispatcher = opened.store, opened.dispatcher
        serving = Serving(
            batcher=Batcher(
                dispatcher,
                one_queue if is_file(service) else dispatcher.organization_of,
                queues_share=not is_file(service),
            ),
            observer=Observer(),
            listening=calls,
            metrics=metrics,
            tls=tls,
            exchange=exchange(opened) if exchange else None,
            figures=partial(_figures, opened, service),
            is_open=partial(_is_open, opened),
            abandon=store.abandon,
            on_ready=partial(_ready, log_format),
            drawing=Drawing(draw, served_policy()),
            until=partial(on_signals, reload=partial(_reload, tls)),
        )
        run_loop(serve(serving))


def _has_token(opened: IdentityService) -> bool:
    """Return whether any caller can sign in: there is a token, or a rule that gives some."""
    with opened.store.snapshot() as view:
        return bool(view.tokens() or view.trusts())


def _is_open(opened: IdentityService) -> bool | None:
    try:
        return _has_token(opened)
    except StoreError:
        return None


def _ready(log_format: str, address: str) -> None:
    """Print the address of the server once it can answer calls."""
    collect_seldom()
    return_large_memory()
    _announce(log_format, f"listening on {address}")


def _reload(certificate: Certificate | None) -> None:
    """Read the certificate of the server again, and log what came of it."""
    if certificate is None:
        LOG.info("SIGHUP: there is no certificate to read again")
    else:
        certificate.read_again(LOG)


def _announce(log_format: str, words: str) -> None:
    """Print a message for the person who started the server; for machines, as a record."""
    if log_format == "json":
        LOG.info(words)
    else:
        click.echo(words, err=True)


def _figures(opened: IdentityService, service: str) -> StoreFigures | None:
    from reconciler.service.transport.observer import StoreFigures

    try:
        with opened.store.snapshot() as view:
            heads = view.heads()
    except StoreError:
        return None
    return StoreFigures(
        events=sum(head.events for head in heads),
        organizations=len(heads),
        last_commit=max((head.sequence for head in heads), default=0) / MICROSECONDS,
        size=_size_of(service),
    )


def _size_of(service: str) -> int | None:
    """Return the size of a store in bytes; None where its files are not on this machine."""
    if not is_file(service):
        return None
    path = store_path(service)
    return sum(file.stat().st_size for file in (path, log_of(path)) if file.exists())
