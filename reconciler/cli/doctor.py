"""``reconciler doctor``: what is set up, where each value came from, and what is wrong with it.

Each check is a line: what was found, or what is wrong and what to do. A check that fails keeps no
other from being made, except those that need what it looked for. Nothing is written, but for the
probe of a sink, which is removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import click

from reconciler.cli.clients import secrets_option, takes_connection
from reconciler.cli.configuration_options import perhaps_in_environment
from reconciler.cli.doctor_checks import CHECKS
from reconciler.cli.doctor_line import Status, Told, examine
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


def _has_failed(found: Iterable[Told]) -> bool:
    return any(told.status is Status.FAILED for told in found)


def _as_text(found: Mapping[str, Told], layout: Layout) -> str:
    counts = Counter(told.status for told in found.values())
    counted = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    return "\n".join([*(_line(name, told, layout) for name, told in found.items()), counted])


def _line(name: str, told: Told, layout: Layout) -> str:
    remedy = f". {told.remedy}" if told.remedy else ""
    head = f"{told.status:<{_STATUS_WIDTH}}{name:<{_NAME_WIDTH}}"
    text = wrapped(visible(f"{head}{told.text}{remedy}"), layout.width, " " * len(head))
    return layout.style(text[: len(told.status)], _COLOURS[told.status]) + text[len(told.status) :]


def _as_json(found: Mapping[str, Told]) -> JsonObject:
    return {
        "format_version": FORMAT_VERSION,
        "healthy": not _has_failed(found.values()),
        "checks": [
            {
                "name": name,
                "status": told.status.value.replace(" ", "_"),
                "text": told.text,
                "remedy": told.remedy,
                "facts": told.facts,
            }
            for name, told in found.items()
        ],
    }


_FORMS: Forms[Mapping[str, Told]] = {"text": _as_text, "json": in_json(_as_json)}


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
        found = examine(CHECKS, setup)
    draw(_FORMS[form], found)
    return ExitCode.ERROR if _has_failed(found.values()) else ExitCode.DONE
