"""The child process in which rules are compiled and judged, with its limits.

It reads requests from stdin and writes answers to stdout, as lines of JSON. Before each rule it
writes ``{"at": NUMBER}``, so that the parent can name the rule at which the process ended. The
process bounds itself: at a limit it ends, and the parent refuses.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reconciler.resources.ref import KIND_NAMED

if TYPE_CHECKING:
    from reconciler.policy.rules import Rules, Seen

MEMORY = 1 << 30
"""Bytes of address space."""

OUT_OF_MEMORY = 3
"""Exit code of a process that reached its limit and could still say so."""


def main() -> None:
    """Answer requests until stdin ends."""
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, 0)
    try:
        from reconciler.policy.rules import Rules

        rules = Rules()
        for line in sys.stdin.buffer:
            request = json.loads(line)
            _limit_time(request.pop("seconds"))
            _write({"done": _DO[request.pop("do")](rules, **request)})
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (bound, bound))


def _limit_time(seconds: int) -> None:
    """End the process after that time on the processor, should the parent be gone by then."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    bound = int(usage.ru_utime + usage.ru_stime) + seconds + 1
    if hard == resource.RLIM_INFINITY or bound < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (bound, hard))


def _write(message: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


def _compile(rules: Rules, texts: Sequence[Mapping[str, Any]]) -> Any:
    found = []
    for number, rule in enumerate(texts):
        _write({"at": number})
        kinds = [KIND_NAMED[kind] for kind in rule["kinds"]]
        found.append(rules.compile(rule["text"], kinds, over_plan=rule["over_plan"]))
    return found


def _judge(
    rules: Rules,
    subjects: Sequence[Seen],
    groups: Sequence[tuple[Sequence[int], Sequence[int]]],
    setting: Mapping[str, Any],
) -> Any:
    """Return the rules that are not true, each with the position of the change and the reason.

    A group is numbers of rules, and the positions of changes of one kind that all these judge.
    """
    activations = rules.activate(subjects, setting)
    found = []
    for numbers, (first, *others) in groups:
        kind = KIND_NAMED[subjects[first]["kind"]]
        # One by one for the first change, so that a rule that ends the process has a name.
        for number in numbers:
            _write({"at": number})
            found.append((number, first, rules.judge(number, kind, activations[first])))
        _write({"at": numbers[0] if len(numbers) == 1 else None})
        all_true = rules.all_true(numbers, kind)
        for subject in others:
            if not all_true(activations[subject]):
                found += [
                    (number, subject, rules.judge(number, kind, activations[subject]))
                    for number in numbers
                ]
    return [verdict for verdict in found if verdict[2] is not None]


def _judge_plan(
    rules: Rules,
    cases: Iterable[tuple[int, Sequence[int]]],
    counts: Any,
    setting: Mapping[str, Any],
) -> Any:
    found = []
    for rule, chosen in cases:
        _write({"at": rule})
        reason = rules.judge_plan(rule, chosen, counts, setting)
        if reason is not None:
            found.append((rule, reason))
    rules.forget()
    return found


_DO: Mapping[str, Callable[..., Any]] = {
    "compile": _compile,
    "judge": _judge,
    "keep": lambda rules, subjects: rules.keep(subjects),
    "judge_plan": _judge_plan,
}
