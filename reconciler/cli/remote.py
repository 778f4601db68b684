"""A service elsewhere, at an http address: who we are to it, and which kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from reconciler.apply.durable import STATE_FOLDER, make_folder
from reconciler.cli.connection import (
    Connection,
    connection,
    proxy_in_environment,
    token_in_environment,
)
from reconciler.cli.output import detail
from reconciler.cli.output_choice import chosen
from reconciler.errors import LocalFileError, UsageError
from reconciler.service_client.connect import Line, client_of, inquiry_of
from reconciler.service_client.credentials import (
    Credentials,
    FixedToken,
    NoToken,
    read_private,
    token_of,
)
from reconciler.service_client.endpoint import Endpoint, parse_endpoint
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import ServiceClient, ServiceInquiry

STATE = Path(STATE_FOLDER)


@contextmanager
def remote_client(service: str) -> Iterator[ServiceClient]:
    """Open the service at an http address for writing.

    Raises:
        UsageError: the address or the credentials contradict themselves.
        AccessDeniedError: there are no credentials.
        ServiceError: it cannot be reached.
    """
    _make_state_folder()
    with _line_to(service) as line:
        yield client_of(line)


@contextmanager
def remote_inquiry(service: str) -> Iterator[ServiceInquiry]:
    """Open the service at an http address for looking at. Raises as for writing."""
    with _line_to(service) as line:
        yield inquiry_of(line)


@contextmanager
def _line_to(service: str) -> Iterator[Line]:
    from reconciler.service_client.http_wire import HttpWire, Limits

    told, endpoint = connection(), parse_endpoint(service)
    wire = HttpWire(
        endpoint,
        credentials_of(told, endpoint),
        Limits(per_second=told.max_rps),
        proxy=proxy_in_environment() if told.use_proxy else None,
        observe=detail if chosen().verbose else None,
    )
    with closing(wire):
        yield Line(wire, this_process(), told.service_kind, endpoint.address, STATE, told.max_rps)


def credentials_of(told: Connection, endpoint: Endpoint) -> Credentials:
    """Return who we are to a service. A file that is named wins over the environment.

    Raises:
        UsageError: two files are named.
        LocalFileError, AccessDeniedError: what was given cannot be used.
    """
    if told.token_file and told.key_file:
        raise UsageError("there are two ways to sign in", remedy="Give one of the two files.")
    if told.key_file:
        from reconciler.service_client.credentials import KeyFileToken, read_key

        return KeyFileToken(read_key(told.key_file), endpoint)
    if told.token_file:
        return FixedToken(token_of(read_private(told.token_file), str(told.token_file)))
    token = token_in_environment()
    return FixedToken(token_of(token, "RECONCILER_TOKEN")) if token else NoToken()


def _make_state_folder() -> None:
    try:
        make_folder(STATE)
    except OSError as failure:
        raise LocalFileError(
            f"cannot make the folder {STATE}: {failure.strerror}",
            remedy="Run the command in a folder this user may write to.",
        ) from failure
