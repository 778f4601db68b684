"""Approval: what a plan file may be used for, and what counts as an answer."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from reconciler import __version__
from reconciler.cli import approval
from reconciler.cli.approval import Approval, ask_for_yes, take_approval
from reconciler.diagnostics import warning
from reconciler.errors import StalePlanError, UsageError
from reconciler.plan.advice import NOT_IDENTIFIED
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create
from reconciler.plan.planfile import PlanFile, Snapshot
from tests.builders import WEB, a_plan, declared, observed

NOW = 1_000_000
PLAN = a_plan(Create(declared(WEB)))


def a_file(**more: Any) -> PlanFile:
    times = {"made_at": NOW - 60, "expires_at": NOW + 60}
    return PlanFile(PLAN, **{"tool_version": __version__, **times, **more, **_PLACES})


_PLACES: Any = {"service": "sqlite:x.db", "paths": ("manifests",), "declared": "sha256:0"}


def test_a_file_in_its_time_can_be_used() -> None:
    approval._check_use(a_file(), NOW)


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (a_file(expires_at=NOW), r"has expired: .* \(less than a minute ago\)"),
        (a_file(made_at=NOW + 301), "was made in the future"),
        (a_file(tool_version="0.0.1"), "was made by version 0.0.1"),
        (a_file(against=Snapshot(NOW, "seal")), "was made against a snapshot"),
    ],
    ids=["expired", "future", "version", "snapshot"],
)
def test_another_file_is_refused(file: PlanFile, problem: str) -> None:
    with pytest.raises(StalePlanError, match=problem):
        approval._check_use(file, NOW)


@pytest.mark.parametrize(
    ("approved", "now", "problem"),
    [
        ("staging", "production", "for environment staging, and production is chosen"),
        ("staging", "", "for environment staging, and none is chosen"),
        ("", "staging", "without an environment, and staging is chosen"),
    ],
)
def test_a_plan_of_another_environment_is_refused(approved: str, now: str, problem: str) -> None:
    with pytest.raises(StalePlanError, match=problem):
        approval._check_environment(approved, now)


def test_what_is_written_names_the_plan_that_was_approved() -> None:
    assert Approval(a_file()).digest_of(a_plan()) == plan_digest(PLAN)
    assert Approval().digest_of(a_plan()) == plan_digest(a_plan())


def test_a_digest_is_itself_the_approval() -> None:
    digest = f"sha256:{'0' * 64}"

    assert take_approval((), digest, "", "") == (Approval(digest=digest), ())
    assert Approval(digest=digest).is_given
    assert not Approval().is_given
    with pytest.raises(UsageError, match="is not the digest of a plan"):
        take_approval((), "sha256:0", "", "")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_only_the_word_yes_approves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("yes\ny\n"))

    ask_for_yes("apply this plan", "apply")
    with pytest.raises(UsageError, match="was not the word yes"):
        ask_for_yes("apply this plan", "apply")


def test_without_a_terminal_nothing_is_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))

    with pytest.raises(UsageError, match="there is no terminal to ask whether to apply this plan"):
        ask_for_yes("apply this plan", "apply")


@pytest.mark.parametrize(
    ("is_told", "now", "problem"),
    [
        (True, "other", "was made for service one, and this is other"),
        (True, "", "was made for service one, and this is none yet"),
        (False, "other", "its service did not report its id, and this is other"),
        (False, "", "was made for service one, and this is none yet"),
    ],
)
def test_a_plan_for_another_service_is_refused(problem: str, now: str, *, is_told: bool) -> None:
    """Also where there is none yet."""
    warnings = () if is_told else (warning(NOT_IDENTIFIED, "its id is not told", ""),)
    service = Mock(observe=Mock(return_value=observed(instance=now)))
    file = replace(a_file(), plan=replace(PLAN, instance="one", warnings=warnings))

    with pytest.raises(StalePlanError) as refused:
        approval._OneService(service, file, "").observe(())

    assert problem in refused.value.problem
