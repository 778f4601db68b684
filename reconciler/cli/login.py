"""``reconciler login`` and ``logout``, which store tokens; and the credentials that a run uses."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Sequence

import click

from reconciler.cli.connection import Connection
from reconciler.cli.options import command
from reconciler.cli.settings import TOKEN, variable
from reconciler.errors import AccessDeniedError, UsageError
from reconciler.report.visible import visible
from reconciler.service_client.credentials import (
    MAX_FILE,
    Credentials,
    FixedToken,
    NoToken,
    ShortToken,
    by_key_file,
    read_key,
    read_private,
    token_of,
)
from reconciler.service_client.endpoint import Endpoint, parse_endpoint
from reconciler.service_client.stored_tokens import forget_token, store_token, stored_token

origin_argument = click.argument("origin", metavar="ORIGIN")


@command("login", example="https://id.example.com")
@origin_argument
def login_command(origin: str) -> None:
    """Store a token for ORIGIN, such as https://id.example.com.

    The token is read from the standard input or, on a terminal, asked for without being shown.
    It is sent to this origin only.
    """
    asked = _origin(origin)
    token = token_of(_typed(asked) if sys.stdin.isatty() else _piped(), "the standard input")
    path = store_token(asked, token, os.environ)
    click.echo(f"Stored the token for {asked} in {visible(str(path))}.", err=True)


@command("logout", example="https://id.example.com")
@origin_argument
def logout_command(origin: str) -> None:
    """Remove the token that is stored for ORIGIN. It stays valid until it is revoked or expires."""
    asked = _origin(origin)
    if not forget_token(asked, os.environ):
        raise UsageError(
            f"no token is stored for {asked}",
            remedy="An origin is the scheme, the host and the port, as given to `login`.",
        )
    click.echo(f"Removed the token for {asked}.", err=True)


def _origin(text: str) -> str:
    """Return the origin that was named, if a token could be sent to it."""
    try:
        endpoint = parse_endpoint(text)
    except UsageError as failure:
        raise UsageError(
            failure.problem,
            remedy="Write an origin, https://HOST[:PORT]; http:// is for this machine alone.",
        ) from None
    if endpoint.prefix:
        raise UsageError(
            f"{endpoint.address} is more than an origin",
            remedy="A token is stored for a whole origin, all of its paths: write "
            f"{endpoint.same_origin}.",
        )
    return endpoint.same_origin


def _typed(origin: str) -> str:
    try:
        return getpass.getpass(f"Token for {origin}: ", sys.stderr)
    except EOFError:
        return ""


def _piped() -> str:
    """Return what the standard input holds. A byte beyond ASCII makes it no valid token."""
    return sys.stdin.buffer.read(MAX_FILE).decode("ascii", errors="replace")


_STORED = "`reconciler login` for this origin"


def credentials_of(connection: Connection, endpoint: Endpoint) -> tuple[Credentials, str]:
    """Return the credentials for a service, and in words where they are from.

    A file that is named wins over the environment, and that over a token stored for the origin.
    There is no flag for the token itself: other processes could see it. A service that only
    ``reconciler.yaml`` names gets nothing but the token that this user stored for its origin.

    Raises:
        UsageError: two files are named, or RECONCILER_TOKEN is set and empty.
        LocalFileError, AccessDeniedError: what was given cannot be used, or must not go there.
    """
    ways = {
        "--token-file": connection.token_file,
        "--key-file": connection.key_file,
        "--keyless": connection.keyless,
    }
    given = [flag for flag, way in ways.items() if way]
    _check_keyless(connection)
    if not connection.is_named_outside:
        stored = stored_token(endpoint.origin, os.environ)
        if stored and not given:
            return FixedToken(stored), _STORED
        raise _named_by_a_file(connection, endpoint, given)
    if len(given) > 1:
        raise UsageError("there are two ways to sign in", remedy="Give one of the two files.")
    if connection.keyless:
        from reconciler.service_client.keyless import by_exchange, id_tokens

        source = id_tokens(connection.id_token_file, os.environ)
        return ShortToken(by_exchange(source, endpoint)), "keyless login"
    if file := connection.key_file:
        return ShortToken(by_key_file(read_key(file), endpoint)), f"the key file {file}"
    if file := connection.token_file:
        return FixedToken(token_of(read_private(file), str(file))), f"the file {file}"
    if token := variable(TOKEN, os.environ):
        return FixedToken(token_of(token, TOKEN)), TOKEN
    stored = stored_token(endpoint.origin, os.environ)
    return (FixedToken(stored), _STORED) if stored else (NoToken(), "")


def _check_keyless(connection: Connection) -> None:
    """Refuse a token or a key beside keyless login: a job that has both has a secret to lose.

    Raises:
        UsageError: there is one; or the file of a signed token without keyless login.
    """
    if connection.id_token_file and not connection.keyless:
        raise UsageError("--id-token-file is for keyless login", remedy="Add --keyless.")
    if not connection.keyless:
        return
    beside = {
        TOKEN: os.environ.get(TOKEN),
        "--token-file": connection.token_file,
        "--key-file": connection.key_file,
    }
    for name, value in beside.items():
        if value:
            raise UsageError(
                f"--keyless and {name} are two ways to sign in",
                remedy=f"Leave {name} out: keyless login needs no secret of the service.",
            )


def _named_by_a_file(
    connection: Connection, endpoint: Endpoint, given: Sequence[str]
) -> AccessDeniedError:
    other = "" if given else f", or store a token for it: reconciler login {endpoint.same_origin}"
    return AccessDeniedError(
        f"only reconciler.yaml names the service of environment {connection.environment}",
        remedy=f"A file of a repository never decides where {' or '.join(given) or 'a token'} "
        f"goes. Give --service {connection.service}, or set RECONCILER_SERVICE to it{other}. "
        "Nothing was sent.",
    )
