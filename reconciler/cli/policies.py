"""The policies of a run: read and checked before anything is planned, then judged by.

Nothing of them is loaded in a run without policies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from reconciler.cli.configured import Configured
from reconciler.diagnostics import Diagnostic, by_place
from reconciler.errors import InvalidPoliciesError, StalePlanError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.plan.model import Plan
    from reconciler.policy.engine import Engine
    from reconciler.policy.judging import Judges

Judge: TypeAlias = "Callable[[Plan], Plan]"
"""Returns a plan with what the policies find."""


class Bench(NamedTuple):
    """The policies that count in a run, what judges by them, and the day of the run, in UTC."""

    judges: Judges
    engine: Engine
    today: date


class PolicyFolders(NamedTuple):
    """The folders of policies that the settings of a run name."""

    own: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()


def policy_folders(given: Mapping[str, tuple[str, ...]]) -> PolicyFolders:
    """Return the folders of policies that settings describe."""
    return PolicyFolders(given["policies"], given.get("trusted_policies", ()))


@contextmanager
def judging(folders: PolicyFolders, chosen: Configured) -> Iterator[Judge]:
    """Read and check the policies of a run, and lend what judges its plan by them.

    Raises:
        InvalidPoliciesError: with every finding about them.
        UsageError: the extra ``policy`` is not installed.
    """
    with sitting(folders, chosen) as (bench, findings):
        if any(finding.is_error for finding in findings):
            raise InvalidPoliciesError(findings)
        if bench is None:
            yield lambda plan: plan
            return
        from reconciler.policy.judging import judged
        from reconciler.policy.model import Setting

        setting = Setting(chosen.name, chosen.is_protected)
        yield lambda plan: judged(plan, bench.judges, bench.engine, setting, bench.today)


@contextmanager
def sitting(
    folders: PolicyFolders, chosen: Configured
) -> Iterator[tuple[Bench | None, tuple[Diagnostic, ...]]]:
    """Read and check the policies of a run; lend what judges by them, and the findings.

    Lends None where the run has no policies.

    Raises:
        UsageError: the extra ``policy`` is not installed.
    """
    own = folders.own or (chosen.configuration.policy_folders if chosen.configuration else ())
    if not (own or folders.trusted):
        yield None, ()
        return
    from reconciler.configuration.policies import read_policies
    from reconciler.policy.engine import Engine
    from reconciler.policy.judging import counting

    policies, found = read_policies(own)
    findings = [*found]
    trusted = None
    if folders.trusted:
        trusted, wrong = read_policies(folders.trusted, may_be_empty=True)
        findings += wrong
    judges = counting(policies, trusted)
    with Engine(judges.policies) as engine:
        findings += engine.check()
        if judges.unjudged:  # they count after the merge, and would break the next run
            with Engine(judges.unjudged) as later:
                findings += later.check()
        today = datetime.fromtimestamp(time.time(), UTC).date()
        yield Bench(judges, engine, today), by_place(findings)


def check_judged(approved: Plan | None, plan: Plan) -> None:
    """Refuse a plan file that was judged by policies which do not judge its apply.

    Raises:
        StalePlanError: some are missing; the message names them.
    """
    if approved is None:
        return
    judging_now = {each.name for each in plan.policies}
    missing = [each.name for each in approved.policies if each.name not in judging_now]
    if missing:
        raise StalePlanError(
            f"the plan was judged by policies that are not given: {_first(missing)}",
            remedy="Give the same --policies (and --trusted-policies) as to `reconciler plan`. "
            "Nothing was written.",
        )


def _first(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
