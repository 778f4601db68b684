"""``--keep-owed``: how long a store of our own keeps a client secret for its delivery."""

from __future__ import annotations

from typing import Any

import click

from reconciler.cli.life import life_in_seconds
from reconciler.errors import UsageError
from reconciler.report.visible import visible

MIN_KEEP_OWED = 60 * 60  # seconds
MAX_KEEP_OWED = 30 * 24 * 60 * 60


class _KeepOwedType(click.ParamType["int"]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        seconds = life_in_seconds(value, "--keep-owed 30d")
        if not MIN_KEEP_OWED <= seconds <= MAX_KEEP_OWED:
            raise UsageError(
                f"--keep-owed {visible(value)} is out of range",
                remedy="Write a duration from 1h to 30d: --keep-owed 7d.",
            )
        return seconds


def keep_owed_settings() -> dict[str, Any]:
    """Return type, metavar and help of the option."""
    return {
        "type": _KeepOwedType(),
        "metavar": "DURATION",
        "help": "How long a client secret is kept, sealed, until its delivery is acknowledged:"
        " from 1h to 30d.  [default: 30d]",
    }
