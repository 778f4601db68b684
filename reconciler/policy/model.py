"""Policies as values: rules of the users' own, what they judge, and their verdicts.

A rule is one CEL expression that is true where all is well. ``engine`` judges; reading policies
from files, waivers and reports are elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from reconciler.diagnostics import Severity, Source, SourceLocation
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind, ResourceRef

DEFAULT_CHANGES = ("create", "update", "adopt")
"""The changes that a policy judges if it names none."""

CHANGES = (*DEFAULT_CHANGES, "delete")
"""The words of all changes."""


class Over(StrEnum):
    """The scope of a rule: each change, or the whole plan once."""

    CHANGE = "change"
    PLAN = "plan"


class RuleSource(Source, Protocol):
    """The file of a policy. It can also give the place of a character inside a text."""

    def place_within(self, line: int, column: int, *path: str | int) -> SourceLocation:
        """Return the place of a line and column, from 1, of the text under a path of keys."""
        ...


class Setting(NamedTuple):
    """The environment in which a plan is judged; its name is empty where there is none."""

    environment: str = ""
    protected: bool = False


class Subject(NamedTuple):
    """One change, as rules see it.

    Attributes:
        change: ``create``, ``update``, ``adopt`` or ``delete``.
        before: Fields in normal form; None for a create. Missing ones have their defaults.
        after: The same; None for a delete. A missing field that is left as it is held has the value
            of ``before``.
        fields: Names of the fields that change; of a create, those that are declared.
        risks: Codes of the risks that the plan names.
    """

    change: str
    ref: ResourceRef
    before: Spec | None
    after: Spec | None
    fields: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()


class Example(NamedTuple):
    """An expectation of the policy's author: the rule passes or fails for these subjects.

    Attributes:
        subjects: One change; of a policy over the plan, any number.
    """

    passes: bool
    subjects: tuple[Subject, ...]
    setting: Setting
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule, and what it is judged for.

    Attributes:
        rule: A CEL expression that is true where all is well.
        message: What is wrong where it is false.
        severity: An error blocks.
        kinds: Kinds of the changes that it judges; all where there are none.
        changes: Words of the changes that it judges.
        environments: Names of the environments in which it is judged; all, and the plan without
            one, where there are none.
        remedy: What to do instead, or empty.
        source: Asked for the place of any value.
    """

    name: str
    rule: str
    message: str
    source: RuleSource
    severity: Severity = Severity.ERROR
    kinds: tuple[Kind, ...] = ()
    changes: tuple[str, ...] = DEFAULT_CHANGES
    environments: tuple[str, ...] = ()
    over: Over = Over.CHANGE
    remedy: str = ""
    examples: tuple[Example, ...] = ()

    def judges(self, subject: Subject) -> bool:
        """Return whether the rule is about a change."""
        return subject.change in self.changes and (not self.kinds or subject.ref.kind in self.kinds)

    def holds_in(self, environment: str) -> bool:
        """Return whether the rule is judged in an environment; its name may be empty."""
        return not self.environments or environment in self.environments


class Verdict(NamedTuple):
    """A rule that is not true. What passes has no verdict.

    Attributes:
        policy: Name of the policy.
        subject: Position of the change among those that were judged; None for the whole plan.
        reason: Why the rule could not be evaluated; empty where it is false.
    """

    policy: str
    subject: int | None
    reason: str = ""
