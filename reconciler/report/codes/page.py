"""The page of all codes, written from their table.

Run as a module, it writes the page into the folder that is named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler.report.codes.code import Code
from reconciler.report.codes.table import PROBLEMS, RISKS, SECTIONS

NAME = "codes.md"
_HEAD = """\
# Codes

Each finding has a code that never changes. `reconciler explain CODE` shows the same text. This page
is written from the program's own table: `make codes`.
"""
_RISKS = """\
## Risks

A risk is not an error: it says what may become weaker, go elsewhere or stop, so that a reviewer
looks at it first.
"""
_PROBLEMS = """\
## Problems that the service reports

The service accepts the application and reports these keys with it.
"""


def codes_page() -> str:
    """Return the page as Markdown; each code is a heading, so that links lead to it."""
    parts = (_HEAD, *_sections(), _RISKS, *_short(RISKS), _PROBLEMS, *_short(PROBLEMS))
    return "\n".join(parts)


def _sections() -> Iterator[str]:
    for title, codes in SECTIONS.items():
        yield f"## {title}\n"
        for code in codes:
            yield from _entry(code)


def _short(sentences: Mapping[str, str]) -> Iterator[str]:
    for name, sentence in sentences.items():
        yield f"### {name}\n\n{as_sentence(sentence)}\n"


def _entry(code: Code) -> Iterator[str]:
    yield f"### {code.name}\n"
    yield f"{as_sentence(code.title)} {code.meaning}\n"
    yield f"**What to do:** {code.remedy}\n"


def as_sentence(words: str) -> str:
    """Return words with a capital at their beginning and one full stop at their end."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


if __name__ == "__main__":
    (Path(sys.argv[1]) / NAME).write_text(codes_page(), encoding="utf-8")
