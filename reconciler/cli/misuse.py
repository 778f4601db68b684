"""Words for a command line that cannot be read: an option or a command that does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click
from click.exceptions import NoSuchCommand, NoSuchOption

from reconciler.cli.other_words import COMMANDS, OPTIONS, near


def in_words(failure: click.ClickException, typed: Sequence[str]) -> click.ClickException:
    """Return a failure of click's with a hint that misleads to nothing.

    Args:
        failure: What click found wrong.
        typed: The arguments as they were given.
    """
    if isinstance(failure, NoSuchOption):
        name = _as_typed(failure.option_name, typed)
        hint = OPTIONS.get(name) or _near(name, _options(failure.ctx))
        return _error(f"There is no option {name}", hint, failure.ctx)
    if isinstance(failure, NoSuchCommand):
        name = failure.command_name
        hint = _command_hint(name, failure.ctx)
        return _error(f"There is no command {name!r}", hint, failure.ctx)
    return failure


def _error(problem: str, hint: str, context: click.Context | None) -> click.UsageError:
    return click.UsageError(f"{problem}. {hint}".rstrip(), context)


def _as_typed(option: str, typed: Sequence[str]) -> str:
    """Return an option as it was typed, without its value.

    Of ``-auto-approve`` click takes each letter for an option of its own, and refuses the first
    that there is not.
    """
    if option.startswith("--"):
        return option
    words = (word.partition("=")[0] for word in typed)
    return next((word for word in words if word in OPTIONS and option[1:] in word), option)


def _options(context: click.Context | None) -> Iterable[str]:
    parameters = context.command.get_params(context) if context else ()
    return [name for parameter in parameters for name in parameter.opts if name.startswith("--")]


def _command_hint(name: str, context: click.Context | None) -> str:
    group = context.command if context else None
    known = group.list_commands(context) if isinstance(group, click.Group) and context else []
    is_top = context is not None and context.parent is None
    other = COMMANDS.get(name) if is_top else None
    return other or _near(name, known) or f"There are {', '.join(known)}."


def _near(name: str, known: Iterable[str]) -> str:
    meant = near(name, known)
    return f"Did you mean {meant}?" if meant else ""
