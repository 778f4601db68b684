"""Pieces of pages that are made: each stands between two comments of its name."""

from __future__ import annotations

import re
from collections.abc import Iterable


def with_piece(page: str, name: str, lines: Iterable[str]) -> str:
    """Return a page with these lines between the comments of a name."""
    piece = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    text = "\n".join(lines)
    return piece.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)
