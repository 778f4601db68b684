"""Findings: what is wrong or dangerous, where, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from reconciler.resources.ref import ResourceRef
from reconciler.resources.strict_json import HALF, Count

T = TypeVar("T")
MAX_SHOWN = 60  # characters of a value in a sentence

# Letters and marks, by Unicode's categories, that nevertheless show nothing (most of them are its
# "default ignorable" code points). With them two names look the same and are not.
BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
)


class Severity(StrEnum):
    """Weight of a finding: an error stops the run, a note is no danger."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


def name_as_text(name: str) -> str:
    """Return the name of a file with the bytes in it that are no UTF-8 written out.

    Python has half a character for each, which no encoding and no JSON parser takes.
    """
    return HALF.sub(lambda half: f"\\u{{{ord(half.group()):x}}}", name)


def cut(value: object) -> str:
    """Return a value as text of a length that fits into a sentence, cut between words if it can."""
    text = str(value)
    if len(text) <= MAX_SHOWN:
        return text
    start = text[: MAX_SHOWN - 3]
    whole_words = start.rpartition(" ")[0]
    return f"{whole_words if len(whole_words) > MAX_SHOWN // 2 else start}..."


def listed(things: Sequence[T], most: int = 20, *, named: Callable[[T], str] = str) -> str:
    """Return the names of things for a sentence: the first ones, and how many more there are.

    Only those that are shown are ``named``: their places may be costly to find.
    """
    more = len(things) - most
    return ", ".join(map(named, things[:most])) + (f" and {more} more" if more > 0 else "")


class SourceLocation(NamedTuple):
    """A place in a file; line and column count from 1, and 0 means the file as a whole.

    ``value_from`` names the variables in the value that stands there, each with the place of its
    own value, such as ``shopHost from reconciler.yaml:14:32``; empty for a value without variables.
    """

    file: str
    line: Count = 0
    column: Count = 0
    value_from: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: Stable name of the problem, such as ``YAML-DUPLICATE-KEY``.
        summary: What is wrong, without a full stop.
        remedy: What to write or do instead, in whole sentences.
        location: Where, if it is in a file.
        ref: Which resource it is about, if any.
        environments: Names of the environments in which it was found, where several were judged
            and it was not found in all of them.
        policy: Name of the policy that found it, if one did.
    """

    severity: Severity
    code: str
    summary: str
    remedy: str
    location: SourceLocation | None = None
    ref: ResourceRef | None = None
    environments: tuple[str, ...] = ()
    policy: str = ""

    @property
    def is_error(self) -> bool:
        """Return whether this finding stops the run."""
        return self.severity is Severity.ERROR

    @property
    def told(self) -> str:
        """Return the summary, and in brackets the environments and where variables come from."""
        noun = "environment" if len(self.environments) == 1 else "environments"
        notes = [f"{noun} {', '.join(self.environments)}"] if self.environments else []
        if self.location and self.location.value_from:
            notes.append(self.location.value_from)
        return f"{self.summary} ({'; '.join(notes)})" if notes else self.summary

    def at(self, location: SourceLocation, ref: ResourceRef | None = None) -> Diagnostic:
        """Return this finding of a value at the place of the value."""
        return replace(self, location=location, ref=ref)


class FindingError(Exception):
    """Something cannot be read or written, for the reason that a finding gives."""

    def __init__(self, finding: Diagnostic) -> None:
        super().__init__(finding.summary)
        self.finding = finding


class Source(Protocol):
    """The file that values come from. It has the place of every value."""

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of the value under a path of keys and positions in lists.

        Where the path leads nowhere, the place is that of the nearest value above it.
        """
        ...


@dataclass(frozen=True, slots=True)
class OnePlace:
    """A source with one place, which stands for those of all values."""

    location: SourceLocation

    def place(self, *path: str | int) -> SourceLocation:
        return self.location


error = partial(Diagnostic, Severity.ERROR)
"""Make a finding that stops the run, of code, summary, remedy, location and ref."""

warning = partial(Diagnostic, Severity.WARNING)
"""Make a finding that does not stop the run."""

note = partial(Diagnostic, Severity.NOTE)
"""Make a finding that is no danger. ``--quiet`` leaves it out."""


def by_place(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return findings once each, in the order in which a reader meets their places."""
    return tuple(sorted(dict.fromkeys(diagnostics), key=_place))


def of_all(found: Mapping[str, Iterable[Diagnostic]]) -> tuple[Diagnostic, ...]:
    """Return the findings of several environments in the order of their places, each once.

    Each names the environments in which it was found, unless it was found in all of them.

    Args:
        found: Findings by the name of the environment.
    """
    names: dict[Diagnostic, list[str]] = {}
    for environment, findings in found.items():
        for finding in dict.fromkeys(findings):
            names.setdefault(finding, []).append(environment)
    return by_place(
        finding if len(where) == len(found) else replace(finding, environments=tuple(where))
        for finding, where in names.items()
    )


def _place(diagnostic: Diagnostic) -> tuple[object, ...]:
    place = diagnostic.location or SourceLocation("")
    return (place, diagnostic.code, diagnostic.summary, diagnostic.remedy)
