"""Where the program begins: it sees to signals and streams before its other modules are loaded."""

from __future__ import annotations

from typing import NoReturn

from reconciler.cli.ending import exit_on_signals
from reconciler.cli.streams import open_streams


def main() -> NoReturn:
    """Load the command line and run it."""
    exit_on_signals()
    open_streams()
    from reconciler.cli.main import main as run_program

    run_program()
