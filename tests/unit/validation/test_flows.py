"""Action flows: the triggers of each flow, and each action once."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.flows import FLOWS
from tests.unit.validation.conftest import Judge
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
