"""Options that commands share. Each can be set by flag, then by environment, then by default."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click

from reconciler.cli.configured import configured
from reconciler.cli.parameter_types import (
    BreakGlass,
    BreakGlassType,
    RefType,
    keep_owed_seconds,
    lock_timeout_seconds,
    shard_named,
    tree_named,
)
from reconciler.cli.process import choose
from reconciler.cli.settings import PREFIX, variable, warn_of_misspelt
from reconciler.errors import ReconcilerError
from reconciler.resources.ref import DEFAULT_TREE, ESCAPES_IN_WORDS, Kind, ResourceRef, Shard, fold

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Gives a command an option, or several."""

_WARNED = "reconciler.environment"
_WRONG = "reconciler.wrong-options"


class TolerantCommand(click.Command):
    """A command that runs although options have wrong values: it is there to say so."""


def wrong_options(context: click.Context) -> dict[str, ReconcilerError | click.UsageError]:
    """Return what is wrong with options of a tolerant command, by the names of the options."""
    found: dict[str, ReconcilerError | click.UsageError] = context.meta.setdefault(_WRONG, {})
    return found


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
        try:
            return super().handle_parse_result(ctx, opts, args)
        except (ReconcilerError, click.UsageError) as failure:
            if not isinstance(ctx.command, TolerantCommand):
                raise
            wrong_options(ctx)[self.human_readable_name] = failure
            if self.expose_value:
                has_default = isinstance(self.default, str)
                ctx.params[self.human_readable_name] = self.default if has_default else None
            return None, args

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """Return the value of the variable, if it is set.

        Raises:
            UsageError: it is set and empty.
        """
        if isinstance(self.envvar, str) and not ctx.resilient_parsing:
            variable(self.envvar, os.environ)
        return super().resolve_envvar_value(ctx)


def option(flag: str, *names: str, **settings: Any) -> Decorator:
    """Return an option that the environment can set as ``RECONCILER_`` and its name."""
    name = flag.removeprefix("--")
    variable = PREFIX + name.upper().replace("-", "_")
    return click.option(flag, *names, cls=EnvironmentOption, envvar=variable, **settings)


paths_argument = click.argument("paths", nargs=-1, metavar="[PATHS]...")


keep_owed_option = option(
    "--keep-owed",
    type=keep_owed_seconds,
    default="30d",
    show_default=True,
    metavar="DURATION",
    help="How long a client secret is kept, sealed, until its delivery is acknowledged: from 1h "
    "to 30d.",
)

lock_timeout_option = option(
    "--lock-timeout",
    type=lock_timeout_seconds,
    default="0",
    metavar="SECONDS",
    help="How long to wait for another run to end, such as an apply.",
)

shard_option = option(
    "--shard",
    type=shard_named,
    metavar="I/N",
    help="Look after the I-th of N parts of the tree, by organization, and leave the others alone.",
)


tree_option = option(
    "--tree",
    type=tree_named,
    default=DEFAULT_TREE,
    metavar="NAME",
    show_default=True,
    help="Name of the body of manifests that is applied together.",
)


def format_option(*formats: str) -> Decorator:
    """Return the option for the form of a command's output; the first is the default."""
    return option(
        "--format",
        "form",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


_SCOPE_OPTIONS = {
    "rotate_missing": option(
        "--rotate-missing",
        multiple=True,
        type=RefType(Kind.OIDC_APPLICATION),
        metavar="REF",
        help="Replace the client secret of this application: organization/project/name. The "
        "present one ends at once. Can be given several times.",
    ),
    "break_glass": option(
        "--break-glass",
        multiple=True,
        type=BreakGlassType(),
        metavar="REF=REASON",
        help="Let a plan pass that may lock people out of this object: "
        f"Kind/organization[/project]/name; {ESCAPES_IN_WORDS}. The reason is kept with what is "
        "written. Can be given several times.",
    ),
    "no_adopt": option(
        "--no-adopt",
        is_flag=True,
        help="Block a plan that updates what this tree never applied.",
    ),
    "allow_deletes": option(
        "--allow-deletes",
        type=click.IntRange(min=0),
        metavar="N",
        help="Let a plan pass that deletes up to N objects of a kind.",
    ),
    "allow_updates": option(
        "--allow-updates",
        type=click.IntRange(min=0),
        metavar="N",
        help="Let a plan pass that updates up to N objects of a kind.",
    ),
    "take_over": option(
        "--take-over",
        multiple=True,
        type=RefType(),
        metavar="REF",
        help="Become the owner of this object without a change of its fields: "
        "Kind/organization[/project]/name. Can be given several times.",
    ),
    "other_tree": option(
        "--other-tree",
        multiple=True,
        metavar="PATH",
        help="Do not look in this folder for manifests that keep an object from being "
        "deleted: it belongs to another tree or service. Can be given several times.",
    ),
    "prune_unmanaged": option(
        "--prune-unmanaged",
        is_flag=True,
        help="Delete what no manifest declares and no other tree owns, no matter who made it.",
    ),
    "prune": option(
        "--prune",
        is_flag=True,
        help="Delete what this tree owns and no longer declares.",
    ),
    "shard": shard_option,
    "tree": tree_option,
}


def takes(build: Callable[..., Mapping[str, Any]], options: Mapping[str, Decorator]) -> Decorator:
    """Return a decorator that gives a command options, and what ``build`` makes of their values.

    Args:
        build: Takes the values by name; returns the arguments of the command in their place.
        options: By the name of their value, in the order of the help.
    """

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_built(**given: Any) -> Any:
            values = {name: given.pop(name) for name in options}
            return command(**build(**values), **given)

        with_options: Callable[..., Any] = with_built
        for add in reversed(list(options.values())):
            with_options = add(with_options)
        return with_options

    return decorated


def _scope(
    *,
    tree: str,
    shard: Shard | None,
    prune: bool,
    prune_unmanaged: bool,
    allow_updates: int | None,
    allow_deletes: int | None,
    no_adopt: bool,
    break_glass: tuple[BreakGlass, ...],
    rotate_missing: tuple[ResourceRef, ...],
    take_over: tuple[ResourceRef, ...],
    other_tree: tuple[str, ...],
) -> dict[str, Any]:
    from reconciler.plan.guards import Allowances
    from reconciler.plan.model import Scope

    taken = {ref.key for ref in take_over if shard is None or shard.holds(ref.organization)}
    scope = Scope(
        tree=tree,
        prune=prune,
        prune_unmanaged=prune_unmanaged,
        shard=shard,
        rotate_missing=tuple(sorted({ref.key for ref in rotate_missing})),
        take_over=tuple(sorted(taken)),
        other_tree=other_tree,
        environment=configured().name,
    )
    allowed = Allowances(
        allow_updates,
        allow_deletes,
        adopt=not no_adopt,
        lockouts={fold(one.ref.address): one.ref.address for one in break_glass},
        reasons={fold(one.ref.address): one.reason for one in break_glass},
    )
    return {"scope": scope, "allowed": allowed}


takes_scope = takes(_scope, _SCOPE_OPTIONS)
"""Give a command the options of what a plan may do, as the arguments ``scope`` and ``allowed``."""


def _chosen(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def take(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if not context.resilient_parsing:
            choose(name, value)

    return take


def _fold(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not context.resilient_parsing:
        choose("folds", not value)


full_option = option(
    "--full",
    is_flag=True,
    expose_value=False,
    callback=_fold,
    help="Show long lists whole on a terminal too: every change, finding and result. Otherwise "
    "equal ones stand together, and those without a risk are counted above the fiftieth.",
)

_OUTPUT_OPTIONS = (
    option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        expose_value=False,
        callback=_chosen("color"),
        help="Colour of the output; auto is the default: on a terminal, and as NO_COLOR and "
        "FORCE_COLOR say.",
    ),
    option(
        "--verbose",
        "-v",
        is_flag=True,
        expose_value=False,
        callback=_chosen("verbose"),
        help="Tell requests and timings on stderr.",
    ),
    option(
        "--quiet",
        "-q",
        is_flag=True,
        expose_value=False,
        callback=_chosen("quiet"),
        help="No progress, notes or hints.",
    ),
)


def with_output_options(command: click.Command) -> click.Command:
    """Return a command that has the options, as have the commands in it."""
    has_them = any("--color" in parameter.opts for parameter in command.params)
    if not has_them:
        for add in _OUTPUT_OPTIONS:
            add(command)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_output_options(inner)
    return command
