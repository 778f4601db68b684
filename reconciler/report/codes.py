"""All codes that this program prints, by section and by name, for `explain` and SARIF.

``codes.toml`` has one entry for each; docs/codes.md is written from it. Risks and compliance
problems have their sentences where they are decided; here they only join the table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Code(NamedTuple):
    """One code, as ``reconciler explain`` and the page of codes show it.

    Attributes:
        name: The code, such as ``YAML-DUPLICATE-KEY``. It never changes.
        title: What was found, as a short phrase.
        meaning: What it means and why it matters, in whole sentences.
        remedy: What to do, in whole sentences.
    """

    name: str
    title: str
    meaning: str
    remedy: str


_FILE = Path(__file__).with_suffix(".toml")

SECTIONS: Mapping[str, tuple[Code, ...]] = {
    section: tuple(Code(name, **texts) for name, texts in codes.items())
    for section, codes in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
"""The codes of each section of the page."""

CODES: Mapping[str, Code] = {code.name: code for codes in SECTIONS.values() for code in codes}


def as_sentence(words: str) -> str:
    """Return words with a capital at their beginning and one full stop at their end."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."
