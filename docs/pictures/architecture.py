"""Draw the parts of the package: ``python -m docs.pictures.architecture``, in a checkout.

The boxes and lines follow from the import tables in ``tests/architecture``, which every change is
held to. A part stands above all that it may import; a line that follows from two others is left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.test_imports import MAY_IMPORT, NOUNS, SERVICE_MAY_IMPORT

PICTURE = Path(__file__).parent / "architecture.svg"
NOUN = "resources  errors  diagnostics  state"
WIDE, HIGH, GAP, ROW = 128, 34, 80, 84  # pixels: of a box, between boxes, from row to row
INDENTED = 3  # this row leaves room for lines from the top row down to the left
PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>The parts of the package, and what each may import</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"
orient="auto"><path d="M0 0 8 4 0 8z" fill="#243044"/></marker></defs>
<rect width="{width}" height="{height}" fill="#ffffff"/>
<g fill="#eef2f8">
<rect x="20" y="15" width="{ours}" height="{side}" rx="10"/>
<rect x="{from_}" y="15" width="{theirs}" height="{side}" rx="10"/>
</g>
<g fill="#243044" font-family="sans-serif" font-size="15" text-anchor="middle">
<text x="{left}" y="38" font-weight="bold">the reconciler</text>
<text x="{right}" y="38" font-weight="bold">service</text>
<g stroke="#243044" stroke-width="1.2">
{lines}
</g>
{boxes}
</g>
</svg>
"""

Graph = Mapping[str, set[str]]


def reconciler() -> Graph:
    """Return what each part of the reconciler may import, with the nouns as one part."""
    parts = set(MAY_IMPORT) - NOUNS - {"__init__", "__main__", "service"}
    return {NOUN: set(), **{part: (MAY_IMPORT[part] & parts) | {NOUN} for part in sorted(parts)}}


def service() -> Graph:
    """Return what each part of the service may import of the service."""
    parts = set(SERVICE_MAY_IMPORT)
    return {
        part: {needed.split("/")[0] for needed in SERVICE_MAY_IMPORT[part]} & parts
        for part in sorted(parts)
    }


def reduced(graph: Graph) -> Graph:
    """Return a graph without the lines that follow from two others."""

    def beneath(part: str) -> set[str]:
        return graph[part].union(*(beneath(each) for each in graph[part]))

    return {
        part: needed - set().union(*(beneath(each) for each in needed))
        for part, needed in graph.items()
    }


def rows(graph: Graph) -> list[list[str]]:
    """Return the parts row by row from the bottom: each above all that it needs."""

    def level(part: str) -> int:
        return 1 + max((level(each) for each in graph[part]), default=-1)

    return [
        [part for part in graph if level(part) == number]
        for number in range(1 + max(map(level, graph)))
    ]


def places(graph: Graph, left: int, bottom: int) -> dict[str, tuple[int, int, int]]:
    """Return left edge, top edge and width of the box of each part."""
    found: dict[str, tuple[int, int, int]] = {}
    for number, row in enumerate(rows(graph)):
        at = left + (WIDE + GAP if number == INDENTED else 0)
        for part in sorted(row, key=lambda part: _middle(graph[part], found)):
            width = max(WIDE, 9 * len(part) + 20)
            found[part] = (at, bottom - number * ROW, width)
            at += width + GAP
    return found


def _middle(needed: set[str], boxes: Mapping[str, tuple[int, int, int]]) -> float:
    """Return the mean left edge of parts, so that few lines cross."""
    return sum(boxes[part][0] for part in needed) / max(len(needed), 1)


def _lines(graph: Graph, boxes: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    for part, needed in reduced(graph).items():
        left, top, width = boxes[part]
        for other in sorted(needed):
            to_left, to_top, to_width = boxes[other]
            yield (
                f'<line x1="{left + width // 2}" y1="{top + HIGH}" x2="{to_left + to_width // 2}" '
                f'y2="{to_top - 3}" marker-end="url(#tip)"/>'
            )


def _boxes(boxes: Mapping[str, tuple[int, int, int]]) -> Iterator[str]:
    for part, (left, top, width) in boxes.items():
        yield (
            f'<rect x="{left}" y="{top}" width="{width}" height="{HIGH}" rx="6" fill="#d5e3f7" '
            f'stroke="#243044"/><text x="{left + width // 2}" y="{top + 22}">{part}</text>'
        )


def as_svg() -> str:
    """Return the picture: the reconciler on the left, the service that it calls on the right."""
    ours, theirs = reconciler(), service()
    bottom = 70 + ROW * (max(len(rows(ours)), len(rows(theirs))) - 1)
    left = places(ours, 40, bottom)
    middle = 40 + max(at + width for at, _, width in left.values())
    right = places(theirs, middle + 40, bottom)
    edge = 20 + max(at + width for at, _, width in right.values())
    return PAGE.format(
        width=edge + 20,
        height=bottom + 64,
        side=bottom + 34,
        ours=middle - 30,
        theirs=edge - middle - 20,
        from_=middle + 20,
        left=middle // 2,
        right=(middle + edge) // 2 + 10,
        lines="\n".join([*_lines(ours, left), *_lines(theirs, right)]),
        boxes="\n".join([*_boxes(left), *_boxes(right)]),
    )


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(as_svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
