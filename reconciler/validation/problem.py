"""A fault of a value, before the place of the value is known."""

from __future__ import annotations

from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation
from reconciler.resources.ref import ResourceRef

MAX_SHOWN = 60


class Problem(NamedTuple):
    """A finding without its place."""

    severity: Severity
    code: str
    summary: str
    remedy: str

    @property
    def is_error(self) -> bool:
        """Return whether this problem stops the run."""
        return self.severity is Severity.ERROR

    def at(self, location: SourceLocation, ref: ResourceRef | None = None) -> Diagnostic:
        """Return the finding at a place."""
        return Diagnostic(*self, location, ref)


def wrong(code: str, summary: str, remedy: str) -> Problem:
    """Return a problem that stops the run."""
    return Problem(Severity.ERROR, code, summary, remedy)


def doubtful(code: str, summary: str, remedy: str) -> Problem:
    """Return a problem that does not stop the run."""
    return Problem(Severity.WARNING, code, summary, remedy)


def noteworthy(code: str, summary: str, remedy: str) -> Problem:
    """Return a problem that is no danger."""
    return Problem(Severity.NOTE, code, summary, remedy)


def unshown(number: int, *, is_error: bool) -> Problem:
    """Return the problem that stands for so many further ones of a document."""
    severity = Severity.ERROR if is_error else Severity.WARNING
    noun = "finding" if number == 1 else "findings"
    summary = f"{number} more {noun} in this document"
    return Problem(severity, "MANIFEST-MORE", summary, "Fix those that are shown, then run again.")


def cut(value: object) -> str:
    """Return a value as text of a length that fits into a sentence, cut between words if it can."""
    text = value if isinstance(value, str) else str(value)
    if len(text) <= MAX_SHOWN:
        return text
    start = text[: MAX_SHOWN - 3]
    whole_words = start.rpartition(" ")[0]
    return f"{whole_words if len(whole_words) > MAX_SHOWN // 2 else start}..."
