"""The table of all codes that this program prints, by section and by name.

Each has one entry here, from which `reconciler explain` and docs/codes.md are written. Risks and
compliance problems have their sentences where they are decided; here they only join the table.
Run as a module, it writes the page of all codes into the folder that is named.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler.plan.risk import MEANINGS
from reconciler.report.codes import Code, files, manifests, runs
from reconciler.resources.oidc import MESSAGES

SECTIONS: Mapping[str, tuple[Code, ...]] = {
    "Environment": files.ENVIRONMENT,
    "Files": files.FILES,
    "YAML": files.YAML,
    "Files of scripts": files.SCRIPTS,
    "Manifests": manifests.MANIFESTS,
    "Fields": manifests.SCHEMA,
    "Names": manifests.NAMES,
    "URIs": manifests.URIS,
    "Applications, identity providers and actions": manifests.SETTINGS,
    "References": manifests.REFERENCES,
    "Plans": runs.PLANS,
    "Guards": runs.GUARDS,
    "Drift": runs.DRIFT,
    "Apply": runs.APPLIES,
    "Client secrets": runs.SECRETS,
    "Interrupted runs": runs.RECOVERY,
    "Servers": runs.SERVERS,
}

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
