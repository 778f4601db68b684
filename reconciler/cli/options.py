"""Commands and their options, made of the table of settings; and where each value came from.

This is the one place where a setting gets its value: click looks for the flag, then for the
variable, then into what ``configured.py`` takes from ``reconciler.yaml``, then for the default.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from reconciler.cli.configured import Need, checked_service, configure, configured
from reconciler.cli.connection import Connection
from reconciler.cli.parameter_types import (
    complete_files,
    complete_folders,
    declared_environments,
)
from reconciler.cli.policies import policy_folders
from reconciler.cli.process import choose, chosen
from reconciler.cli.settings import GROUPS, Setting, variable, warn_of_misspelt
from reconciler.errors import ReconcilerError, UsageError
from reconciler.report.visible import shown_address

if TYPE_CHECKING:
    from reconciler.plan.guards import Allowances
    from reconciler.plan.model import Scope

CONFIGURING = ("env", "config", "var")
"""The settings that choose the configuration."""

_EAGER = (*CONFIGURING, "trusted_config", "against")
"""Settings that are read first, because the configuration or ``--service`` depends on them."""

_ALWAYS = ("service", "tree")
"""Settings that are shown although they have their default."""

_COLUMN = 24
"""Width of the column of flags in a help; a longer flag has a line of its own."""

_WARNED = "reconciler.environment"
_WRONG = "reconciler.wrong-options"


class Option(click.Option):
    """An option that is read from the environment where its flag is not given.

    A variable that is set and empty is an error. It is what a CI job has of a secret or a
    variable that was never set, and the default in its place would name another service.

    Attributes:
        heading: What it stands beneath in a help.
    """

    def __init__(self, heading: str, *names: Any, **more: Any) -> None:
        super().__init__(*names, **more)
        self.heading = heading

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
            if not (isinstance(ctx.command, Command) and ctx.command.is_tolerant):
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


def wrong_options(context: click.Context) -> dict[str, ReconcilerError | click.UsageError]:
    """Return what is wrong with options of a tolerant command, by the names of their values."""
    found: dict[str, ReconcilerError | click.UsageError] = context.meta.setdefault(_WRONG, {})
    return found


def _configure(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Read the configuration once the last of the settings that choose it is known."""
    command = context.command
    given = {**context.params, str(parameter.name): value}
    names = {*CONFIGURING} & {each.name for each in command.params}
    if isinstance(command, Command) and names <= given.keys() and not context.resilient_parsing:
        # Two environments to compare are named by arguments, which are eager for that.
        name = None if context.params.get("one") else given.get("env")
        configure(context, given["config"], name, given.get("var", ()), command.need)
    return value


def _choose(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if not context.resilient_parsing:
        choose(str(parameter.name), value)


def _fold(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not context.resilient_parsing:
        choose("folds", not value)


_OF_THE_PROCESS = {"color": _choose, "verbose": _choose, "quiet": _choose, "full": _fold}
_CALLBACKS: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(CONFIGURING, _configure),
    "service": checked_service,
    **_OF_THE_PROCESS,
}


def options_of(path: str, formats: Sequence[str] = ()) -> list[click.Parameter]:
    """Return the options of a command, in the order of its help.

    Args:
        path: The name of the command, after that of its group.
        formats: The forms of its output; the first is the default.
    """
    return [
        _option(setting, heading, formats)
        for heading, settings in GROUPS.items()
        for setting in settings
        if not setting.commands or path in setting.commands.split(", ")
    ]


def _option(setting: Setting, heading: str, formats: Sequence[str]) -> Option:
    """Return the option of a setting. A text that is not given is empty."""
    flag, _, metavar = setting.flag.partition(" ")
    words = formats if setting.name == "format" else setting.type
    is_choice = isinstance(words, Sequence)
    is_switch = not (metavar or is_choice)
    default = formats[0] if setting.name == "format" else False if is_switch else setting.default
    is_text = metavar and setting.type is None and setting.variable
    if default is None and is_text and not setting.multiple:
        default = ""
    return Option(
        heading,
        [flag, *filter(None, [setting.short]), setting.value],
        type=click.Choice(words) if is_choice else setting.type,
        is_flag=is_switch,
        metavar=metavar or None,
        shell_complete=_completion_of(setting.value, metavar),
        **({} if setting.required else {"default": default}),
        show_default=bool(default),
        multiple=setting.multiple,
        required=setting.required,
        help=f"{setting.help} Repeatable." if setting.multiple else setting.help,
        envvar=setting.variable or None,
        is_eager=setting.value in _EAGER,
        callback=_CALLBACKS.get(setting.value),
        expose_value=setting.value not in _OF_THE_PROCESS,
    )


def _completion_of(name: str, metavar: str) -> Callable[..., Any] | None:
    """Return what completes a value; None for its type."""
    if name == "env":
        return declared_environments
    if "FILE" in metavar or "PATH" in metavar:
        return complete_files
    return complete_folders if metavar == "DIR" else None


class Command(click.Command):
    """A command with settings of the table.

    Attributes:
        example: A whole command, for the help.
        need: Its need for an environment.
        is_tolerant: Whether it runs although options have wrong values: it is there to say so.
    """

    example = ""
    need = Need.NONE
    is_tolerant = False

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, and an example."""
        super().format_help_text(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"Example: {self.example}")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        write_options(self, ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; with ``--verbose``, show first which settings it has from where."""
        if chosen().verbose:
            from reconciler.cli.output import detail

            for name, value in settled(ctx).items():
                detail(f"{name} {value.shown} from {value.origin}")
            for name, place in places_of_variables().items():
                detail(f"variable {name} from {place}")
        return super().invoke(ctx)


class Group(click.Group):
    """A group of commands."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups, and the commands."""
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def write_options(
    command: click.Command, context: click.Context, formatter: click.HelpFormatter
) -> None:
    """Write the options of a command beneath the headings of the table."""
    # Of the program itself, which makes its options without the table.
    helps = {row.value: row.help for rows in GROUPS.values() for row in rows if not row.commands}
    found: dict[str, list[tuple[str, str]]] = {heading: [] for heading in GROUPS}
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)):
            heading = parameter.heading if isinstance(parameter, Option) else "Output"
            found[heading].append((record[0], record[1] or helps[str(parameter.name)]))
    longest = max(len(flag) for rows in found.values() for flag, _ in rows)
    for heading, rows in found.items():
        if rows:
            with formatter.section(heading):
                width = min(longest, _COLUMN)
                formatter.write_dl([(flag.ljust(width), text) for flag, text in rows], _COLUMN)


def group(name: str, doc: str) -> Group:
    """Return a group of commands without commands."""
    return Group(name, params=options_of(name), help=doc)


def command(
    path: str,
    *,
    example: str = "",
    formats: Sequence[str] = (),
    need: Need = Need.NONE,
    within: click.Group | None = None,
    is_tolerant: bool = False,
    **built: Callable[[Mapping[str, Any]], Any],
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command of a function, with its settings of the table.

    The function is given the values that its arguments name, and those of ``MADE``.

    Args:
        path: The name of the command, after that of its group.
        example: Arguments that its help shows.
        formats: The forms of its output; the first is the default.
        need: Its need for an environment.
        within: The group that it is in.
        is_tolerant: Whether it runs although options have wrong values.
        built: More arguments that are made of all values, by name.
    """

    def decorated(function: Callable[..., Any]) -> Command:
        wanted = inspect.signature(function).parameters

        @wraps(function)
        def run(**given: Any) -> Any:
            made_of = {name: build for name, build in {**MADE, **built}.items() if name in wanted}
            values = {**given, **{name: build(given) for name, build in made_of.items()}}
            return function(**{name: values[name] for name in wanted})

        arguments = reversed(run.__dict__.pop("__click_params__", []))
        made = Command(
            path.rpartition(" ")[2],
            callback=run,
            params=[*arguments, *options_of(path, formats)],
            help=inspect.getdoc(function),
        )
        made.example = f"reconciler {path} {example}".rstrip()
        made.need, made.is_tolerant = need, is_tolerant
        if within is not None:
            within.add_command(made)
        return made

    return decorated


paths_argument = click.argument(
    "paths", nargs=-1, metavar="[PATHS]...", shell_complete=complete_files
)


class Settled(NamedTuple):
    """The value of a setting, as far as it may be shown, and the place that it is from."""

    shown: str
    origin: str


def settled(context: click.Context) -> Mapping[str, Settled]:
    """Return the settings of a run that are not the default; ``service`` and ``tree`` always."""
    found = {}
    for option in context.command.params:
        name = str(option.name)
        if not isinstance(option, Option) or name not in context.params or name == "var":
            continue
        source = context.get_parameter_source(name)
        if source is not ParameterSource.DEFAULT or name in _ALWAYS:
            value, show = context.params[name], _SHOWN.get(name, str)
            shown = ", ".join(map(show, value)) if option.multiple else show(value)
            flag = option.opts[0].removeprefix("--")
            found[flag] = Settled(shown, _origin_of(context, option))
    return found


def _origin_of(context: click.Context, option: click.Parameter) -> str:
    """Return where the value of an option is from."""
    source = context.get_parameter_source(str(option.name))
    if source is ParameterSource.COMMANDLINE:
        return option.opts[0]
    if source is ParameterSource.ENVIRONMENT:
        return str(option.envvar)
    if source is ParameterSource.DEFAULT_MAP and (declares := configured().declares):
        return str(declares.place(str(option.name)))
    return "the default"


def places_of_variables() -> Mapping[str, str]:
    """Return where each variable of the manifests has its value from. No value is shown."""
    values = configured().layers.variables
    return {name: str(value.origin) for name, value in values.items() if value}


def shown_sink(address: str) -> str:
    """Return the address of a sink; a command may hold anything, and is left out."""
    kind, _, _ = address.partition(":")
    return address if kind in {"file", "age"} else f"{kind}:..."


def _shown_hook(address: str) -> str:
    """Return a receiver of notices as it may be shown: its path is often a password."""
    from reconciler.service_client.endpoint import parse_hook

    try:
        return parse_hook(address).endpoint.host
    except UsageError:
        return "..."


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "secrets_to": shown_sink,
    "service": shown_address,
    "notify": _shown_hook,
}


def _connection(given: Mapping[str, Any]) -> Connection:
    """Return the connection to a service that settings describe."""
    found, source = configured(), click.get_current_context().get_parameter_source("service")
    fields = Connection.__dataclass_fields__.keys() & given.keys()
    return Connection(
        **{name: given[name] for name in fields if given[name] is not None},
        environment=found.name,
        state=found.state,
        is_named_outside=source is not ParameterSource.DEFAULT_MAP,
    )


def _scope(given: Mapping[str, Any]) -> Scope:
    """Return the scope that settings describe; a command that writes nothing has few of them."""
    from reconciler.plan.model import Scope

    shard, taken = given.get("shard"), given.get("take_over", ())
    taken = {ref.key for ref in taken if not shard or shard.holds(ref.organization)}
    target, exclude = given["target"], given["exclude"]
    return Scope(
        tree=given["tree"],
        prune=given.get("prune", False),
        prune_unmanaged=given.get("prune_unmanaged", False),
        shard=shard,
        rotate_missing=tuple(sorted({ref.key for ref in given.get("rotate_missing", ())})),
        take_over=tuple(sorted(taken)),
        other_tree=given.get("other_tree", ()),
        environment=configured().name,
        target=tuple(sorted({each for some in target for each in some.addresses})),
        exclude=tuple(sorted({each for some in exclude for each in some.addresses})),
    )


def _allowances(given: Mapping[str, Any]) -> Allowances:
    """Return what guards allow a plan, of its settings."""
    from reconciler.plan.guards import Allowances

    lockouts = {each.ref.folded: each for each in given.get("break_glass", ())}
    return Allowances(
        given["allow_updates"],
        given["allow_deletes"],
        adopt=not given.get("no_adopt"),
        lockouts={key: each.ref.address for key, each in lockouts.items()},
        reasons={key: each.reason for key, each in lockouts.items()},
        redo=frozenset(ref.folded for ref in given.get("redo", ())),
    )


MADE: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "connection": _connection,
    "folders": policy_folders,
    "scope": _scope,
    "allowed": _allowances,
}
"""Arguments of commands that are made of several settings."""
