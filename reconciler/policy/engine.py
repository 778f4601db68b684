"""Judging changes by rules in CEL, in a child process with limits on memory and time.

A rule that cannot be evaluated gives a verdict of its own, and a child that ends raises an error:
both refuse. Nothing that goes wrong here counts as a pass.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypeAlias

from reconciler.diagnostics import Diagnostic, by_place, cut, error
from reconciler.errors import PolicyError, UsageError
from reconciler.kinds.fields import KINDS
from reconciler.policy.child import MEMORY
from reconciler.policy.model import CHANGES, Over, Policy, Setting, Subject, Verdict
from reconciler.policy.process import Child, ChildEndedError
from reconciler.resources.fields import Spec
from reconciler.resources.installation import how_to_install, missing_modules
from reconciler.resources.nearest import nearest
from reconciler.resources.normal import DEFAULTS, LEFT_AS_HELD, TYPES
from reconciler.resources.ref import KIND_NAMED, Kind

MAX_RULES = 200
SECONDS = 10
"""Time to compile all rules, and again to judge each batch of changes."""

BATCH = 1_000
"""Changes that are judged at once, within ``SECONDS``."""

_UNKNOWN_FIELD = re.compile(r"undefined field '([^']+)'")
_MISSING = {"before": "create", "after": "delete"}  # what a change of that kind does not have

_Rules: TypeAlias = dict[int, Policy]
_Subjects: TypeAlias = Sequence[Subject]


class Engine:
    """The rules of one run, in one child process, which ends with the ``with`` block.

    Without policies there is no process. Names of policies are unique. Every method may raise:

    Raises:
        PolicyError: the process ended: memory, time, or a crash. Refuse.
    """

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = tuple(policies)
        if len({policy.name for policy in policies}) < len(policies):
            raise AssertionError("two policies of one name: one of them would not be judged")
        self._sent_rules = self._policies[:MAX_RULES]
        self._child: Child | None = None
        self._findings: tuple[Diagnostic, ...] | None = None
        self._reads: dict[str, frozenset[str]] = {}
        self._numbers: dict[str, int] = {}  # of the rules in the child, by policy

    def __enter__(self) -> Self:
        """Start the process, which compiles the rules, and do not wait for it.

        Raises:
            UsageError: the extra ``policy`` is not installed.
        """
        if not self._policies:
            return self
        if missing_modules("policy"):
            raise UsageError(
                "policies need the extra policy, which is not installed",
                remedy=f"{how_to_install('policy')}. It is not made for musl (Alpine): use an "
                "image with glibc there.",
            )
        try:
            self._child = Child()
        except OSError as failure:
            raise _cannot_start(failure.strerror or "unknown reason") from failure
        texts = [
            {
                "text": policy.rule,
                "kinds": policy.kinds or [*KINDS],
                "over_plan": policy.over is Over.PLAN,
            }
            for policy in self._sent_rules
        ]
        self._child.send("compile", SECONDS, texts=texts)
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.end()

    def check(self) -> tuple[Diagnostic, ...]:
        """Return what is wrong with the rules: syntax, types, unknown fields, limits, nulls."""
        if self._findings is None:
            self._findings = by_place(self._check())
        return self._findings

    def reads(self, policy: Policy) -> frozenset[str]:
        """Return the variables that a rule reads, such as ``after``; of a wrong rule, none."""
        self.check()
        return self._reads.get(policy.name, frozenset())

    def judge(
        self, subjects: _Subjects, setting: Setting, whole: _Subjects | None = None
    ) -> tuple[Verdict, ...]:
        """Return the verdicts of the policies that are about these changes, in this setting.

        Policies over the plan judge ``whole``, where the changes are a part of it.
        """
        policies = [each for each in self._policies if each.holds_in(setting.environment)]
        return tuple(self._verdicts(policies, subjects, setting, whole))

    def judge_alone(
        self, policy: Policy, subjects: _Subjects, setting: Setting
    ) -> tuple[Verdict, ...]:
        """Return the verdicts of one policy on these changes, whatever it says it is for."""
        of_all = replace(policy, kinds=(), changes=CHANGES)
        return tuple(self._verdicts([of_all], subjects, setting))

    # Checking

    def _check(self) -> Iterator[Diagnostic]:
        if not self._policies:
            return
        if len(self._policies) > MAX_RULES:
            yield _too_many(self._policies[MAX_RULES])
        with _refusing(dict(enumerate(self._sent_rules)), starting=True):
            answers = self._running().receive(SECONDS)
        for number, (policy, (errors, kind, reads)) in enumerate(
            zip(self._sent_rules, answers, strict=True)
        ):
            for (line, column), sentence in errors:
                yield _wrong_rule(policy, kind, sentence, line, column)
            nulls = [
                _null(policy, name, change, *reads[name])
                for name, change in _MISSING.items()
                if name in reads and change in policy.changes
            ]
            yield from nulls
            if not errors and not nulls:
                self._numbers[policy.name] = number
                self._reads[policy.name] = frozenset(reads)

    # Judging

    def _verdicts(
        self,
        policies: Sequence[Policy],
        subjects: _Subjects,
        setting: Setting,
        whole: _Subjects | None = None,
    ) -> Iterator[Verdict]:
        """Yield the verdicts of policies on the changes that they judge."""
        self.check()
        good: dict[Over, _Rules] = {over: {} for over in Over}
        for policy in policies:
            if policy.name in self._numbers:
                good[policy.over][self._numbers[policy.name]] = policy
            else:
                yield Verdict(policy.name, None, "the rule does not compile")
        if good[Over.CHANGE]:
            yield from self._judge_changes(good[Over.CHANGE], subjects, setting)
        if good[Over.PLAN]:
            plan = subjects if whole is None else whole
            yield from self._judge_plan(good[Over.PLAN], plan, setting)

    def _judge_changes(
        self, rules: _Rules, subjects: _Subjects, setting: Setting
    ) -> Iterator[Verdict]:
        read = _what_is_read(rules.values())
        starts: list[int] = []

        def requests() -> Iterator[Mapping[str, Any]]:
            for start in range(0, len(subjects), BATCH):
                batch = subjects[start : start + BATCH]
                groups = _groups(rules, batch)
                if groups:
                    starts.append(start)
                    sent = [_sent(subject, read) for subject in batch]
                    yield {"subjects": sent, "groups": groups, "setting": setting._asdict()}

        with _refusing(rules):
            answers = self._running().ask_each("judge", SECONDS, requests())
            for position, answer in enumerate(answers):
                for number, place, reason in answer:
                    yield Verdict(rules[number].name, starts[position] + place, reason)

    def _judge_plan(
        self, rules: _Rules, subjects: _Subjects, setting: Setting
    ) -> Iterator[Verdict]:
        counts: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
        for subject in subjects:
            counts[subject.ref.kind][subject.change] += 1
        cases = [
            (number, [at for at, subject in enumerate(subjects) if policy.judges(subject)])
            for number, policy in rules.items()
        ]
        read = _what_is_read(rules.values())
        parts = (
            {"subjects": [_sent(subject, read) for subject in subjects[start : start + BATCH]]}
            for start in range(0, len(subjects), BATCH)
        )
        child, seconds = self._running(), SECONDS * (1 + len(subjects) // BATCH)
        with _refusing(rules):
            for _ in child.ask_each("keep", SECONDS, parts):
                pass
            child.send("judge_plan", seconds, cases=cases, counts=counts, setting=setting._asdict())
            answer = child.receive(seconds)
        for number, reason in answer:
            yield Verdict(rules[number].name, None, reason)

    def _running(self) -> Child:
        if self._child is None:
            raise AssertionError("outside of the with block")
        return self._child


@contextmanager
def _refusing(rules: _Rules, *, starting: bool = False) -> Iterator[None]:
    """Raise the end of the child as an error that names the rule where it was."""
    try:
        yield
    except ChildEndedError as ended:
        if starting and ended.at is None:
            raise _cannot_start(f"it {ended}") from None
        named = f"policy {cut(rules[ended.at].name)}" if ended.at in rules else "the policies"
        raise PolicyError(
            f"{named} could not be judged: the process that judges {ended}",
            remedy="What cannot be judged is refused, and nothing was written. All rules "
            f"together have {MEMORY >> 30} GiB of memory, and {SECONDS} s for {BATCH:,} changes: "
            "write rules with less nesting.",
        ) from None


def _groups(rules: _Rules, batch: _Subjects) -> list[tuple[list[int], list[int]]]:
    """Return the numbers of rules, each time with the places of the changes that they judge."""
    alike: dict[tuple[str, Kind], list[int]] = {}  # a rule judges all of these, or none
    for place, subject in enumerate(batch):
        alike.setdefault((subject.change, subject.ref.kind), []).append(place)
    groups = [
        ([number for number, policy in rules.items() if policy.judges(batch[places[0]])], places)
        for places in alike.values()
    ]
    return [(numbers, places) for numbers, places in groups if numbers]


def _cannot_start(why: str) -> PolicyError:
    return PolicyError(
        f"cannot start the process that judges policies: {why}",
        remedy="Nothing was written. Run the command by its own Python, not inside another "
        "program, and where a process may have 1 GiB of address space.",
    )


_WORD = re.compile(r"\w+")
_WHOLE = re.compile(r"\b(before|after)\b(?!\s*\.\s*\w)")
_FIELDS = frozenset[str]().union(*TYPES.values())


def _what_is_read(policies: Iterable[Policy]) -> frozenset[str]:
    """Return the names of what rules may read: sending all fields takes longer than judging.

    A rule reads a field by its name, unless it uses ``before`` or ``after`` without a dot. Words in
    texts and comments count too, which does no harm.
    """
    text = "\n".join(policy.rule for policy in policies)
    words = frozenset(_WORD.findall(text))
    return words | _FIELDS if _WHOLE.search(text) else words


def _sent(subject: Subject, read: frozenset[str]) -> dict[str, Any]:
    """Return a change as the child takes it; a side that it does not have is left out."""
    change, ref, before, after, fields, risks = subject
    kind = ref.kind
    sent: dict[str, Any] = {"change": change, "ref": ref.address, "kind": kind}
    sent |= {"fields": fields, "risks": risks}
    if "before" in read and before is not None:
        sent["before"] = _complete(kind, before, {}, read)
    if "after" in read and after is not None:
        held = {name: before[name] for name in LEFT_AS_HELD[kind] if before and name in before}
        sent["after"] = _complete(kind, after, held, read)
    return sent


def _complete(kind: Kind, spec: Spec, held: Spec, read: frozenset[str]) -> Spec:
    """Return the fields that are read, and that the kind has, defaults filled in."""
    whole = {**DEFAULTS[kind], **held, **spec}
    names = read & TYPES[kind].keys()
    return {name: value for name, value in whole.items() if name in names}


# Findings


def _wrong_rule(policy: Policy, kind: str, sentence: str, line: int, column: int) -> Diagnostic:
    unknown = _UNKNOWN_FIELD.search(sentence)
    kinds = [KIND_NAMED[kind]] if kind else policy.kinds or [*KINDS]
    return error(
        "POLICY-RULE",
        f"rule of policy {cut(policy.name)} is wrong: {sentence}",
        _field_remedy(unknown[1], kinds)
        if unknown
        else "Fix the rule; docs/policy-rules.md lists what it can read and call.",
        policy.source.place_within(line, column, "spec", "rule"),
    )


def _field_remedy(written: str, kinds: Sequence[Kind]) -> str:
    owners = {name: kind for kind in reversed(kinds) for name in TYPES[kind]}
    meant = nearest(written, owners)
    where = f"`reconciler explain {owners.get(meant or '', kinds[0]).value}` lists the fields."
    if meant is None:
        return f"{where} Name in `kinds` only those that have it."
    return f"Did you mean {meant}? {where}"


def _null(policy: Policy, name: str, change: str, line: int, column: int) -> Diagnostic:
    """Return an error: a rule reads a variable that is null for some of its changes."""
    return error(
        "POLICY-NULL",
        f"rule of policy {cut(policy.name)} reads {name}, which a {change} does not have",
        f"Take {change} out of `changes`, or write a policy of its own for it.",
        policy.source.place_within(line, column, "spec", "rule"),
    )


def _too_many(policy: Policy) -> Diagnostic:
    return error(
        "POLICY-LIMIT",
        f"more than {MAX_RULES} policies",
        "Put rules about the same kinds into one, joined by &&.",
        policy.source.place("metadata", "name"),
    )
