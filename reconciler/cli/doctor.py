"""``reconciler doctor``: what is set up, where each value came from, and what is wrong with it.

Each check is a line: what was found, or what is wrong and what to do. A check that fails keeps no
other from being made, except those that need what it looked for. Nothing is written, but for the
probe of a sink, which is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from reconciler.cli.clients import secrets_option, takes_connection
from reconciler.cli.configuration_options import perhaps_in_environment
from reconciler.cli.doctor_checks import CHECKS
from reconciler.cli.doctor_line import Line, Status, examine
from reconciler.cli.doctor_service import Setup
from reconciler.cli.options import TolerantCommand, format_option, tree_option
from reconciler.cli.output import draw
from reconciler.cli.process import ExitCode
from reconciler.cli.settings import Connection
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.layout import Forms, Layout, in_json, wrapped
from reconciler.report.visible import visible
from reconciler.resources.call import JsonObject

_COLOURS = {
    Status.OK: "green",
    Status.WARNING: "yellow",
    Status.FAILED: "red",
    Status.NOT_CHECKED: "dim",
}
_STATUS_WIDTH = max(len(status) for status in Status) + 2
_NAME_WIDTH = max(len(check.name) for check in CHECKS) + 2


def _has_failed(lines: Sequence[Line]) -> bool:
    return any(line.status is Status.FAILED for line in lines)


def _as_text(lines: Sequence[Line], layout: Layout) -> str:
    counts = Counter(line.status for line in lines)
    counted = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    return "\n".join([*(_line(line, layout) for line in lines), counted])


def _line(line: Line, layout: Layout) -> str:
    remedy = f". {line.remedy}" if line.remedy else ""
    head = f"{line.status:<{_STATUS_WIDTH}}{line.name:<{_NAME_WIDTH}}"
    text = wrapped(visible(f"{head}{line.text}{remedy}"), layout.width, " " * len(head))
    return layout.style(text[: len(line.status)], _COLOURS[line.status]) + text[len(line.status) :]


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


_FORMS: Forms[Sequence[Line]] = {"text": _as_text, "json": in_json(_as_json)}


@click.command("doctor", cls=TolerantCommand)
@perhaps_in_environment
@takes_connection
@tree_option
@secrets_option
@format_option(*_FORMS)
def doctor_command(connection: Connection, tree: str, secrets_to: str | None, form: str) -> int:
    """Check what is set up: configuration, service, token, sink, clock, Git and CI files.

    One line each: ok, or what to do. Nothing is written but a probe of the sink, which is removed.
    """
    context = click.get_current_context()
    with Setup(context, connection, tree, secrets_to) as setup:
        lines = examine(CHECKS, setup)
    draw(_FORMS[form], lines)
    return ExitCode.ERROR if _has_failed(lines) else ExitCode.DONE
