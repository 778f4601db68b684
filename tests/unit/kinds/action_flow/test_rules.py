"""What is wrong or dangerous about a flow, and what a reader of its plan should know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.kinds.action_flow.flows import FLOWS
from reconciler.kinds.action_flow.rules import RULES
from reconciler.plan.risk import is_severe
from reconciler.resources.ref import Kind
from reconciler.rules.form import Planned
from reconciler.state import Resource
from tests.builders import a_ref, declared, desired, held, observed
from tests.unit.conftest import Judge
from tests.unit.validation.documents import ACTION_FLOW, text_of, with_metadata


def flow(name: str, **spec: Any) -> str:
    return text_of({**with_metadata(ACTION_FLOW, name=name), "spec": spec})


@pytest.mark.parametrize("each", FLOWS, ids=lambda each: each.name)
def test_a_flow_has_its_own_triggers(judge_text: Judge, each: Any) -> None:
    spec = {trigger.name: ["greet", "log"] for trigger in each.triggers}

    assert judge_text(flow(each.name, **spec)).diagnostics == ()


def test_a_flow_may_run_nothing(judge_text: Judge) -> None:
    """That is how a flow is kept empty."""
    assert judge_text(flow("COMPLEMENT_TOKEN")).is_valid


def test_a_trigger_of_another_flow_is_refused_at_its_place(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKEN", POST_AUTHENTICATION=["greet"])).diagnostics

    assert found.code == "FLOW-TRIGGER"
    assert found.summary == "COMPLEMENT_TOKEN has no trigger POST_AUTHENTICATION"
    assert found.remedy == (
        "Write PRE_USERINFO_CREATION or PRE_ACCESS_TOKEN_CREATION; POST_AUTHENTICATION is a "
        "trigger of EXTERNAL_AUTHENTICATION or INTERNAL_AUTHENTICATION."
    )


def test_a_flow_of_a_misspelt_name_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKENS")).diagnostics

    assert found.code == "SCHEMA-VALUE"
    assert "Did you mean COMPLEMENT_TOKEN?" in found.remedy


def test_a_misspelt_trigger_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKEN", PRE_USERINFO=["greet"])).diagnostics

    assert found.code == "SCHEMA-UNKNOWN-FIELD"
    assert "PRE_USERINFO_CREATION" in found.remedy


@pytest.mark.parametrize("again", ["greet", "Greet"])
def test_an_action_is_named_once_at_a_trigger(judge_text: Judge, again: str) -> None:
    found = judge_text(flow("COMPLEMENT_TOKEN", PRE_USERINFO_CREATION=["greet", "log", again]))

    assert [each.code for each in found.diagnostics] == ["FLOW-ACTION-TWICE"]
    assert again in found.diagnostics[0].summary


@pytest.mark.parametrize(
    ("name", "service", "expected"),
    [
        ("COMPLEMENT_TOKEN", "ours", ["this service stores the actions of flows and runs none"]),
        ("COMPLEMENT_TOKEN", "zitadel", []),
        (
            "INTERNAL_AUTHENTICATION",
            "zitadel",
            ["Login V2 does not run the actions of an authentication flow"],
        ),
    ],
)
def test_actions_that_may_never_run_are_told_once(
    name: str, service: str, expected: list[str]
) -> None:
    trigger = "POST_AUTHENTICATION" if name != "COMPLEMENT_TOKEN" else "PRE_USERINFO_CREATION"
    ref = a_ref(Kind.ACTION_FLOW, name)
    flow = declared(ref, {trigger: ["greet"]})
    state = replace(observed(), keeps_history=service == "ours")

    def told(*written: Resource) -> list[str]:
        planned = Planned([(each, None) for each in written], [held(ref)])
        advice = RULES.advice
        assert advice is not None
        return [each.summary for each in advice(planned, desired(), state)]

    assert told(flow, flow) == expected
    assert told(declared(ref, {})) == []


def test_what_weakens_a_protection_is_severe_and_an_order_is_not() -> None:
    """In this order, at each trigger."""
    assert {rule.name: is_severe(rule.name) for rule in RULES.risks} == {
        "trigger-emptied": True,
        "trigger-action-removed": True,
        "trigger-action-added": True,
        "trigger-order-changed": False,
    }


def test_a_new_flow_is_told_for_what_it_runs_only() -> None:
    """What it does not run was never there."""
    assert {rule.name for rule in RULES.risks if rule.also_new} == {"trigger-action-added"}
