"""``reconciler login`` and ``logout``: tokens that this user stores, one for each origin."""

from __future__ import annotations

import getpass
import os
import sys

import click

from reconciler.cli.process import ExitCode
from reconciler.errors import UsageError
from reconciler.report.visible import visible
from reconciler.service_client.credentials import MAX_FILE, token_of
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.stored_tokens import forget_token, store_token

_STDIN = "the standard input"

origin_argument = click.argument("origin", metavar="ORIGIN")


@click.command("login")
@origin_argument
def login_command(origin: str) -> int:
    """Store a token for ORIGIN, such as https://id.example.com.

    The token is read from the standard input or, on a terminal, asked for without being shown.
    It is sent to this origin only.
    """
    asked = _origin(origin)
    token = token_of(_typed(asked) if sys.stdin.isatty() else _piped(), _STDIN)
    path = store_token(asked, token, os.environ)
    click.echo(f"Stored the token for {asked} in {visible(str(path))}.", err=True)
    return ExitCode.DONE


@click.command("logout")
@origin_argument
def logout_command(origin: str) -> int:
    """Remove the token that is stored for ORIGIN. It counts until it is revoked or ends."""
    asked = _origin(origin)
    if not forget_token(asked, os.environ):
        raise UsageError(
            f"no token is stored for {asked}",
            remedy="An origin is the scheme, the host and the port, as given to `login`.",
        )
    click.echo(f"Removed the token for {asked}.", err=True)
    return ExitCode.DONE


def _origin(text: str) -> str:
    """Return the origin that was named.

    Raises:
        UsageError: it is no origin that a token could be sent to.
    """
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
    """Return what the standard input holds; characters that no token has stay such."""
    return sys.stdin.buffer.read(MAX_FILE).decode("ascii", errors="replace")
