"""Which policies count in a run, and what their verdicts become in a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from reconciler.diagnostics import Severity
from reconciler.plan.model import Create, Delete, Plan, Scope
from reconciler.policy.engine import Engine
from reconciler.policy.judging import counting, digest_of, judged
from reconciler.policy.model import Over, Policy, Setting, Subject, Verdict
from reconciler.policy.waivers import PolicySet, Waiver
from reconciler.resources.ref import RefSet, parse_pattern, read_shard
from tests.builders import GREET, WEB, a_plan, declared, held
from tests.policies import a_policy

TODAY = date(2026, 11, 24)
PLACE = declared(WEB).source


class Verdicts(Engine):
    """Answers with verdicts that are given, of the policies that hold in a setting."""

    def __init__(self, policies: Sequence[Policy], *verdicts: Verdict) -> None:
        super().__init__(policies)
        self._verdicts_given = verdicts
        self.subjects: Sequence[Subject] = ()

    def reads(self, policy: Policy) -> frozenset[str]:
        return frozenset({"after"})

    def judge(
        self,
        subjects: Sequence[Subject],
        setting: Setting,
        whole: Sequence[Subject] | None = None,
    ) -> tuple[Verdict, ...]:
        self.subjects = subjects
        return self._verdicts_given


def a_waiver(name: str = "w", policy: str = "p", refs: Any = ("*",), **fields: Any) -> Waiver:
    fields = {"reason": "r", "owner": "o", "until": TODAY + timedelta(days=100), **fields}
    objects = RefSet(parse_pattern(ref) for ref in refs if ref != "*")
    return Waiver(
        name=name, policy=policy, refs=tuple(refs), source=PLACE, objects=objects, **fields
    )


POLICY = a_policy("true", "p")
FAILS = Verdict("p", 0)


def plan_under(
    *verdicts: Verdict,
    policies: Sequence[Policy] = (POLICY,),
    waivers: Sequence[Waiver] = (),
    plan: Plan | None = None,
    environment: str = "",
) -> Plan:
    judges = counting(PolicySet(tuple(policies), tuple(waivers)))
    engine = Verdicts(policies, *verdicts)
    plan = plan or a_plan(Create(declared(WEB)))
    return judged(plan, judges, engine, Setting(environment), TODAY)


def codes(plan: Plan) -> tuple[list[str], list[str]]:
    return [each.code for each in plan.blocks], [each.code for each in plan.warnings]


def test_a_failed_policy_blocks_at_the_manifest_and_names_itself() -> None:
    plan = plan_under(FAILS)

    (block,) = plan.blocks
    assert (block.code, block.policy, block.ref) == ("POLICY", "p", WEB)
    assert block.location == PLACE.place("metadata", "name")
    assert [each.name for each in plan.policies] == ["p"]


@pytest.mark.parametrize("severity", list(Severity))
def test_severity_decides_but_for_an_error(severity: Severity) -> None:
    policy = a_policy("true", "p", severity=severity)

    failed = plan_under(FAILS, policies=[policy])
    broken = plan_under(Verdict("p", 0, "why"), policies=[policy])

    assert bool(failed.blocks) == (severity is Severity.ERROR)
    assert [each.severity for each in (*failed.blocks, *failed.warnings)] == [severity]
    assert codes(broken) == (["POLICY-ERROR"], [])


def test_a_delete_has_no_place_and_a_whole_plan_that_of_the_policy() -> None:
    policy = a_policy("true", "p", over=Over.PLAN)
    delete = a_plan(Delete(held(GREET)))

    (gone,) = plan_under(FAILS, plan=delete).blocks
    (whole,) = plan_under(Verdict("p", None), policies=[policy]).blocks

    assert (gone.location, gone.ref) == (None, GREET)
    assert (whole.location, whole.ref) == (policy.source.place("metadata", "name"), None)


@pytest.mark.parametrize(
    ("waiver", "verdict", "waived", "told"),
    [
        (a_waiver(), FAILS, 1, ([], [])),
        (a_waiver(refs=[WEB.key.address]), FAILS, 1, ([], [])),
        (a_waiver(refs=["OidcApplication/acme/*/*"]), FAILS, 1, ([], [])),
        (a_waiver(refs=[GREET.key.address]), FAILS, 0, (["POLICY"], ["WAIVER-UNUSED"])),
        (a_waiver(policy="q"), FAILS, 0, (["POLICY"], ["WAIVER-UNUSED"])),
        (a_waiver(until=TODAY), FAILS, 1, ([], ["WAIVER-ENDS"])),
        (a_waiver(until=TODAY + timedelta(days=15)), FAILS, 1, ([], [])),
        (
            a_waiver(until=TODAY - timedelta(days=1)),
            FAILS,
            0,
            (["POLICY", "WAIVER-EXPIRED"], []),
        ),
        (
            a_waiver(),
            Verdict("p", 0, "why"),
            0,
            (["POLICY-ERROR"], ["WAIVER-UNUSED"]),
        ),
        (a_waiver(), Verdict("p", None), 1, ([], [])),
        (
            a_waiver(refs=[WEB.key.address]),
            Verdict("p", None),
            0,
            (["POLICY"], ["WAIVER-UNUSED"]),
        ),
    ],
)
def test_what_a_waiver_takes_back(
    waiver: Waiver, verdict: Verdict, waived: int, told: tuple[list[str], list[str]]
) -> None:
    plan = plan_under(verdict, waivers=[waiver])

    assert (len(plan.waived), codes(plan)) == (waived, told)


def test_a_waiver_is_not_called_unused_where_the_plan_cannot_tell() -> None:
    waiver = a_waiver(refs=[WEB.key.address])
    nothing = a_plan(in_step=(WEB,))
    shard = a_plan(scope=Scope(shard=read_shard("1/2")))
    part = a_plan(scope=Scope(target=(GREET.key.address,)))
    elsewhere = a_policy("true", "p", environments=("production",))

    for plan in (nothing, shard, part):
        assert codes(plan_under(waivers=[waiver], plan=plan)) == ([], [])
    assert codes(plan_under(policies=[elsewhere], waivers=[waiver], environment="test")) == ([], [])
    assert codes(plan_under(waivers=[waiver], plan=a_plan())) == ([], ["WAIVER-UNUSED"])


def test_what_counts_beside_a_target_branch() -> None:
    stricter = a_policy("false", "p")
    extra = a_policy("true", "extra")
    longer = a_waiver(until=TODAY + timedelta(days=200))
    trusted = PolicySet((POLICY,), (a_waiver(),))

    same = counting(trusted, trusted)
    changed = counting(PolicySet((stricter, extra), (longer,)), trusted)
    nothing = counting(PolicySet(), trusted)

    assert (same.policies, same.waivers, same.after_merge) == ((POLICY,), trusted.waivers, ())
    assert changed.policies == (POLICY, extra)
    assert changed.waivers == trusted.waivers
    assert changed.unjudged == (stricter,)
    assert {each.summary for each in changed.after_merge} == {
        "policy p is changed", "policy extra is new", "waiver w is changed",
    }  # fmt: skip
    assert (nothing.policies, nothing.waivers) == ((POLICY,), trusted.waivers)
    assert {each.summary for each in nothing.after_merge} == {
        "policy p is taken out", "waiver w is taken out",
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"severity": Severity.NOTE},
        {"kinds": ()},
        {"changes": ("delete",)},
        {"environments": ("production",)},
        {"over": Over.PLAN},
        {"message": "another"},
        {"remedy": "another"},
    ],
)
def test_the_digest_of_a_policy_is_of_all_that_decides(fields: dict[str, Any]) -> None:
    assert digest_of(replace(POLICY, **fields)) != digest_of(POLICY)


def test_what_no_rule_reads_is_not_computed() -> None:
    engine = Verdicts([POLICY])
    plan = a_plan(Create(declared(WEB)))

    judged(plan, counting(PolicySet((POLICY,))), engine, Setting(), TODAY)

    (subject,) = engine.subjects
    assert (subject.change, subject.ref) == ("create", WEB)
    assert (subject.fields, subject.risks, subject.before) == ((), (), None)
    assert "fields" not in vars(plan.changes[0])
