"""``reconciler doctor``: what is set up, where each value came from, and what is wrong with it.

Each check is a line: what was found, or what is wrong and what to do. A check that fails keeps no
other from being made, except those that need what it looked for. Nothing is written, but for the
probe of a sink, which is removed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import click

from reconciler.cli.connection import Connection
from reconciler.cli.doctor_checks import CHECKS
from reconciler.cli.doctor_line import Line, Status, examine
from reconciler.cli.doctor_service import Setup
from reconciler.cli.options import command, connection_of
from reconciler.cli.output import print_json, stdout_style, width_of
from reconciler.cli.process import ExitCode
from reconciler.report.findings import FORMAT_VERSION, wrapped
from reconciler.report.visible import Style, visible
from reconciler.resources.call import JsonObject

_COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.FAILED: "red",
    Status.NOT_CHECKED: "dim",
}
_STATUS_WIDTH = max(len(status) for status in Status) + 2
_NAME_WIDTH = max(len(check.name) for check in CHECKS) + 2


@command(
    "doctor",
    example="doctor --env production",
    formats=("text", "json"),
    is_tolerant=True,
    connection=connection_of,
)
def doctor_command(connection: Connection, tree: str, secrets_to: str | None, form: str) -> int:
    """Check what is set up: configuration, service, token, sink, clock, Git and CI files.

    One line each: ok, or what to do. Nothing is written but a probe of the sink, which is removed.
    """
    context = click.get_current_context()
    with Setup(context, connection, tree, secrets_to) as setup:
        lines = examine(CHECKS, setup)
    if form == "json":
        print_json(_as_json(lines))
    else:
        style, width = stdout_style(), width_of(sys.stdout)
        for line in lines:
            click.echo(_as_text(line, style, width))
        click.echo(_counted(lines))
    return ExitCode.ERROR if _has_failed(lines) else ExitCode.DONE


def _has_failed(lines: Sequence[Line]) -> bool:
    return any(line.status is Status.FAILED for line in lines)


def _as_text(line: Line, style: Style, width: int) -> str:
    remedy = f". {line.remedy}" if line.remedy else ""
    head = f"{line.status:<{_STATUS_WIDTH}}{line.name:<{_NAME_WIDTH}}"
    text = wrapped(visible(f"{head}{line.text}{remedy}"), width, " " * len(head))
    return style(text[: len(line.status)], _COLOURS[line.status]) + text[len(line.status) :]


def _counted(lines: Sequence[Line]) -> str:
    counts = Counter(line.status for line in lines)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def _as_json(lines: Sequence[Line]) -> JsonObject:
    return {
        "format_version": FORMAT_VERSION,
        "healthy": not _has_failed(lines),
        "checks": [
            {
                "name": line.name,
                "status": line.status.value.replace(" ", "_"),
                "text": line.text,
                "remedy": line.remedy,
                "facts": line.facts,
            }
            for line in lines
        ],
    }
