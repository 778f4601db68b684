"""Options that commands share. Each can be set by flag, then by environment, then by default."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from reconciler.cli.environment import PREFIX, is_ci, variable, warn_of_misspelt
from reconciler.cli.refs import GlassType, RefType
from reconciler.errors import UsageError
from reconciler.resources.ref import ESCAPES_IN_WORDS, Kind
from reconciler.resources.shard import Shard, read_shard

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_SERVICE = "sqlite:.reconciler/identity.db"
_WARNED = "reconciler.environment"


class EnvironmentOption(click.Option):
    """An option that is read from the environment where its flag is not given.

    A variable that is set and empty is an error. It is what a CI job has of a secret or a
    variable that was never set, and the default in its place would name another service.
    """

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Take the value; the first option of a run that is read warns of misspelt variables.

        Options of the output alone, which every command has, are not exposed and do not warn.
        """
        is_read = self.expose_value and not ctx.resilient_parsing
        if is_read and not ctx.meta.setdefault(_WARNED, False):
            ctx.meta[_WARNED] = True
            warn_of_misspelt(os.environ)
        return super().handle_parse_result(ctx, opts, args)

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable, if it is set.

        Raises:
            UsageError: it is set and empty.
        """
        if isinstance(self.envvar, str) and not ctx.resilient_parsing:
            variable(self.envvar, os.environ)
        return super().resolve_envvar_value(ctx)


def option(flag: str, *names: str, **settings: Any) -> Callable[[Command], Command]:
    """Return an option that the environment can set as ``RECONCILER_`` and its name."""
    name = flag.removeprefix("--")
    variable = PREFIX + name.upper().replace("-", "_")
    return click.option(flag, *names, cls=EnvironmentOption, envvar=variable, **settings)


paths_argument = click.argument("paths", nargs=-1, metavar="[PATHS]...")


def _named(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the service; in CI it is named, because a default there is a throw-away store.

    Raises:
        UsageError: it is empty; or CI is set, no service is named, and the command needs one.
    """
    if not value.strip():
        raise UsageError(
            "--service is empty",
            remedy="Write the address of the service, such as --service https://HOST, or leave "
            f"--service out for {DEFAULT_SERVICE}. A variable that CI did not set is empty.",
        )
    guessed = ctx.get_parameter_source("service") is ParameterSource.DEFAULT
    if (
        guessed
        and is_ci(os.environ)
        and not ctx.params.get("against")
        and not ctx.resilient_parsing
    ):
        raise UsageError(
            "no service is named, and CI is set",
            remedy="Give --service ADDRESS or set RECONCILER_SERVICE. For a store of this job "
            f"alone: --service {DEFAULT_SERVICE}.",
        )
    return value


service_option = option(
    "--service",
    callback=_named,
    default=DEFAULT_SERVICE,
    show_default=True,
    metavar="ADDRESS",
    help="The identity service: sqlite:PATH, postgresql://USER@HOST/DATABASE or https://HOST.",
)


class _ShardType(click.ParamType["Shard"]):
    name = "shard"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Shard:
        if isinstance(value, Shard):
            return value
        try:
            return read_shard(value)
        except ValueError as fault:
            raise UsageError(
                f"--shard {value!r} {fault}",
                remedy="Write I/N, the first of four being 1/4. Where jobs count from 0, add 1: "
                '--shard "$((JOB_COMPLETION_INDEX + 1))/4".',
            ) from None


shard_option = option(
    "--shard",
    type=_ShardType(),
    metavar="I/N",
    help="Look after the I-th of N parts of the tree, by organization, and leave the others alone.",
)


class _TreeType(click.ParamType["str"]):
    name = "tree"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            raise UsageError(
                "--tree is empty",
                remedy="Write the name of the tree, or leave --tree out for the tree default. A "
                "variable that CI did not set is empty.",
            )
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"--tree {value.encode(errors='backslashreplace').decode()} is not valid UTF-8",
                remedy="Write the name of the tree in UTF-8, as the manifests are.",
            ) from None
        return str(value)


tree_option = option(
    "--tree",
    type=_TreeType(),
    default="default",
    metavar="NAME",
    show_default=True,
    help="Name of the body of manifests that is applied together.",
)


def format_option(*formats: str) -> Callable[[Command], Command]:
    """Return the option for the form of a command's output; the first is the default."""
    return option(
        "--format",
        "form",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


full_option = option(
    "--full",
    is_flag=True,
    help="Show every create and every result on a terminal too; otherwise creates without a "
    "risk, and what was made, up to the fiftieth.",
)

_SCOPE_OPTIONS = (
    tree_option,
    shard_option,
    option(
        "--prune",
        is_flag=True,
        help="Delete what this tree owns and no longer declares.",
    ),
    option(
        "--prune-unmanaged",
        is_flag=True,
        help="Delete what no manifest declares and no other tree owns, no matter who made it.",
    ),
    option(
        "--other-tree",
        multiple=True,
        metavar="PATH",
        help="Do not look in this folder for manifests that keep an object from being "
        "deleted: it belongs to another tree or service. Can be given several times.",
    ),
    option(
        "--take-over",
        multiple=True,
        type=RefType(),
        metavar="REF",
        help="Become the owner of this object without a change of its fields: "
        "Kind/organization[/project]/name. Can be given several times.",
    ),
    option(
        "--allow-updates",
        type=click.IntRange(min=0),
        metavar="N",
        help="Let a plan pass that updates up to N objects of a kind.",
    ),
    option(
        "--allow-deletes",
        type=click.IntRange(min=0),
        metavar="N",
        help="Let a plan pass that deletes up to N objects of a kind.",
    ),
    option(
        "--no-adopt",
        is_flag=True,
        help="Block a plan that updates what this tree never applied.",
    ),
    option(
        "--break-glass",
        multiple=True,
        type=GlassType(),
        metavar="REF=REASON",
        help="Let a plan pass that may lock people out of this object: "
        f"Kind/organization[/project]/name; {ESCAPES_IN_WORDS}. The reason is kept with what is "
        "written. Can be given several times.",
    ),
    option(
        "--rotate-missing",
        multiple=True,
        type=RefType(Kind.OIDC_APPLICATION),
        metavar="REF",
        help="Replace the client secret of this application: organization/project/name. The "
        "present one ends at once. Can be given several times.",
    ),
)


def scope_options(command: Command) -> Command:
    """Add the options that decide what a plan may do."""
    for add in _SCOPE_OPTIONS:
        command = add(command)
    return command
