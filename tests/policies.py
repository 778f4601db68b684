"""Policies and changes for tests of the engine, sound by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.diagnostics import Diagnostic, SourceLocation
from reconciler.policy.engine import Engine
from reconciler.policy.model import Policy, Setting, Subject, Verdict
from reconciler.resources.ref import IN_PROJECT, Kind, ResourceRef

APP = Kind.OIDC_APPLICATION
NOWHERE = Setting()


class InFile:
    """A file whose rule begins in line 101, column 11."""

    def place(self, *path: str | int) -> SourceLocation:
        return SourceLocation("policy.yaml", 1, 1)

    def place_within(self, line: int, column: int, *path: str | int) -> SourceLocation:
        assert path == ("spec", "rule")
        return SourceLocation("policy.yaml", 100 + line, 10 + column)


def a_policy(rule: str, name: str = "p", *, kinds: Sequence[Kind] = (APP,), **rest: Any) -> Policy:
    return Policy(name, rule, "what is wrong", InFile(), kinds=tuple(kinds), **rest)


def a_change(
    change: str = "create",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    *,
    kind: Kind = APP,
    name: str = "web",
    **rest: Any,
) -> Subject:
    """Return a change with both sides that it has, at their defaults where nothing is given."""
    ref = ResourceRef(kind, "acme", "shop" if kind in IN_PROJECT else "", name)
    return Subject(
        change,
        ref,
        None if change == "create" else before or {},
        None if change == "delete" else after or {},
        **rest,
    )


def judged(
    policies: Policy | Sequence[Policy], *subjects: Subject, setting: Setting = NOWHERE
) -> tuple[Verdict, ...]:
    """Return the verdicts of good rules."""
    chosen = [policies] if isinstance(policies, Policy) else policies
    with Engine(chosen) as engine:
        assert engine.check() == ()
        return engine.judge(subjects, setting)


def checked(*policies: Policy) -> tuple[Diagnostic, ...]:
    """Return what is wrong with rules."""
    with Engine(policies) as engine:
        return engine.check()


def outcome_of(verdict: Verdict) -> str:
    """Return whether a rule is false, or could not be evaluated."""
    return "error" if verdict.reason else "failed"
