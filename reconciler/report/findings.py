"""Findings, in words with the line they are about, and as JSON.

A line can hold a secret that was written into a manifest by mistake: it is replaced by ``***``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.report.groups import MANY, NAMED, grouped
from reconciler.report.layout import BARE, NARROWEST, Layout, columns_of, wrapped
from reconciler.report.visible import visible, without_credentials
from reconciler.resources.call import JsonObject

_LOOKS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
FORMAT_VERSION = "1.0"
"""Version of the JSON that commands print."""

_INDENT = "    "
# Stands for the blank between severity and code while a text is wrapped. Visible texts have none.
_HELD = "\0"


SHOW = "Show them with --full."
"""The sentence below a list that is cut on a terminal."""


def finding_as_text(finding: Diagnostic, layout: Layout = BARE) -> str:
    """Return a finding in lines: where and what, the line it is about, then what to do."""
    place = f"{visible(str(finding.location))}: " if finding.location else ""
    name, code = finding.severity.value, finding.code
    text = wrapped(f"{place}{name}{_HELD}{code}: {visible(finding.told)}", layout.width)
    head = layout.style(f"{name} {code}", _LOOKS[finding.severity], "bold")
    lines = [
        text.replace(f"{name}{_HELD}{code}", head, 1),
        *_source(finding.location, layout),
        wrapped(_INDENT + visible(finding.remedy), layout.width),
    ]
    return "\n".join(lines)


def _source(location: SourceLocation | None, layout: Layout) -> list[str]:
    if location is None or not location.line or layout.line_at is None:
        return []
    line = layout.line_at(location)
    if line is None or "\0" in line:  # a file in UTF-16 or UTF-32 is not read as text
        return []
    return [layout.style(each, "dim") for each in excerpt(line, location, layout.width)]


def findings_as_text(findings: Sequence[Diagnostic], layout: Layout = BARE) -> str:
    """Return findings one after the other, and how many there are.

    Where the layout is folded, above ``MANY`` findings of one code a few stand for all.
    """
    groups = finding_groups(findings) if layout.folded else [(each,) for each in findings]
    lines = [*findings_in_short(groups, layout, SHOW), counts(findings)]
    return "\n".join(lines)


def finding_groups(findings: Sequence[Diagnostic]) -> list[tuple[Diagnostic, ...]]:
    """Return findings as groups: those of one code together, where they are many."""
    return grouped(findings, lambda finding: (finding.severity, finding.code), MANY)


def findings_in_short(
    groups: Sequence[Sequence[Diagnostic]], layout: Layout = BARE, hint: str = ""
) -> Iterator[str]:
    """Yield the first few findings of each group, and how many more there are.

    ``hint`` says how to see the others.
    """
    for group in groups:
        yield from (finding_as_text(finding, layout) for finding in group[:NAMED])
        if rest := rest_in_words(group):
            yield layout.style(f"{rest}. {hint}".rstrip(), "bold")


def rest_in_words(group: Sequence[Diagnostic]) -> str:
    """Return how many findings of a group are not shown, or nothing."""
    more = len(group) - NAMED
    return f"and {more} more of {group[0].code}" if more > 0 else ""


def counts(findings: Sequence[Diagnostic]) -> str:
    """Return how many errors, warnings and notes there are, in words."""
    counted = Counter(finding.severity for finding in findings)
    return ", ".join(
        f"{count} {severity.value}{'' if count == 1 else 's'}"
        for severity in Severity
        if (count := counted[severity])
    )


def finding_as_json(finding: Diagnostic) -> JsonObject:
    """Return a finding as JSON-shaped fields."""
    place = finding.location
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "summary": finding.summary,
        "remedy": finding.remedy,
        **({"environments": list(finding.environments)} if finding.environments else {}),
        **({"policy": finding.policy} if finding.policy else {}),
        "file": place.file if place else None,
        "line": place.line if place and place.line else None,
        "column": place.column if place and place.line else None,
        **({"value_from": place.value_from} if place and place.value_from else {}),
    }


LONGEST = 100
"""Characters of a line that are shown at most."""

BEFORE = 60
"""Characters of a long line that are shown before the place at most."""

_CUT = "..."
_HIDDEN = "***"
# A line can have a million characters, so these patterns take time linear in it: a match is tried
# only where a word begins, and a word is not given back once it is read (``++``).
_SECRET_VALUE = re.compile(
    r"(?<![\w-])((?=[\w-]*(?:secret|passw|token|api[_-]?key|credential|private[_-]?key))"
    r"[\w-]++[\"']?\s*+[:=]\s*+)(?!(?:true|false|null|OIDC_\w++|[|>][+-]?)\s*$)\S.*",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\brct_[\w-]+|\beyJ[\w.-]+|(?<=Bearer )\S+")


def excerpt(line: str, location: SourceLocation, width: int = 0) -> list[str]:
    """Return a line with its number, and a caret beneath the column of a location.

    The line is cut around the column where it is long, or wider than so many columns; 0 is no
    limit. There is no caret beneath a hidden secret.
    """
    shown, unchanged = _shown(line)
    column = min(location.column, len(line) + 1)
    number = str(location.line)
    room = max(width, NARROWEST) - len(f"    {number} | ") - 2 * len(_CUT) if width else LONGEST
    text, before = _window(shown, max(column - 1, 0), min(room, LONGEST))
    first = f"    {number} | {visible(text)}"
    if not column or column - 1 > unchanged:
        return [first]
    return [first, f"    {' ' * len(number)} | {' ' * columns_of(visible(text[:before]))}^"]


# Findings come by place, and a line can be a whole file: it is searched for secrets once.
@lru_cache(maxsize=1)
def _shown(line: str) -> tuple[str, int]:
    """Return a line as it can be shown, and how many of its first characters are unchanged."""
    shown = without_secrets(line)
    return shown.rstrip(), equal_start(line, shown)


def equal_start(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def without_secrets(line: str) -> str:
    """Return a line in which all that looks like a secret is replaced by ``***``."""
    return _TOKEN.sub(_HIDDEN, _SECRET_VALUE.sub(rf"\1{_HIDDEN}", without_credentials(line)))


def _window(line: str, before: int, longest: int) -> tuple[str, int]:
    """Return the part of a line around a place, and how many characters are before the place."""
    start = max(before - min(BEFORE, longest * BEFORE // LONGEST), 0) if len(line) > longest else 0
    part = line[start : start + longest]
    left = _CUT if start else ""
    right = _CUT if start + longest < len(line) else ""
    return f"{left}{part}{right}", before - start + len(left)
