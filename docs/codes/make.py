"""Write the page of every code that the program prints: ``python -m docs.codes.make``.

Run it at the top of a checkout. A test keeps ``docs/codes.md`` in step with the table of codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler.plan.risk import MEANINGS, PROBLEMS
from reconciler.report.codes import SECTIONS, Code, as_sentence

PAGE = Path(__file__).parents[1] / "codes.md"
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
    parts = (_HEAD, *_sections(), _RISKS, *_short(MEANINGS), _PROBLEMS, *_short(PROBLEMS))
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


if __name__ == "__main__":
    PAGE.write_text(codes_page(), encoding="utf-8")
