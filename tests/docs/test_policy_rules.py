"""The page about rules says what rules can read, call and cost."""

from __future__ import annotations

import re

from reconciler.policy.child import MEMORY
from reconciler.policy.engine import BATCH, MAX_RULES, SECONDS
from reconciler.policy.model import Over, Policy
from reconciler.resources.schemas import POLICY, schema_file
from tests.policies import a_change, a_policy, checked, judged, outcome_of
from tests.program import ROOT

PAGE = (ROOT / "docs" / "policy-rules.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```cel( over the plan)?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def shown() -> list[Policy]:
    """Return the rules of all blocks, a policy for each paragraph."""
    return [
        a_policy(rule, rule, over=Over.PLAN if over_plan else Over.CHANGE)
        for over_plan, block in BLOCKS
        for rule in block.strip().split("\n\n")
    ]


def names(heading: str) -> set[str]:
    """Return the first column of the table after a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0].split("\n\n|")[1]
    return set(re.findall(r"^\| `(\w+)", section, re.MULTILINE))


def test_every_rule_compiles() -> None:
    assert len(shown()) == 6
    assert checked(*shown()) == ()


def test_the_names_are_those_that_a_rule_can_read() -> None:
    of_change, of_plan = names("What a rule sees"), names("Over the whole plan")

    assert len(of_change) == 8
    assert of_plan == {"changes", "counts"}
    rules = [f"dyn({name}) == dyn({name})" for name in of_change]
    assert checked(*(a_policy(rule, rule, changes=("update",)) for rule in rules)) == ()
    rules = [f"dyn({name}) == dyn({name})" for name in {*of_plan, "environment", "protected"}]
    assert checked(*(a_policy(rule, rule, over=Over.PLAN) for rule in rules)) == ()


def test_what_is_said_of_errors_is_so() -> None:
    rules = {
        "1 / 0 == 1": "error",
        "true || 1 / 0 == 1": None,
        "1 / 0 == 1 || true": None,
        "false && 1 / 0 == 1": "failed",
        "1 / 0 == 1 && false": "failed",
    }

    verdicts = judged([a_policy(rule, rule) for rule in rules], a_change())

    found = {verdict.policy: outcome_of(verdict) for verdict in verdicts}
    assert {rule: found.get(rule) for rule in rules} == rules


def test_the_limits_are_those_of_the_program() -> None:
    rule = schema_file(POLICY)["properties"]["spec"]["properties"]["rule"]
    for row in (
        f"| rules in a run | {MAX_RULES} |",
        f"| characters of a rule | {rule['maxLength']:,} |",
        f"| memory of all rules together | {MEMORY >> 30} GiB |",
        f"| time | {SECONDS} s to compile all rules, {SECONDS} s for each {BATCH:,} changes |",
    ):
        assert row in PAGE


def test_the_bounds_of_the_library_are_those_that_are_said() -> None:
    """A rule can make 10,000 steps, and has at most 32 levels."""
    hundred = f"[{','.join('0' * 100)}]"
    rules = {size: f"{hundred}.all(a, [{','.join('0' * size)}].all(b, true))" for size in (98, 99)}
    verdicts = judged([a_policy(rule, str(size)) for size, rule in rules.items()], a_change())
    assert [verdict.policy for verdict in verdicts] == ["99"]  # and one step more for each list
    assert "| steps of one evaluation over lists | 10,000 |" in PAGE

    deep, deeper = ("(" * depth + "true" + ")" * depth for depth in (32, 33))
    (finding,) = checked(a_policy(deep, "deep"), a_policy(deeper, "deeper"))
    assert "deeper" in finding.summary
    assert "| nesting of an expression | 32 |" in PAGE
