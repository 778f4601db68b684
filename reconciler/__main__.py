"""The entry of the program, also as ``python -m reconciler``: signals and streams come first."""

from reconciler.cli.signals import leave_on_signals
from reconciler.resources.process import collect_seldom


def main() -> None:
    """Load the command line, run it and leave with its exit code."""
    leave_on_signals()
    collect_seldom()
    from reconciler.cli.process import open_streams

    open_streams()
    from reconciler.cli.main import main as run_program

    run_program()


if __name__ == "__main__":
    main()
