"""What the child process sets for itself, reads and writes, tried without a process."""

from __future__ import annotations

import io
import json
import os
import resource
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.policy import child, rules
from reconciler.resources.ref import Kind

SETTING = {"environment": "", "protected": False}
APP = Kind.OIDC_APPLICATION
UNLIMITED = resource.RLIM_INFINITY


class Limits:
    """The limits of a process, to be looked at and not to be held by this one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hard: int = UNLIMITED) -> None:
        self.set: dict[int, tuple[int, int]] = {}
        monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
        monkeypatch.setattr(resource, "setrlimit", self.set.__setitem__)


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> Limits:
    return Limits(monkeypatch)


def answers(monkeypatch: pytest.MonkeyPatch, *requests: Mapping[str, Any]) -> list[Any]:
    lines = b"".join(json.dumps({"seconds": 10, **each}).encode() + b"\n" for each in requests)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(lines)))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=written))
    child.main()
    monkeypatch.undo()
    return [json.loads(line) for line in written.getvalue().splitlines()]


def compiled(*texts: str, over_plan: bool = False) -> Mapping[str, Any]:
    kinds = ["OidcApplication"]
    return {
        "do": "compile",
        "texts": [{"text": text, "kinds": kinds, "over_plan": over_plan} for text in texts],
    }


def sent(**after: object) -> dict[str, Any]:
    change = {"change": "create", "ref": "ref", "kind": "OidcApplication"}
    spec = {"clockSkew": "0s", **after}
    return {**change, "after": spec, "fields": ["devMode"], "risks": []}


def test_a_rule_is_named_before_it_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(monkeypatch, compiled("!after.devMode", "1 +", "before == after")) == [
        {"at": 0},
        {"at": 1},
        {"at": 2},
        {
            "done": [
                [[], "", {"after": [1, 2]}],
                [[[[1, 4], "Syntax error: mismatched input '<EOF>'"]], "OidcApplication", {}],
                [[], "", {"before": [1, 1], "after": [1, 11]}],
            ]
        },
    ]


def test_the_first_change_is_judged_one_rule_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are judged by all rules at once, and one by one where these are not all true."""
    judge = {
        "do": "judge",
        "subjects": [sent(), sent(), sent(devMode=True), sent()],
        "groups": [([0, 1], [0, 2]), ([1], [1, 3])],
        "setting": SETTING,
    }

    found = answers(monkeypatch, compiled("!after.devMode", "1 / size(fields) == 2"), judge)

    assert found[3:] == [
        {"at": 0},
        {"at": 1},
        {"at": None},
        {"at": 1},
        {"at": 1},
        {"done": [[1, 0, ""], [0, 2, ""], [1, 2, ""], [1, 1, ""], [1, 3, ""]]},
    ]


def test_a_plan_is_kept_until_it_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = {"do": "keep", "subjects": [sent(devMode=True), sent()]}
    judge = {
        "do": "judge_plan",
        "cases": [[0, [0, 1]], [0, [1]], [1, []]],
        "counts": {"OidcApplication": {"create": 2}},
        "setting": SETTING,
    }
    texts = ("changes.all(c, !c.after.devMode)", "counts.OidcApplication.create == 2")

    found = answers(monkeypatch, compiled(*texts, over_plan=True), keep, judge, keep, judge)

    assert found[3:] == 2 * [
        {"done": None},
        {"at": 0},
        {"at": 0},
        {"at": 1},
        {"done": [[0, ""]]},
    ]


def test_rules_that_do_not_compile_together_are_judged_alone() -> None:
    judge = rules.Rules()
    long = f"true || after.devMode == {'!' * 60_000}true"
    for _ in range(2):
        assert judge.compile(long, [APP], over_plan=False).errors == ()

    assert judge.all_true([0], APP)(activation(judge))
    assert not judge.all_true([0, 1], APP)(activation(judge))
    assert judge.judge(1, APP, activation(judge)) is None


def activation(judge: rules.Rules) -> Any:
    return judge.activate([sent()], SETTING)[0]


def test_a_rule_over_the_plan_can_have_any_result() -> None:
    """The fields of a change of any kind have no type until they are read."""
    judge = rules.Rules()
    judge.keep([sent()])
    for text in ("changes[0].after.devMode", "!changes[0].after.devMode"):
        assert judge.compile(text, [APP], over_plan=True).errors == ()

    assert judge.judge_plan(0, [0], {}, SETTING) == ""
    assert judge.judge_plan(1, [0], {}, SETTING) is None
    assert judge.judge_plan(0, [], {}, SETTING) == "Index error: index=0 size=0"


def test_the_place_of_what_is_read_is_where_its_name_begins() -> None:
    judge = rules.Rules()
    rule = "true &&\n  counts.Action.create == 0 && size(changes) == 0"

    checked = judge.compile(rule, [APP], over_plan=True)

    assert checked.reads == {"counts": (2, 3), "changes": (2, 37)}


def test_the_process_limits_itself(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    answers(monkeypatch, compiled("true"))

    most, time = limits.set[resource.RLIMIT_AS], limits.set[resource.RLIMIT_CPU]
    assert most == (1 << 30, 1 << 30)
    assert limits.set[resource.RLIMIT_CORE] == limits.set[resource.RLIMIT_FSIZE] == (0, 0)
    used = resource.getrusage(resource.RUSAGE_SELF)
    assert 10 < time[0] <= used.ru_utime + used.ru_stime + 12
    assert time[1] == UNLIMITED


def test_a_lower_limit_of_the_system_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(monkeypatch, hard=5)

    answers(monkeypatch, compiled("true"))

    assert limits.set == {
        resource.RLIMIT_AS: (5, 5),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (0, 0),
    }


def test_the_end_of_memory_has_an_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    class EndedError(Exception):
        pass

    def end(code: int) -> None:
        raise EndedError(code)

    def full(*_: object, over_plan: bool) -> None:
        raise MemoryError

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(rules.Rules, "compile", full)

    with pytest.raises(EndedError) as caught:
        answers(monkeypatch, compiled("true"))

    assert caught.value.args == (child.OUT_OF_MEMORY,)
