"""Watching an apply from the terminal: progress on stderr, and signals that ask it to stop."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Self

import click

from reconciler.apply.outcome import Progress
from reconciler.cli.output_choice import chosen
from reconciler.cli.signals import SIGNALS
from reconciler.errors import InterruptedRunError
from reconciler.plan.model import Change
from reconciler.report.progress import progress_bar, progress_line

TERMINAL_SECONDS = 0.1
LOG_SECONDS = 5.0
_REST_OF_LINE = "\x1b[K"  # clears it


class TerminalWatch:
    """Shows progress of long work, and takes the first SIGINT or SIGTERM as a wish to stop.

    A second signal ends the run at once; what is in flight is then in the journal.
    """

    def __init__(self) -> None:
        self._signal = 0
        self._shown = 0.0
        # Among the lines of --verbose a bar would be torn.
        self._is_terminal = sys.stderr.isatty() and not chosen().verbose
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._take) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._is_terminal and self._shown:
            click.echo(f"\r{_REST_OF_LINE}", err=True, nl=False)

    def begins(self, changes: Sequence[Change]) -> None:
        """Do nothing: only what is done is shown."""

    def progress(self, progress: Progress) -> None:
        """Show how far the run is, now and then: as a bar on a terminal, else as lines."""
        if chosen().quiet:
            return
        now = time.monotonic()
        pause = TERMINAL_SECONDS if self._is_terminal else LOG_SECONDS
        if now - max(self._shown, self._began) < pause:
            return
        self._shown = now
        if not self._is_terminal:
            click.echo(progress_line(progress.done, progress.total), err=True)
            return
        columns = shutil.get_terminal_size().columns
        bar = progress_bar(progress.done, progress.total, now - self._began, columns)
        click.echo(f"\r{bar}{_REST_OF_LINE}", err=True, nl=False)

    def stop_signal(self) -> int:
        """Return the signal that asked to stop, or 0."""
        return self._signal

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            raise InterruptedRunError(number)
        self._signal = number
        click.echo("\nStopping: what was begun is finished, nothing new is started.", err=True)
