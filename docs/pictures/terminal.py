"""The output of a program on a terminal, with its colours, as an SVG picture."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

WIDTH, LINE, EDGE = 8.4, 20, 20  # pixels: of a character, of a line, around the text
INK, PAPER = "#d8dee9", "#1b212c"
_LOOKS = {
    "1": "font-weight:bold",
    "2": "opacity:.65",
    "31": "fill:#ff7b85",
    "32": "fill:#8fd694",
    "33": "fill:#f2c55c",
    "36": "fill:#6cd0e0",
}
_CODE = re.compile(r"\x1b\[([0-9;]*)m")


def as_svg(text: str, title: str) -> str:
    """Return a picture of a text in which ANSI codes say how it looks."""
    lines = text.rstrip("\n").splitlines()
    columns = max(len(_CODE.sub("", line)) for line in lines)
    width, height = round(columns * WIDTH + 2 * EDGE), len(lines) * LINE + 2 * EDGE
    rows = "\n".join(
        f'<text x="{EDGE}" y="{EDGE + LINE * number + 14}">{"".join(_spans(line))}</text>'
        for number, line in enumerate(lines)
        if line
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">\n<title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>\n'
        f'<g fill="{INK}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="14">\n{rows}\n</g>\n</svg>\n'
    )


def _spans(line: str) -> Iterator[str]:
    """Yield the parts of a line that look alike.

    Each part names its place and width, so that columns stay in line in every font. A viewer
    drops the blanks around it.
    """
    look, at, column = "", 0, 0
    for code in [*_CODE.finditer(line), None]:
        part = line[at : code.start() if code else len(line)]
        if words := part.strip():
            left = EDGE + (column + len(part) - len(part.lstrip())) * WIDTH
            place = f'x="{left:.1f}" textLength="{len(words) * WIDTH:.1f}"'
            yield f'<tspan {place} style="{look}">{escape(words)}</tspan>'
        column += len(part)
        if code:
            at = code.end()
            look = ";".join(_LOOKS[one] for one in code[1].split(";") if one in _LOOKS)
