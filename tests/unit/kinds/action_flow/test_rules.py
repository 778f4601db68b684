"""What is wrong or dangerous about a flow, and what a reader of its plan should know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.kinds.action_flow.flows import FLOWS
from reconciler.kinds.action_flow.rules import RULES
from reconciler.plan.risk import is_severe
from reconciler.resources.ref import Kind
from reconciler.rules.form import Found, Planned
from reconciler.state import Resource
from tests.builders import TOKEN, FakeSource, a_ref, declared, desired, held, is_valid, observed
from tests.unit.conftest import Judge
from tests.unit.validation.documents import ACTION_FLOW, text_of, with_metadata


def no_script(name: str, script: str) -> bool:
    raise AssertionError(f"a flow has no script: {name}")


def flow(name: str, **spec: Any) -> str:
    return text_of({**with_metadata(ACTION_FLOW, name=name), "spec": spec})


@pytest.mark.parametrize("each", FLOWS, ids=lambda each: each.name)
def test_a_flow_has_its_own_triggers(judge_text: Judge, each: Any) -> None:
    spec = {trigger.name: ["greet", "log"] for trigger in each.triggers}

    assert judge_text(flow(each.name, **spec)).diagnostics == ()


def test_a_flow_may_run_nothing(judge_text: Judge) -> None:
    """That is how a flow is kept empty."""
    assert is_valid(judge_text(flow("COMPLEMENT_TOKEN")))


AUTHENTICATION = "EXTERNAL_AUTHENTICATION or INTERNAL_AUTHENTICATION"


def not_of_tokens(trigger: str, hint: str = "") -> Diagnostic:
    return error(
        "FLOW-TRIGGER",
        f"COMPLEMENT_TOKEN has no trigger {trigger}",
        f"{hint}Write PRE_USERINFO_CREATION or PRE_ACCESS_TOKEN_CREATION; {trigger} is a trigger "
        f"of {AUTHENTICATION}.",
    )


def twice(action: str) -> Diagnostic:
    return error(
        "FLOW-ACTION-TWICE",
        f"the action {action} is in this list already",
        "Remove one: a trigger runs an action once.",
    )


@pytest.mark.parametrize(
    ("trigger", "actions", "found"),
    [
        pytest.param(
            "POST_AUTHENTICATION",
            ["greet"],
            Found(not_of_tokens("POST_AUTHENTICATION"), ("spec", "POST_AUTHENTICATION")),
            id="a trigger of another flow",
        ),
        pytest.param(
            "PRE_CREATION",
            ["greet"],
            Found(
                not_of_tokens("PRE_CREATION", "Did you mean PRE_USERINFO_CREATION? "),
                ("spec", "PRE_CREATION"),
            ),
            id="a trigger of another flow that is like one of this flow",
        ),
        pytest.param(
            "PRE_USERINFO_CREATION",
            ["greet", "log", "greet"],
            Found(twice("greet"), ("spec", "PRE_USERINFO_CREATION", 2)),
            id="an action twice",
        ),
        pytest.param(
            "PRE_USERINFO_CREATION",
            ["greet", "Greet", "log"],
            Found(twice("Greet"), ("spec", "PRE_USERINFO_CREATION", 1)),
            id="an action twice, in another case",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    judge_text: Judge, trigger: str, actions: list[str], found: Found
) -> None:
    spec = {trigger: actions}

    assert [*RULES.findings(declared(TOKEN, spec), spec, no_script)] == [found]
    (told,) = judge_text(flow("COMPLEMENT_TOKEN", **spec)).diagnostics
    assert (told.code, told.is_error) == (found.problem.code, True)


def test_a_flow_of_a_misspelt_name_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKENS")).diagnostics

    assert found.code == "SCHEMA-VALUE"
    assert "Did you mean COMPLEMENT_TOKEN?" in found.remedy


def test_a_misspelt_trigger_is_told_the_nearest(judge_text: Judge) -> None:
    (found,) = judge_text(flow("COMPLEMENT_TOKEN", PRE_USERINFO=["greet"])).diagnostics

    assert found.code == "SCHEMA-UNKNOWN-FIELD"
    assert "PRE_USERINFO_CREATION" in found.remedy


def written(name: str, trigger: str, *actions: str) -> Resource:
    """Return a flow of a file of its own."""
    source = FakeSource(f"{name}.yaml", {("metadata", "name"): 7})
    return declared(a_ref(Kind.ACTION_FLOW, name), {trigger: actions}, source=source)


TOKENS = written("COMPLEMENT_TOKEN", "PRE_USERINFO_CREATION", "greet")
LOGINS = [
    written(name, "POST_AUTHENTICATION", "greet")
    for name in ("INTERNAL_AUTHENTICATION", "EXTERNAL_AUTHENTICATION")
]


EMPTY = written("INTERNAL_AUTHENTICATION", "PRE_CREATION")


@pytest.mark.parametrize(
    ("service", "flows", "expected"),
    [
        pytest.param(
            "ours",
            [TOKENS, *LOGINS],
            [
                warning(
                    "PLAN-FLOW-NOT-RUN",
                    "this service stores the actions of flows and runs none",
                    "Scripts run on a ZITADEL only. Here flows are planned, reviewed and kept.",
                    SourceLocation("COMPLEMENT_TOKEN.yaml", 7, 3),
                )
            ],
            id="our own service",
        ),
        pytest.param("zitadel", [TOKENS], [], id="a flow that every ZITADEL runs"),
        pytest.param(
            "zitadel",
            [TOKENS, *LOGINS, LOGINS[0]],
            [
                warning(
                    "PLAN-FLOW-NOT-RUN",
                    "Login V2 does not run the actions of an authentication flow",
                    "EXTERNAL_AUTHENTICATION, INTERNAL_AUTHENTICATION: only the pages of Login V1 "
                    "run it. Login V2 is the default of instances that were made with ZITADEL 4: "
                    "check which login the organization uses before it relies on these actions.",
                    SourceLocation("INTERNAL_AUTHENTICATION.yaml", 7, 3),
                )
            ],
            id="flows that only one login runs",
        ),
        pytest.param("ours", [EMPTY], [], id="nothing to run, on our own service"),
        pytest.param("zitadel", [EMPTY], [], id="nothing to run, on a ZITADEL"),
    ],
)
def test_actions_that_may_never_run_are_told_once(
    service: str, flows: list[Resource], expected: list[Diagnostic]
) -> None:
    state = replace(observed(), keeps_history=service == "ours")
    planned = Planned([(each, None) for each in flows], [held(TOKEN)])

    assert [*RULES.advice(planned, desired(), state)] == expected


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
