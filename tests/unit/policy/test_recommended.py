"""The policies that come with the package: what they refuse, and on whose word."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.configuration.policies import read_policies
from reconciler.policy.engine import Engine
from reconciler.policy.model import Policy, Setting
from reconciler.resources.installation import RECOMMENDED_POLICIES
from tests.policies import a_change, judged, outcome_of

SOURCE = re.compile(r"\((RFC [0-9]+|OpenID Connect [A-Z]\w+ 1\.0|Core 1\.0), [0-9.]+\)\.$")


def recommended() -> tuple[Policy, ...]:
    found, findings = read_policies(["recommended"])
    assert findings == ()
    return found.policies


def test_each_names_its_source_where_it_is_read() -> None:
    policies = recommended()

    assert len(policies) == 7
    assert [each.name for each in policies if not SOURCE.search(each.message)] == []
    assert {each.name.startswith("recommended-") for each in policies} == {True}
    assert {bool(each.remedy) for each in policies} == {True}


def test_each_file_begins_with_its_source() -> None:
    files = [*Path(RECOMMENDED_POLICIES).glob("*.yaml")]

    assert len(files) == 7
    assert {file.read_text(encoding="utf-8").startswith("# ") for file in files} == {True}


def test_each_example_is_as_it_says_in_a_protected_environment_alone() -> None:
    policies = recommended()
    examples = [(policy, example) for policy in policies for example in policy.examples]
    with Engine(policies) as engine:
        assert engine.check() == ()
        as_written = [
            engine.judge_alone(policy, each.subjects, each.setting) for policy, each in examples
        ]
        unprotected = [
            engine.judge_alone(policy, each.subjects, each.setting._replace(protected=False))
            for policy, each in examples
        ]

    assert {example.passes for _, example in examples} == {True, False}
    assert [not verdicts for verdicts in as_written] == [each.passes for _, each in examples]
    assert {outcome_of(verdict) for each in as_written for verdict in each} == {"failed"}
    assert unprotected == [()] * len(examples)


def test_each_fails_for_an_example() -> None:
    assert [
        each.name for each in recommended() if all(example.passes for example in each.examples)
    ] == []


def test_an_address_that_cannot_be_parsed_is_refused() -> None:
    """A browser could read another host in it."""
    (policy,) = [each for each in recommended() if "wildcard" in each.name]
    odd = a_change(after={"redirectUris": ["https://good.example.com\\@*.example.com/"]})

    (verdict,) = judged(policy, odd, setting=Setting("production", protected=True))

    assert verdict.reason
