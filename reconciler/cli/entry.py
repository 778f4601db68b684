"""Where the program begins: it is ready for signals before its other modules are loaded."""

from __future__ import annotations

from typing import NoReturn

from reconciler.cli.ending import exit_on_signals


def main() -> NoReturn:
    """Load the command line and run it."""
    exit_on_signals()
    from reconciler.cli.main import main as run_program

    run_program()
