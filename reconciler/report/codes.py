"""All codes that this program prints, by section and by name, and the page of them.

``codes.toml`` has one entry for each, from which `reconciler explain` and docs/codes.md are
written. Risks and compliance problems have their sentences where they are decided; here they only
join the table. Run as a module, this one writes the page into the folder that is named.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from reconciler.plan.risk import MEANINGS
from reconciler.resources.oidc import MESSAGES


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


def _read() -> Mapping[str, tuple[Code, ...]]:
    content = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        section: tuple(Code(name, **texts) for name, texts in codes.items())
        for section, codes in tomllib.loads(content).items()
    }


SECTIONS = _read()
"""The codes of each section of the page."""

CODES: Mapping[str, Code] = {code.name: code for codes in SECTIONS.values() for code in codes}

RISKS: Mapping[str, str] = MEANINGS
"""Classes of risks and what each means, most dangerous first."""

PROBLEMS: Mapping[str, str] = MESSAGES
"""Keys under which the service reports problems of an application, and what each means."""

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
