"""Hostile rules, and a child process that ends: all of it refuses, within limits."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import BlockedPlanError, PolicyError
from reconciler.policy import engine as engine_module
from reconciler.policy.child import MEMORY
from reconciler.policy.engine import Engine
from reconciler.policy.model import Over
from reconciler.policy.process import Child
from reconciler.resources.ref import Kind
from tests.policies import NOWHERE, a_change, a_policy, judged, outcome_of
from tests.rows import each_row

pytestmark = pytest.mark.slow

LONG_URIS = {"redirectUris": [f"https://{'a' * 500}.example.com/{number}" for number in range(90)]}
TEN = "[0,1,2,3,4,5,6,7,8,9]"


def nested(times: int, inner: str, macro: str = "map") -> str:
    for number in range(times):
        inner = f"{TEN}.{macro}(v{number}, {inner})"
    return inner


def doubled(seed: str, times: int) -> str:
    return seed + ".map(a, a + a)" * times


ENDS = {  # refused when it is compiled, when it is judged, or by the end of the process
    "nested maps": nested(9, "1") + " == []",
    "nested alls": nested(8, "true", "all"),
    "lists that grow": doubled("[[1, 2]]", 28) + " == []",
    "maps in maps": "{1:" * 40 + "1" + "}" * 40 + " == {}",
    "a long sum": "'a'" + "+'a'" * 900 + " == ''",
    "deep brackets": "(" * 1_900 + "true" + ")" * 1_900,
    "deep lists": "[" * 1_900 + "]" * 1_900 + " == []",
    "a regular expression that is huge": "'a'.matches('((((a{1,100}){1,100}){1,100}){1,100})')",
    "regular expressions, many": (
        "after.redirectUris.all(u, after.redirectUris.all(v, after.redirectUris.all(w, "
        "(u + v + w).matches('(.*)(.*)(.*)(.*)[^x]$'))))"
    ),
    "lists of all pairs": "after.redirectUris.map(u, after.redirectUris.map(v, "
    "after.redirectUris.map(w, u + v + w))) == []",
    "deep conditions": "true?" * 400 + "true" + ":true" * 400,
    "deep fields": "after" + ".devMode" * 480,
    "deep indexes": "after.redirectUris" + "[0]" * 1_000 + " == ''",
    "lambdas": "[1].exists(a, " * 30 + "false" + ")" * 30,
}


@each_row("label", [*ENDS])
def test_a_hostile_rule_is_refused_in_time(label: str) -> None:
    """Each has a process of its own, which ends in the time that every run has."""
    with Engine([a_policy(ENDS[label])]) as engine:
        try:
            if engine.check():
                return
            verdicts = engine.judge([a_change(after=LONG_URIS)], NOWHERE)
        except PolicyError:
            return
    assert verdicts, "it passed"


PASSES = {
    "many nots": "!" * 3_900 + "true",
    "many ors": "true || " * 490 + "true",
    "a greedy regular expression": "!after.redirectUris.exists(u, u.matches('(a*)*(a*)*(a*)*$'))",
    "texts that grow": doubled("['a']", 20) + " != []",
}


@each_row("label", [*PASSES])
def test_a_rule_that_looks_hostile_has_an_answer(label: str) -> None:
    with Engine([a_policy(PASSES[label])]) as engine:
        assert engine.check() == ()
        verdicts = engine.judge([a_change()], NOWHERE)

    assert not [each for each in verdicts if each.reason]


def test_the_end_of_memory_refuses_and_names_the_policy() -> None:
    bomb = a_policy(doubled("[[1, 2]]", 28) + " == []", "bomb")
    with Engine([a_policy("true"), bomb]) as engine:
        assert engine.check() == ()
        with pytest.raises(PolicyError, match="policy bomb could not be judged") as caught:
            engine.judge([a_change()], NOWHERE)
        with pytest.raises(PolicyError):  # what comes after is refused as well
            engine.judge([a_change()], NOWHERE)

    assert "1 GiB" in f"{caught.value.problem} {caught.value.remedy}"
    assert isinstance(caught.value, BlockedPlanError)


def test_the_end_of_memory_over_the_plan_refuses() -> None:
    bomb = a_policy(doubled("[[1, 2]]", 28) + " == []", "bomb", over=Over.PLAN)
    with Engine([bomb]) as engine, pytest.raises(PolicyError, match="policy bomb"):
        engine.judge([a_change()], NOWHERE)


def test_the_end_of_the_time_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """One change takes a good part of a second, and there are a hundred."""
    slow = a_policy(
        "after.redirectUris.all(u, after.redirectUris.all(v, "
        "!(u + v).matches('(.*)(.*)(.*)(.*)[^x]{3}y$')))",
        "slow",
    )
    subjects = [a_change(after=LONG_URIS, name=f"web{number}") for number in range(100)]
    with Engine([slow]) as engine:
        assert engine.check() == ()
        monkeypatch.setattr(engine_module, "SECONDS", 2)
        with pytest.raises(PolicyError, match=r"policy slow .* took more than 2 s"):
            engine.judge(subjects, NOWHERE)


def test_a_process_that_does_not_read_what_it_is_asked_took_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its end comes from this program, not from a system that is short of memory."""
    subjects = [a_change(after=LONG_URIS, name=f"web{number}") for number in range(1_000)]
    with Engine([a_policy("true", "any")]) as engine:
        assert engine.check() == ()
        monkeypatch.setattr(engine_module, "SECONDS", 1)
        os.kill(child_of(engine), signal.SIGSTOP)
        with pytest.raises(PolicyError, match=r"the policies .* took more than 1 s"):
            engine.judge(subjects, NOWHERE)


def child_of(engine: Engine) -> int:
    assert engine._child is not None
    return engine._child._process.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_child_that_is_killed_refuses(number: signal.Signals) -> None:
    with Engine([a_policy("true")]) as engine:
        assert engine.check() == ()
        os.kill(child_of(engine), number)
        with pytest.raises(PolicyError, match=f"was ended by {number.name}"):
            engine.judge([a_change()], NOWHERE)


def test_a_child_that_uses_up_its_time_before_it_is_asked_refuses() -> None:
    """It compiles while the command reads manifests, and no timer runs."""
    with Engine([a_policy("true")]) as engine:
        assert engine.check() == ()
        os.kill(child_of(engine), signal.SIGXCPU)
        with pytest.raises(PolicyError, match="used more than its time on the processor"):
            engine.judge([a_change()], NOWHERE)


def test_no_thread_stays_behind() -> None:
    """Manifests are read ahead only where there is no other thread."""
    before = threading.active_count()
    with Engine([a_policy("true")]) as engine:
        assert threading.active_count() == before
        engine.check()
        assert threading.active_count() == before


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true", "/nowhere/python", "", None])
def test_a_python_that_cannot_be_started_refuses(
    program: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside another program, the name of the interpreter may be anything."""
    monkeypatch.setattr(sys, "executable", program)

    def judge() -> None:
        with Engine([a_policy("true")]) as engine:
            engine.check()

    with pytest.raises(PolicyError, match="cannot start the process that judges policies"):
        judge()


def test_the_child_ends_with_the_block() -> None:
    with Engine([a_policy("true")]) as engine:
        engine.check()
        number = child_of(engine)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_the_child_has_limits_and_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of this process is none of its business."""
    if sys.platform != "linux":
        return  # there is no other way to look at it from outside
    monkeypatch.setenv("RECONCILER_TOKEN", "secret-of-a-test")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    with Engine([a_policy("true")]) as engine:
        engine.check()
        process = Path(f"/proc/{child_of(engine)}")
        variables = (process / "environ").read_bytes()
        limits = (process / "limits").read_text()
        folder = (process / "cwd").readlink()

    assert variables == b"LD_LIBRARY_PATH=/nowhere\0"
    assert limits.split("Max address space")[1].split()[0] == str(MEMORY)
    assert limits.split("Max core file size")[1].split()[0] == "0"
    assert limits.split("Max file size")[1].split()[0] == "0"
    assert limits.split("Max cpu time")[1].split()[0] != "unlimited"
    assert str(folder) == "/"


def test_the_working_folder_and_pythonpath_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("json", "re", "sitecustomize", "usercustomize", "cel_expr_python", "google"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('taken over')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))

    with Engine([a_policy("after.devMode")]) as engine:
        assert len(engine.judge([a_change()], NOWHERE)) == 1


def test_a_rule_over_the_plan_is_sent_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts that no rule reads would use up the memory."""
    sent: list[str] = []
    send = Child.send

    def noted(child: Child, do: str, seconds: int, **request: Any) -> None:
        sent.append(repr(request))
        send(child, do, seconds, **request)

    monkeypatch.setattr(Child, "send", noted)
    script = "x" * 40_000
    actions = [a_change(after={"script": script}, kind=Kind.ACTION, name=f"a{at}") for at in (1, 2)]

    for rule, has_scripts in (
        ("counts.Action.create < 2", False),
        ("changes.all(c, c.after.timeout < duration('1s'))", False),
        ("changes.all(c, size(c.after.script) < 9)", True),
        ("changes.all(c, !has(c.after))", True),
    ):
        sent.clear()
        policy = a_policy(rule, kinds=[Kind.ACTION], over=Over.PLAN)

        assert [outcome_of(each) for each in judged(policy, *actions)] == ["failed"]
        assert any(script in each for each in sent) == has_scripts
