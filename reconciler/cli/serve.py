"""``reconciler serve``."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.connection import Connection
from reconciler.cli.options import keep_owed_option, option, service_option
from reconciler.errors import UsageError
from reconciler.resources.installation import how_to_install, missing_modules


@click.command("serve")
@service_option
@option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="HOST:PORT",
    help="Where to listen; port 0 takes a free one.",
)
@option(
    "--seal-key-file",
    type=click.Path(path_type=Path),
    help="File with the key that seals secrets; beside a SQLite store by default.",
)
@keep_owed_option
@option("--tls-cert", type=click.Path(path_type=Path), help="Certificate chain, in PEM.")
@option("--tls-key", type=click.Path(path_type=Path), help="Key of the certificate, in PEM.")
@option(
    "--behind-proxy",
    is_flag=True,
    help="A proxy speaks TLS for this server: no warning without a certificate.",
)
@option(
    "--metrics-listen",
    metavar="HOST:PORT",
    help="Where to answer /metrics for Prometheus; nowhere by default.",
)
@option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the records on stderr.",
)
def serve_command(
    service: str,
    listen: str,
    seal_key_file: Path | None,
    keep_owed: int,
    tls_cert: Path | None,
    tls_key: Path | None,
    metrics_listen: str | None,
    log_format: str,
    *,
    behind_proxy: bool,
) -> None:
    """Run the identity service: JSON, gRPC and gRPC-web on one port.

    SIGTERM ends it: calls in flight are finished first.
    """
    if (tls_cert is None) != (tls_key is None):
        raise UsageError(
            "a certificate and its key go together", remedy="Give both --tls-cert and --tls-key."
        )
    _require_libraries()
    place = _address("--listen", listen)
    metrics_place = _address("--metrics-listen", metrics_listen) if metrics_listen else None
    from reconciler.cli.server import listen_on, serve_store, warn_of_plain

    if tls_cert is None and not behind_proxy:
        warn_of_plain(place, log_format)
    listening = listen_on(place, metrics_place, (tls_cert, tls_key))
    connection = Connection(service, seal_key_file=seal_key_file, keep_owed=keep_owed)
    serve_store(connection, listening, log_format)


def _require_libraries() -> None:
    """Check the extra before anything is made: some of its libraries are imported late.

    Raises:
        UsageError: a library is not installed.
    """
    missing = missing_modules("serve")
    if missing:
        raise UsageError(
            f"serve needs the extra serve, which is not installed (missing: {', '.join(missing)})",
            remedy=how_to_install("serve"),
        )


def _address(flag: str, text: str) -> tuple[str, int]:
    """Return host and port of a text such as ``127.0.0.1:8080`` or ``[::1]:8080``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"{flag} {text} is not an address to listen on",
            remedy=f"Write {flag} HOST:PORT, such as 127.0.0.1:8080.",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
