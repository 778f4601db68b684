"""The policies of a run: read and checked before anything is planned, then judged by.

Nothing of them is loaded in a run without policies.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, NamedTuple

from reconciler.cli.configured import Configured
from reconciler.diagnostics import Diagnostic, by_place, listed
from reconciler.errors import InvalidPoliciesError, StalePlanError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.plan.model import Plan
    from reconciler.policy.engine import Engine
    from reconciler.policy.judging import Judges
    from reconciler.policy.model import Setting
    from reconciler.policy.waivers import PolicySet
    from reconciler.state import DesiredState


class PolicyFolders(NamedTuple):
    """The folders of policies that the settings of a run name."""

    own: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()


def policy_folders(given: Mapping[str, tuple[str, ...]]) -> PolicyFolders:
    """Return the folders of policies that settings describe."""
    return PolicyFolders(given["policies"], given.get("trusted_policies", ()))


@dataclass(frozen=True)
class Judge:
    """Judges by the policies of a run, if it has any.

    Attributes:
        judges: The policies that count; None in a run without policies.
        engines: The first one judges. Others only check what counts after the merge.
        found: Findings about the files of policies.
    """

    chosen: Configured
    judges: Judges | None = None
    engines: Sequence[Engine] = ()
    found: Sequence[Diagnostic] = ()

    def findings(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the policies: with their files, and with their rules."""
        return by_place([*self.found, *(each for one in self.engines for each in one.check())])

    def check(self) -> None:
        """Refuse policies that are wrong.

        The rules are compiled while manifests are read, so this is asked once they are.

        Raises:
            InvalidPoliciesError: with every finding about them.
            PolicyError: the rules could not be compiled.
        """
        found = self.findings()
        if any(finding.is_error for finding in found):
            raise InvalidPoliciesError(found)

    def __call__(self, plan: Plan) -> Plan:
        """Return a plan with what the policies find.

        Raises:
            PolicyError: the rules could not be judged.
        """
        if self.judges is None:
            return plan
        from reconciler.policy.judging import judged

        return judged(plan, self.judges, self.engines[0], setting_of(self.chosen), _today())

    def declared(self, chosen: Configured, desired: DesiredState) -> Sequence[Diagnostic]:
        """Return what policies find in the manifests of an environment, or what is wrong with them.

        Raises:
            PolicyError: the rules could not be compiled or judged.
        """
        findings = self.findings()
        if self.judges is None or any(finding.is_error for finding in findings):
            return findings
        from reconciler.policy.judging import judged_declared

        resources, engine = [*desired.resources.values()], self.engines[0]
        found = judged_declared(resources, self.judges, engine, setting_of(chosen), _today())
        return (*findings, *found)


def setting_of(chosen: Configured) -> Setting:
    """Return the environment that policies judge for."""
    from reconciler.policy.model import Setting

    return Setting(chosen.name, chosen.is_protected)


@contextmanager
def judging(folders: PolicyFolders, chosen: Configured) -> Iterator[Judge]:
    """Read the policies of a run, and lend what judges by them.

    Raises:
        UsageError: the extra ``policy`` is not installed.
    """
    own = folders.own or (chosen.configuration.policy_folders if chosen.configuration else ())
    if not (own or folders.trusted):
        yield Judge(chosen)
        return
    from reconciler.configuration.policies import never_judging, read_policies
    from reconciler.policy.engine import Engine
    from reconciler.policy.judging import counting

    policies, found = read_policies(own)
    environments = chosen.configuration.environments if chosen.configuration else ()
    findings, trusted = [*found, *never_judging(policies.policies, environments)], None
    if folders.trusted:
        trusted, found = read_policies(folders.trusted, may_be_empty=True)
        findings += found
    judges = counting(policies, trusted)
    # What counts after the merge would break the next run, if it were wrong.
    with Engine(judges.policies) as engine, Engine(judges.unjudged) as later:
        yield Judge(chosen, judges, (engine, later), findings)


def _today() -> date:
    return datetime.fromtimestamp(time.time(), UTC).date()


def policies_of(chosen: Configured) -> PolicySet | None:
    """Return the policies and waivers that a configuration names; None where it names none.

    Raises:
        InvalidPoliciesError: with every finding about them, those of their rules included.
        PolicyError: the rules could not be compiled.
        UsageError: the extra ``policy`` is not installed.
    """
    with judging(PolicyFolders(), chosen) as judge:
        judge.check()
        return judge.judges.own if judge.judges is not None else None


def judged_once(plan: Plan, judges: Judges, setting: Setting) -> Plan:
    """Return a plan with what policies find that were read and checked before.

    Raises:
        PolicyError: the rules could not be judged.
        UsageError: the extra ``policy`` is not installed.
    """
    if not (judges.policies or judges.waivers):
        return plan
    from reconciler.policy.engine import Engine
    from reconciler.policy.judging import judged

    with Engine(judges.policies) as engine:
        return judged(plan, judges, engine, setting, _today())


def check_judged(approved: Plan | None, plan: Plan) -> None:
    """Refuse a plan file that was judged by policies which do not judge its apply."""
    if approved is None:
        return
    judging_now = {each.name for each in plan.policies}
    missing = [each.name for each in approved.policies if each.name not in judging_now]
    if missing:
        raise StalePlanError(
            f"the plan was judged by policies that are not given: {listed(missing, 5)}",
            remedy="Give the same --policies (and --trusted-policies) as to `reconciler plan`. "
            "Nothing was written.",
        )
