"""Clients of the service that a command names: its options, and ways to open the connection.

What only a service elsewhere needs is imported where it is used: an embedded plan starts faster.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from reconciler.apply.durable import make_folder
from reconciler.cli.configured import configured
from reconciler.cli.connection import Connection, is_database, is_remote, no_store, store_path
from reconciler.cli.environment import TOKEN, variable
from reconciler.cli.options import keep_owed_option, option, service_option, takes
from reconciler.cli.output import detail
from reconciler.cli.process import chosen
from reconciler.errors import AccessDeniedError, LocalFileError, UsageError
from reconciler.resources.installation import STATE_FOLDER
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.locks import this_process
from reconciler.service_client.port import ReadOnlyService, ServiceClient
from reconciler.service_client.read_only import EmptyService, OperationsReader, ReadOnlyWire

if TYPE_CHECKING:
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.credentials import Credentials
    from reconciler.service_client.endpoint import Endpoint

STATE = Path(STATE_FOLDER)

_OPTIONS = {
    "service": service_option,
    "service_kind": option(
        "--service-kind",
        type=click.Choice(["auto", "reconciler", "zitadel"]),
        help="What an https service is; auto asks it.",
    ),
    "token_file": option(
        "--token-file",
        type=click.Path(path_type=Path),
        help="File with the token; otherwise it is in RECONCILER_TOKEN.",
    ),
    "key_file": option(
        "--key-file",
        type=click.Path(path_type=Path),
        help="Key file of a service user, to have tokens with.",
    ),
    "max_rps": option(
        "--max-rps",
        type=click.FloatRange(min=0),
        metavar="N",
        help="At most N requests a second.",
    ),
    "use_proxy": option(
        "--use-proxy",
        is_flag=True,
        help="Go through the proxy in HTTPS_PROXY, which is not looked at otherwise.",
    ),
}
_OPTIONS_OF_WRITERS = {
    "seal_key_file": option(
        "--seal-key-file",
        type=click.Path(path_type=Path),
        help="File with the key that seals secrets: needed with postgresql:, beside a SQLite store"
        " by default.",
    ),
    "keep_owed": keep_owed_option,
}


def _connection(**given: Any) -> dict[str, Any]:
    chosen, source = configured(), click.get_current_context().get_parameter_source("service")
    connection = Connection(
        **{name: value for name, value in given.items() if value is not None},
        environment=chosen.name,
        state=chosen.state,
        is_named_outside=source is not ParameterSource.DEFAULT_MAP,
    )
    return {"connection": connection}


takes_connection = takes(_connection, _OPTIONS)
"""Give a command the options of a connection for reading, as the argument ``connection``."""

takes_writing_connection = takes(_connection, {**_OPTIONS, **_OPTIONS_OF_WRITERS})
"""Give a command the options of a connection for writing, as the argument ``connection``."""


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
def open_for_plan(connection: Connection) -> Iterator[ReadOnlyService]:
    """Open a service for asking; a store that does not exist yet holds nothing."""
    if not holds_anything(connection.service):
        yield EmptyService()
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
    require_store(connection.service)
    if is_remote(connection.service):
        from reconciler.service_client.client import read_only_client

        with _remote_service(connection) as remote:
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

        _make_folders([STATE, connection.state])
        with _remote_service(connection) as remote:
            yield client_of(remote)
        return
    from reconciler.cli.embedded import open_wire

    with open_wire(connection, read_only=False) as wire:
        yield OperationsClient(wire, this_process(), until_refused=wire.send_until_refused)


@contextmanager
def _remote_service(connection: Connection) -> Iterator[RemoteService]:
    from reconciler.service_client.client import RemoteService
    from reconciler.service_client.endpoint import parse_endpoint
    from reconciler.service_client.http_wire import HttpWire, Limits

    endpoint = parse_endpoint(connection.service)
    wire = HttpWire(
        endpoint,
        _credentials_of(connection, endpoint),
        Limits(per_second=connection.max_rps),
        proxy=_proxy_in_environment() if connection.use_proxy else None,
        observe=detail if chosen().verbose else None,
    )
    with closing(wire):
        kind, per_second = connection.service_kind, connection.max_rps
        here = this_process()
        yield RemoteService(
            wire, here, kind, endpoint.address, STATE, per_second, connection.settle
        )


def _credentials_of(connection: Connection, endpoint: Endpoint) -> Credentials:
    """Return the credentials for a service.

    A file that is named wins over the environment, and that over a token stored for the origin.
    There is no flag for the token itself: other processes could see it.

    Raises:
        UsageError: two files are named, or RECONCILER_TOKEN is set and empty.
        LocalFileError, AccessDeniedError: what was given cannot be used, or must not go there.
    """
    from reconciler.service_client.credentials import (
        FixedToken,
        KeyFileToken,
        read_key,
        read_private,
        token_of,
    )

    if not connection.is_named_outside:
        return _credentials_for_origin(connection, endpoint)
    if connection.token_file and connection.key_file:
        raise UsageError("there are two ways to sign in", remedy="Give one of the two files.")
    if connection.key_file:
        return KeyFileToken(read_key(connection.key_file), endpoint)
    if file := connection.token_file:
        return FixedToken(token_of(read_private(file), str(file)))
    token = variable(TOKEN, os.environ)
    if token:
        return FixedToken(token_of(token, TOKEN))
    return _stored_credentials(endpoint)


def _stored_credentials(endpoint: Endpoint) -> Credentials:
    """Return the token that this user stored for the origin of a service, or none.

    Raises:
        LocalFileError, AccessDeniedError: what is stored cannot be used.
    """
    from reconciler.service_client.credentials import FixedToken, NoToken
    from reconciler.service_client.stored_tokens import stored_token

    token = stored_token(endpoint.origin, os.environ)
    return FixedToken(token) if token else NoToken()


def _credentials_for_origin(connection: Connection, endpoint: Endpoint) -> Credentials:
    """Return the token that was stored for the origin of a service that only a file names.

    Raises:
        AccessDeniedError: none was stored, or another credential is meant to go there.
    """
    from reconciler.service_client.credentials import NoToken

    stored = _stored_credentials(endpoint)
    files = {"--token-file": connection.token_file, "--key-file": connection.key_file}
    given = [flag for flag, file in files.items() if file]
    if not given and not isinstance(stored, NoToken):
        return stored
    other = "" if given else f", or store a token for it: reconciler login {endpoint.same_origin}"
    raise AccessDeniedError(
        f"only reconciler.yaml names the service of environment {connection.environment}",
        remedy=f"A file of a repository never decides where {' or '.join(given) or 'a token'} "
        f"goes. Give --service {connection.service}, or set RECONCILER_SERVICE to it{other}. "
        "Nothing was sent.",
    )


def _proxy_in_environment() -> str | None:
    return os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or None


def _make_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            make_folder(folder)
        except OSError as failure:
            raise LocalFileError(
                f"cannot make the folder {folder}: {failure.strerror}",
                remedy="Run the command in a folder this user may write to.",
            ) from failure
