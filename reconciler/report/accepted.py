"""Report of what is written into files: their lines as they were and as they will be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from typing import NamedTuple

from reconciler.report.layout import BARE, Layout
from reconciler.report.visible import Style, visible


class FileChange(NamedTuple):
    """A file as it is and as it will be; None where there is none."""

    name: str
    before: str | None
    after: str | None


def changes_as_text(changes: Sequence[FileChange], layout: Layout = BARE) -> str:
    """Return the lines that differ, file by file, everything hidden made visible."""
    return "\n".join(line for change in changes for line in _lines(change, layout.style))


def _lines(change: FileChange, style: Style) -> Iterator[str]:
    for mark, text in (("---", change.before), ("+++", change.after)):
        yield style(f"{mark} {visible(change.name) if text is not None else '/dev/null'}", "bold")
    before, after = (_LINE.findall(text or "") for text in (change.before, change.after))
    for line in islice(unified_diff(before, after), 2, None):  # after the names of the two sides
        mark, look = line[0], _LOOKS.get(line[0])
        text = line.removesuffix("\n").removesuffix("\r")
        drawn = text if mark == "@" else mark + visible(text[1:])
        yield style(drawn, look) if look else drawn
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LOOKS = {"+": "green", "-": "red", "@": "cyan"}
