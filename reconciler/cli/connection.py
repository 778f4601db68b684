"""Settings of the connection to a remote service, kept with the command that is running.

They say nothing of what is done, so commands do not take them as arguments: whoever opens the
service asks here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click

from reconciler.cli.environment import TOKEN, variable
from reconciler.cli.keep_owed import MAX_KEEP_OWED, keep_owed_settings
from reconciler.cli.options import Command, option, service_option

ServiceKind = Literal["auto", "reconciler", "zitadel"]
_PLACE = "reconciler.connection"


@dataclass(frozen=True, slots=True)
class Connection:
    """Settings of the connection to a remote service.

    Attributes:
        max_rps: Requests a second, or 0 for as many as go.
        use_proxy: Whether to go through the proxy that the environment names.
        seal_key_file: The key that all servers of a database share.
        keep_owed: How long an embedded store keeps a secret for its delivery, in seconds.
    """

    service_kind: ServiceKind = "auto"
    token_file: Path | None = None
    key_file: Path | None = None
    max_rps: float = 0.0
    use_proxy: bool = False
    seal_key_file: Path | None = None
    keep_owed: int = MAX_KEEP_OWED


def connection() -> Connection:
    """Return what the running command was told about reaching its service."""
    context = click.get_current_context(silent=True)
    found = context.meta.get(_PLACE) if context else None
    return found if isinstance(found, Connection) else Connection()


def token_in_environment() -> str:
    """Return ``RECONCILER_TOKEN``, or nothing. There is no flag for it: others could see it.

    Raises:
        UsageError: it is set and empty.
    """
    return variable(TOKEN, os.environ)


def proxy_in_environment() -> str | None:
    """Return the proxy that the environment names for https, or none."""
    return os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy") or None


def _kept(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None:
            known = context.meta.get(_PLACE, Connection())
            context.meta[_PLACE] = replace(known, **{name: value})

    return keep


def _remote(flag: str, name: str, **settings: Any) -> Callable[[Command], Command]:
    return option(flag, name, expose_value=False, callback=_kept(name), **settings)


seal_key_option = _remote(
    "--seal-key-file",
    "seal_key_file",
    type=click.Path(path_type=Path),
    help="File with the key that seals secrets: needed with postgresql:, beside a SQLite store"
    " by default.",
)


keep_owed_option = _remote("--keep-owed", "keep_owed", **keep_owed_settings())


def service_options(command: Command) -> Command:
    """Add ``--service``, and the options for a service that is elsewhere."""
    for add in (
        _remote(
            "--use-proxy",
            "use_proxy",
            is_flag=True,
            help="Go through the proxy in HTTPS_PROXY, which is not looked at otherwise.",
        ),
        _remote(
            "--max-rps",
            "max_rps",
            type=click.FloatRange(min=0),
            metavar="N",
            help="At most N requests a second.",
        ),
        _remote(
            "--key-file",
            "key_file",
            type=click.Path(path_type=Path),
            help="Key file of a service user, to have tokens with.",
        ),
        _remote(
            "--token-file",
            "token_file",
            type=click.Path(path_type=Path),
            help="File with the token; otherwise it is in RECONCILER_TOKEN.",
        ),
        _remote(
            "--service-kind",
            "service_kind",
            type=click.Choice(["auto", "reconciler", "zitadel"]),
            help="What an https service is; auto asks it.",
        ),
        service_option,
    ):
        command = add(command)
    return command
