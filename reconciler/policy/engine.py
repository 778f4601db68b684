"""Judging changes by rules in CEL, in a child process with limits on memory and time."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from reconciler.diagnostics import Diagnostic
from reconciler.policy.model import Case, Policy, Setting, Subject, Verdict


class Engine:
    """The rules of one run, in one child process, which ends with the ``with`` block.

    Raises (every method):
        PolicyError: the child ended: memory, time or a crash. Nothing was judged; refuse.
        UsageError: the extra ``policy`` is not installed.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = tuple(policies)

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def check(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the rules: syntax, types, unknown fields, limits, nulls."""
        raise NotImplementedError

    def reads(self, policy: Policy) -> frozenset[str]:
        """Return the names that a rule reads, such as ``after``. Of a wrong rule, none."""
        raise NotImplementedError

    def judge(self, subjects: Sequence[Subject], setting: Setting) -> tuple[Verdict, ...]:
        """Return every verdict of the policies that are about these changes in this setting."""
        raise NotImplementedError

    def judge_each(self, cases: Sequence[Case]) -> tuple[tuple[Verdict, ...], ...]:
        """Return the verdicts of each case, such as an example."""
        raise NotImplementedError
