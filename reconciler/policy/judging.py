"""Policies over a plan: which of them count, and what they find, as its blocks and warnings.

Where the policies of a target branch are given, they count as they are there: a pull request may
add policies; it takes none out, changes none and waives nothing until it is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeVar

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation, by_place, note
from reconciler.plan.diff import field_changes, spec_after
from reconciler.plan.digest import hash_of
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    JudgedBy,
    Plan,
    Waived,
    place_of,
    ref_of,
    word,
)
from reconciler.plan.risk import risks_of
from reconciler.policy.engine import Engine
from reconciler.policy.model import Over, Policy, Setting, Subject, Verdict
from reconciler.policy.waivers import PolicySet, Waiver, findings_of, unused
from reconciler.resources.ref import ResourceRef
from reconciler.state import Resource


@dataclass(frozen=True, slots=True)
class Judges:
    """The policies and waivers that count in a run.

    Attributes:
        after_merge: What counts only after the merge, and what no more.
        own: Policies and waivers of this tree, which count after the merge.
        unjudged: Policies of this tree that do not count yet, because the target branch has others
            of their names.
    """

    policies: tuple[Policy, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    own: PolicySet = field(default_factory=PolicySet)
    after_merge: tuple[Diagnostic, ...] = ()
    unjudged: tuple[Policy, ...] = ()


def counting(own: PolicySet, trusted: PolicySet | None = None) -> Judges:
    """Return what counts of a tree's own policies, beside those of a target branch if given."""
    if trusted is None:
        return Judges(own.policies, own.waivers, own)
    known = {policy.name: policy for policy in trusted.policies}
    added = [policy for policy in own.policies if policy.name not in known]
    changed = tuple(
        policy
        for policy in own.policies
        if policy.name in known and digest_of(policy) != digest_of(known[policy.name])
    )
    policies = (*trusted.policies, *added)
    return Judges(policies, trusted.waivers, own, by_place(_moved(own, trusted)), changed)


def loosened(own: PolicySet, trusted: PolicySet) -> Iterator[str]:
    """Yield in words how a tree's policies and waivers may let through what trusted ones do not.

    A new policy, and a waiver that was taken out, only judge harder.
    """
    known, kept = {each.name for each in trusted.policies}, {each.name for each in own.waivers}
    policies = tuple(each for each in own.policies if each.name in known)
    waivers = tuple(each for each in trusted.waivers if each.name in kept)
    for each in _moved(replace(own, policies=policies), replace(trusted, waivers=waivers)):
        yield each.summary


_NEW, _CHANGED, _REMOVED = "new", "changed", "taken out"
_REMEDIES = {
    ("policy", _NEW): "It judges this plan as well. After the merge it counts for every plan.",
    ("policy", _CHANGED): "The one of the target branch judges this plan. After the merge this one "
    "counts.",
    ("policy", _REMOVED): "The one of the target branch still judges this plan. After the merge it "
    "counts no more.",
    ("waiver", _NEW): "It waives nothing in this plan. After the merge it counts.",
    ("waiver", _CHANGED): "The one of the target branch counts in this plan. After the merge this "
    "one counts.",
    ("waiver", _REMOVED): "The one of the target branch still counts in this plan. After the merge "
    "it counts no more.",
}

Document = TypeVar("Document", Policy, Waiver)


def _moved(own: PolicySet, trusted: PolicySet) -> Iterator[Diagnostic]:
    yield from _moved_of("policy", own.policies, trusted.policies, digest_of)
    yield from _moved_of("waiver", own.waivers, trusted.waivers, _terms)


def _moved_of(
    noun: str,
    own: Sequence[Document],
    trusted: Sequence[Document],
    terms: Callable[[Document], object],
) -> Iterator[Diagnostic]:
    before = {each.name: each for each in trusted}
    for each in own:
        held = before.pop(each.name, None)
        if held is None:
            yield _after_merge(noun, _NEW, each)
        elif terms(held) != terms(each):
            yield _after_merge(noun, _CHANGED, each)
    for each in before.values():
        yield _after_merge(noun, _REMOVED, each)


def _after_merge(noun: str, what: str, document: Policy | Waiver) -> Diagnostic:
    summary = f"{noun} {document.name} is {what}"
    place = document.source.place("metadata", "name")
    return note("POLICY-AFTER-MERGE", summary, _REMEDIES[noun, what], place)


def digest_of(policy: Policy) -> str:
    """Return the digest of all that decides the verdicts of a policy and what they say."""
    return hash_of(
        [
            policy.rule,
            policy.severity,
            sorted(policy.kinds),
            sorted(policy.changes),
            sorted(policy.environments),
            policy.over,
            policy.message,
            policy.remedy,
        ]
    )


def _terms(waiver: Waiver) -> object:
    return waiver.policy, sorted(waiver.refs), waiver.until, waiver.reason, waiver.owner


def judged(plan: Plan, judges: Judges, engine: Engine, setting: Setting, today: date) -> Plan:
    """Return a plan with the findings of the policies: errors block it, the others warn.

    ``engine`` judges by the policies that count; ``today`` is the day of the run, in UTC. Of a part
    of the tree, policies over the plan judge the whole, so that halves of it are not harmless.

    Raises:
        PolicyError: the rules could not be judged.
    """
    reads = frozenset().union(*(engine.reads(policy) for policy in judges.policies))
    subjects = tuple(_subject(change, reads) for change in plan.changes)
    is_part = plan.scope.is_partial and any(each.over is Over.PLAN for each in judges.policies)
    whole = tuple(_subject(change, reads) for change in plan.whole) if is_part else subjects
    verdicts = engine.judge(subjects, setting, whole)
    findings, waived = _told(verdicts, judges, plan.changes, today)
    names = {policy.name for policy in (*judges.policies, *judges.own.policies)}
    counted = [policy for policy in judges.policies if policy.holds_in(setting.environment)]
    findings += findings_of(judges.own.waivers, names, today)
    if not (plan.scope.shard or plan.scope.is_partial):
        findings += _idle(counted, judges.waivers, waived, plan, today)
    return replace(
        plan,
        blocks=(*plan.blocks, *(each for each in findings if each.is_error)),
        warnings=(
            *plan.warnings,
            *(each for each in findings if not each.is_error),
            *judges.after_merge,
        ),
        policies=tuple(
            JudgedBy(each.name, each.severity.value, digest_of(each)) for each in counted
        ),
        waived=tuple(waived),
    )


def _subject(change: Change, reads: Collection[str]) -> Subject:
    """Return a change as rules see it; ``changes`` of a rule have all that one change has."""
    is_whole = "changes" in reads
    return Subject(
        word(change),
        ref_of(change),
        None if isinstance(change, Create) else change.held.spec,
        None if isinstance(change, Delete) else spec_after(change),
        tuple(field.name for field in field_changes(change))
        if is_whole or "fields" in reads
        else (),
        tuple(dict.fromkeys(risk.name for risk in risks_of(change)))
        if is_whole or "risks" in reads
        else (),
    )


def _told(
    verdicts: Iterable[Verdict], judges: Judges, changes: Sequence[Change], today: date
) -> tuple[list[Diagnostic], list[Waived]]:
    """Return what the verdicts find, and what waivers take back of it."""
    policies = {policy.name: policy for policy in judges.policies}
    waivers = _by_policy(judges.waivers, today)
    findings: list[Diagnostic] = []
    waived: list[Waived] = []
    for verdict in verdicts:
        policy = policies[verdict.policy]
        change = None if verdict.subject is None else changes[verdict.subject]
        ref = ref_of(change) if change else None
        found = next((each for each in waivers.get(policy.name, ()) if each.covers(ref)), None)
        if found is not None and not verdict.reason:
            waived.append(_waived(found, ref))
        else:
            place = place_of(change) if change else policy.source.place("metadata", "name")
            findings.append(_finding(policy, verdict, ref, place))
    return findings, waived


def _by_policy(waivers: Iterable[Waiver], today: date) -> Mapping[str, Sequence[Waiver]]:
    found: dict[str, list[Waiver]] = {}
    for waiver in waivers:
        if waiver.counts(today):
            found.setdefault(waiver.policy, []).append(waiver)
    return found


def _waived(waiver: Waiver, ref: ResourceRef | None) -> Waived:
    address = ref.address if ref else ""
    until = waiver.until.isoformat()
    return Waived(waiver.policy, address, waiver.name, waiver.reason, waiver.owner, until)


def _finding(
    policy: Policy, verdict: Verdict, ref: ResourceRef | None, place: SourceLocation | None
) -> Diagnostic:
    at = policy.source.place("metadata", "name")
    about = f"{ref}: " if ref else ""
    if verdict.reason:
        return Diagnostic(
            Severity.ERROR,
            "POLICY-ERROR",
            f"policy {policy.name} could not be evaluated: {verdict.reason}",
            f"{about}What cannot be judged is refused, and no waiver lets it pass. Correct the "
            f"rule, which is in {at}.",
            place,
            ref,
            policy=policy.name,
        )
    remedy = policy.remedy or f"Change it so that the rule of {at} is true."
    return Diagnostic(
        policy.severity,
        "POLICY",
        f"policy {policy.name}: {policy.message.rstrip('.')}",
        f"{about}{remedy}",
        place,
        ref,
        policy=policy.name,
    )


def _idle(
    policies: Sequence[Policy],
    waivers: Sequence[Waiver],
    waived: Sequence[Waived],
    plan: Plan,
    today: date,
) -> Iterator[Diagnostic]:
    """Yield a warning for each waiver that waives nothing, as far as the plan shows.

    What is in step was not judged, so a waiver that covers some of it may be needed; so may one of
    a policy of another environment.
    """
    used = {record.waiver for record in waived}
    named = {policy.name: policy for policy in policies}
    for waiver in waivers:
        policy = named.get(waiver.policy)
        if policy is None or waiver.name in used or not waiver.counts(today):
            continue
        unjudged = (ref for ref in plan.in_step if not policy.kinds or ref.kind in policy.kinds)
        if not any(map(waiver.covers, unjudged)):
            yield unused(waiver)


def judged_declared(
    resources: Sequence[Resource], judges: Judges, engine: Engine, setting: Setting, today: date
) -> tuple[Diagnostic, ...]:
    """Return what the policies find in what manifests declare, where no plan is made.

    A rule that reads more than what is declared needs a plan, and a note says so.

    Raises:
        PolicyError: the rules could not be judged.
    """
    created = [Create(each) for each in resources]
    findings: list[Diagnostic] = []
    for policy in judges.policies:
        if not policy.holds_in(setting.environment):
            continue
        if needs := _needs_plan(policy, engine):
            findings.append(needs)
            continue
        kinds = policy.kinds
        chosen = [each for each in created if not kinds or each.resource.ref.kind in kinds]
        subjects = [_subject(each, ()) for each in chosen]
        verdicts = engine.judge_alone(policy, subjects, setting)
        findings += _told(verdicts, judges, chosen, today)[0]
    names = {policy.name for policy in judges.policies}
    return (*findings, *findings_of(judges.own.waivers, names, today))


_DECLARED = frozenset({"after", "ref", "environment", "protected"})
"""The names in a rule that manifests alone give a value."""


def _needs_plan(policy: Policy, engine: Engine) -> Diagnostic | None:
    """Return the note that a policy judges plans only, if it does."""
    more = engine.reads(policy) - _DECLARED
    if policy.over is Over.PLAN:
        why = "It is about a whole plan"
    elif more:
        why = f"Its rule reads {', '.join(sorted(more))}"
    elif not {"create", "update", "adopt"} & {*policy.changes}:
        why = f"It is about a {' or '.join(policy.changes)}"
    else:
        return None
    return note(
        "POLICY-NEEDS-PLAN",
        f"policy {policy.name} judges plans, and was not judged here",
        f"{why}: `reconciler plan` judges it.",
        policy.source.place("spec", "rule"),
    )
