"""The command line: its commands, and the one place where errors become words and exit codes."""

from __future__ import annotations

import importlib
import io
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from reconciler import __version__
from reconciler.cli.process import (
    choose,
    end,
    exit_code_of,
    exit_on_signals,
    forget_run,
    lost_output,
    raise_on_signals,
)
from reconciler.errors import (
    InterruptedRunError,
    InvalidManifestsError,
    OutputError,
    ReconcilerError,
)

_RESULTS = (0, 2, 3)
"""Exit codes of a run with a result: an error takes their place if the result was lost."""

# Each command is imported when it is called: start-up time is a feature.
COMMANDS = {
    "validate": "reconciler.cli.validate:validate_command",
    "plan": "reconciler.cli.plan:plan_command",
    "apply": "reconciler.cli.apply:apply_command",
    "undo": "reconciler.cli.undo:undo_command",
    "show": "reconciler.cli.plan:show_command",
    "drift": "reconciler.cli.observe:drift_command",
    "pause": "reconciler.cli.trees:pause_command",
    "resume": "reconciler.cli.trees:resume_command",
    "history": "reconciler.cli.observe:history_command",
    "export": "reconciler.cli.export:export_command",
    "compare": "reconciler.cli.plan:compare_command",
    "render": "reconciler.cli.render:render_command",
    "outputs": "reconciler.cli.observe:outputs_command",
    "explain": "reconciler.cli.explain:explain_command",
    "schema": "reconciler.cli.explain:schema_command",
    "init": "reconciler.cli.init:init_command",
    "doctor": "reconciler.cli.doctor:doctor_command",
    "store": "reconciler.cli.store:store_group",
    "run": "reconciler.cli.run.command:run_command",
    "serve": "reconciler.cli.serve:serve_command",
    "policy": "reconciler.cli.policy:policy_group",
    "secret": "reconciler.cli.secret:secret_group",
    "token": "reconciler.cli.store:token_group",
    "trust": "reconciler.cli.trust:trust_group",
    "machine": "reconciler.cli.trust:machine_group",
    "login": "reconciler.cli.login:login_command",
    "logout": "reconciler.cli.login:logout_command",
    "completion": "reconciler.cli.about:completion_command",
    "version": "reconciler.cli.about:version_command",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if no command has the name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        found: click.Command = getattr(importlib.import_module(module), name)
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options as the table of settings has them, and the commands."""
        from reconciler.cli.options import write_options

        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and call back just before it runs."""
        found = super().resolve_command(ctx, args)
        if callable(ctx.obj):
            ctx.obj()
        return found


@click.group(
    cls=LazyGroup,
    # Colour is decided by report.visible; click is to leave text as it is.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "color": True,
    },
    epilog="Every option can also be set as RECONCILER_ and its name, such as RECONCILER_SERVICE.",
)
# Every command takes these as well; here for those who write them before the command. The table
# of settings, which has their help, is loaded with the command: start-up time is a feature.
@click.option("--color", type=click.Choice(["auto", "always", "never"]))
@click.option("--verbose", "-v", is_flag=True)
@click.option("--quiet", "-q", is_flag=True)
@click.version_option(__version__, message="reconciler %(version)s")
def cli(color: str | None, verbose: bool, quiet: bool) -> None:
    """Plan and apply identity configuration from YAML manifests."""
    for name, value in (("color", color), ("verbose", verbose), ("quiet", quiet)):
        choose(name, value)


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    exit_on_signals()
    try:
        code = run(on_command=raise_on_signals)
        exit_on_signals()
    except KeyboardInterrupt as interruption:  # a second signal, or one just after the command
        exit_on_signals()
        code = 128 + getattr(interruption, "signal_number", signal.SIGINT)
    end(code)


def run(arguments: list[str] | None = None, on_command: Callable[[], None] = lambda: None) -> int:
    """Run the command line; return its exit code. Nothing a user causes becomes a traceback.

    ``on_command`` is called once the command's modules are loaded, before it runs.
    """
    forget_run()
    try:
        result: Any = cli.main(
            arguments, prog_name="reconciler", standalone_mode=False, obj=on_command
        )
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        return _after_printing(leaving.exit_code)
    except click.ClickException as failure:
        from reconciler.cli.suggestions import in_words

        _show_usage(in_words(failure, sys.argv[1:] if arguments is None else arguments))
        return 1
    except ReconcilerError as failure:
        return _show_failure(failure)
    except (click.Abort, KeyboardInterrupt) as interruption:
        cause = interruption.__cause__  # click wraps it in Abort
        if not isinstance(cause, InterruptedRunError):
            cause = InterruptedRunError(signal.SIGINT)
        return _show_failure(cause)
    return _after_printing(result if isinstance(result, int) else 0)


def _show_usage(failure: click.ClickException) -> None:
    """Print a failure of click's on stderr."""
    from reconciler.cli.output import say

    shown = io.StringIO()
    failure.show(shown)
    say(shown.getvalue(), err=True, nl=False)


def _after_printing(code: int) -> int:
    """Return the exit code of a run that ended well, unless its result could not be printed."""
    lost = lost_output()
    if not lost or code not in _RESULTS:
        return code
    return _show_failure(
        OutputError(
            f"the result could not be printed: {lost}",
            remedy="Run the command again with a stdout that can be written.",
        )
    )


def _show_failure(failure: ReconcilerError) -> int:
    """Print an expected failure on stderr; return its exit code."""
    from reconciler.cli.output import show_error, show_warnings

    if isinstance(failure, InvalidManifestsError):
        show_warnings(failure.diagnostics)
    show_error(failure)
    return exit_code_of(failure)
