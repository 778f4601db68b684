"""The engine says which rules are wrong and which changes they are not true for."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic
from reconciler.errors import UsageError
from reconciler.kinds.fields import KINDS
from reconciler.policy import engine as engine_module
from reconciler.policy.engine import BATCH, MAX_RULES, Engine
from reconciler.policy.model import Over, Policy, Setting, Subject, Verdict
from reconciler.resources.normal import TYPES
from reconciler.resources.ref import Kind
from tests.policies import NOWHERE, a_change, a_policy, checked, judged, outcome_of
from tests.rows import each_row

APP_AFTER = {
    "redirectUris": ["https://a.example.com/cb", "com.example.app:/cb"],
    "devMode": True,
    "clockSkew": "1.5s",
    "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"],
    "loginVersion": {"loginV2": {"baseUri": "https://login.example.com"}},
}


def by_text(rules: Iterable[str], **rest: Any) -> list[Policy]:
    """Return a policy for each rule, with the rule as its name."""
    return [a_policy(rule, rule, **rest) for rule in rules]


def test_rules_see_the_change() -> None:
    rules = {
        "after.devMode": True,
        "!after.devMode": False,
        "after.redirectUris.size() == 2": True,
        "after.redirectUris.all(u, u.startsWith('https:'))": False,
        "host(after.redirectUris[0]) == 'a.example.com'": True,
        "path(after.redirectUris[1]) == '/cb'": True,
        "after.redirectUris.exists(u, u.matches('^https://[a-z.]+/cb$'))": True,
        "after.clockSkew == duration('1500ms')": True,
        "after.clockSkew < duration('2s') && after.clockSkew > duration('1s')": True,
        "'OIDC_GRANT_TYPE_IMPLICIT' in after.grantTypes": True,
        "after.appType == 'OIDC_APP_TYPE_WEB'": True,  # a default
        "after.responseTypes == ['OIDC_RESPONSE_TYPE_CODE']": True,  # a default
        "after.additionalOrigins == []": True,  # a default
        "has(after.loginVersion.loginV2) && !has(after.loginVersion.loginV1)": True,
        "after.loginVersion.loginV2.baseUri.endsWith('example.com')": True,
        "change == 'create' && ref == 'OidcApplication/acme/shop/web'": True,
        "'devMode' in fields && 'RISK-X' in risks": True,
        "environment == 'production' && protected": True,
        "true // a comment at the end": True,
        "false // a comment at the end": False,
    }
    subject = a_change(after=APP_AFTER, fields=("devMode",), risks=("RISK-X",))

    verdicts = judged(by_text(rules), subject, setting=Setting("production", protected=True))

    assert verdicts == tuple(Verdict(rule, 0) for rule, passes in rules.items() if not passes)


def test_both_sides_of_an_update_are_seen() -> None:
    policy = a_policy("!(before.devMode && !after.devMode)", changes=("update",))

    assert judged(
        policy,
        a_change("update", {"devMode": True}, {"devMode": False}),
        a_change("update", {"devMode": False}, {"devMode": True}),
    ) == (Verdict("p", 0),)


def test_a_field_that_is_left_as_held_has_the_value_of_before() -> None:
    policy = a_policy("after.backChannelLogoutUri == ''")
    held = {"backChannelLogoutUri": "https://a.example.com/out"}

    assert judged(policy, a_change("update", held, {}), a_change("update", held, held)) == (
        Verdict("p", 0),
        Verdict("p", 1),
    )
    assert judged(policy, a_change("create", after={})) == ()


@pytest.mark.slow
def test_a_field_is_sent_however_a_rule_reads_it() -> None:
    """Only the fields that the rules read are sent; one that were forgotten would be false."""
    rules = [
        "after.devMode",
        "after\n  . devMode",
        "after // a comment\n  .devMode",
        "(after).devMode",
        "[after].all(each, each.devMode)",
        "{'one': after}.one.devMode",
        "after != OidcApplication{}",
        "(true ? after : after).devMode",
        "type(after) == OidcApplication && after.devMode",
        "!(before == after)",
        "before != after && !before.devMode",
    ]
    change = a_change("update", {}, {"devMode": True})
    for rule in rules:  # each alone, because the words of all rules count together
        both = {"yes": rule, "no": f"!({rule}\n)"}
        found = judged(
            [a_policy(each, name, changes=("update",)) for name, each in both.items()], change
        )
        assert found == (Verdict("no", 0),), rule


def test_a_field_that_the_tool_does_not_know_is_left_out() -> None:
    """A newer server may have it."""
    policy = a_policy("!before.devMode", changes=("update",))

    assert judged(policy, a_change("update", {"fieldOfTomorrow": [1]}, {})) == ()


def test_every_field_of_every_kind_can_be_read() -> None:
    """No name of a field is a reserved word of CEL, and every default fits its type."""
    policies = []
    for kind in KINDS:
        rules = [f"after.{name} == after.{name}" for name in TYPES[kind]]
        rule = " && ".join([*rules, "change == 'create'"])
        policies.append(a_policy(rule, kind.value, kinds=[kind]))

    assert judged(policies, *(a_change(kind=kind) for kind in KINDS)) == ()


def test_a_policy_without_kinds_judges_every_kind() -> None:
    subjects = [a_change(kind=kind) for kind in KINDS]

    verdicts = judged(a_policy("change != 'create'", kinds=()), *subjects)

    assert [verdict.subject for verdict in verdicts] == [*range(len(KINDS))]


def test_a_rule_is_judged_for_what_its_policy_names() -> None:
    words = ("create", "update", "adopt", "delete")
    subjects = [*map(a_change, words), a_change(kind=Kind.PROJECT)]
    table: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [0, 1, 2]),
        ({"changes": ("delete",)}, [3]),
        ({"changes": ("update", "delete")}, [1, 3]),
        ({"kinds": ()}, [0, 1, 2, 4]),
        ({"kinds": (Kind.PROJECT,)}, [4]),
        ({"environments": ("production", "staging")}, [0, 1, 2]),
        ({"environments": ("staging",)}, []),
    ]
    policies = [a_policy("false", str(row), **given) for row, (given, _) in enumerate(table)]

    verdicts = judged(policies, *subjects, setting=Setting("production"))

    for row, (_, judged_are) in enumerate(table):
        assert [each.subject for each in verdicts if each.policy == str(row)] == judged_are, row


def test_a_policy_for_environments_is_not_judged_without_one() -> None:
    assert judged(a_policy("false", environments=("production",)), a_change()) == ()


def test_an_error_is_a_refusal() -> None:
    """The library returns some errors as values and raises others."""
    rules = {
        "1 / 0 == 1": "divide by zero",
        "after.redirectUris[7] == ''": "Index error: index=7 size=0",
        "9223372036854775807 + 1 > 0": "integer overflow",
        "host('no address') == ''": "not an absolute URI: 'no address'",
        "duration(after.clockSkew == duration('0s') ? 'x' : '1s') == duration('1s')": "duration",
        "int('x') == 1": "cannot convert",
        "{'a': 1}.b == 1": "Key not found",
        "''.matches('(')": "regular expression",
        "dyn(after).nope == 1": "no_such_field : nope",
        "dyn('true') && true": "No matching overloads",
        "[1,2,3,4,5,6,7,8,9,10].all(a, " * 5 + "true" + ")" * 5: "Iteration budget",
    }

    verdicts = judged(by_text(rules), a_change())

    assert {each.policy: outcome_of(each) for each in verdicts} == dict.fromkeys(rules, "error")
    for verdict in verdicts:
        assert rules[verdict.policy].lower() in verdict.reason.lower(), verdict


def test_an_error_beside_what_is_true_is_true_in_cel() -> None:
    """The docs say so: the order of the two makes no difference."""
    assert judged(a_policy("1 / 0 == 1 || true"), a_change()) == ()
    assert judged(a_policy("true || 1 / 0 == 1"), a_change()) == ()


def test_each_rule_of_a_change_has_its_own_verdict() -> None:
    """They are evaluated at once, then one by one where they are not all true."""
    policies = [
        a_policy("!after.devMode", "dev"),
        a_policy("true", "fine"),
        a_policy("size(after.redirectUris) > 0 && 1 / size(after.redirectUris) == 1", "uris"),
        a_policy("after.redirectUris[0] == 'https://a.example.com/cb'", "index"),
    ]
    good = {"redirectUris": ["https://a.example.com/cb"]}
    subjects = [
        a_change(after=good),
        a_change(after={**good, "devMode": True}),
        a_change(after=good),
        a_change(after={}),
    ]

    found = {(each.policy, each.subject, outcome_of(each)) for each in judged(policies, *subjects)}

    assert found == {
        ("dev", 1, "failed"),
        ("uris", 3, "failed"),
        ("index", 3, "error"),
    }


def test_an_error_of_one_rule_hides_no_failure_of_another() -> None:
    """In CEL, ``error && false`` is false and ``error || true`` is true."""
    policies = [a_policy("1 / 0 == 1", "bad"), a_policy("false", "no"), a_policy("true", "yes")]

    found = judged(policies, a_change(), a_change())

    assert {(each.policy, each.subject, outcome_of(each)) for each in found} == {
        *[("bad", subject, "error") for subject in (0, 1)],
        *[("no", subject, "failed") for subject in (0, 1)],
    }


@pytest.mark.parametrize("seed", range(5))
def test_all_rules_at_once_and_each_alone_agree(seed: int) -> None:
    """Whatever is true, false or an error, and however many steps the rules make together."""
    dice = random.Random(seed)
    many = f"[{','.join('0' * 90)}]"
    parts = [
        "true",
        "after.devMode",
        "after.redirectUris[0] == 'https://a.example.com/'",
        "host(after.redirectUris[1]) != ''",
        "1 / size(after.redirectUris) == 1",
        f"{many}.all(a, {many}.all(b, true))",
        "after.appType == 'OIDC_APP_TYPE_WEB' // the default",
    ]
    rules = [
        f"{dice.choice(('', '!'))}({dice.choice(parts)}\n) {dice.choice(('&&', '||'))} "
        f"{dice.choice(parts)}"
        for _ in range(8)
    ]
    uris = ["https://a.example.com/", "nowhere", "https://b.example.com/"]
    subjects = tuple(
        a_change(
            after={
                "devMode": dice.random() < 0.5,
                "redirectUris": dice.sample(uris, dice.randint(0, 3)),
            }
        )
        for _ in range(20)
    )
    policies = [a_policy(rule, str(number)) for number, rule in enumerate(rules)]
    with Engine(policies) as engine:
        assert engine.check() == ()
        at_once = engine.judge(subjects, NOWHERE)
        alone = {
            each._replace(subject=position)
            for policy in policies
            for position, subject in enumerate(subjects)
            for each in engine.judge_alone(policy, [subject], NOWHERE)
        }

    assert set(at_once) == alone
    assert len(at_once) == len(alone)
    assert {outcome_of(verdict) for verdict in alone} == {"failed", "error"}


def test_rules_that_are_too_much_together_are_judged_one_by_one() -> None:
    """The library compiles at most 100,000 characters."""
    long = "after.redirectUris.all(u, u != '" + "x" * 3_900 + "')"
    policies = [a_policy(long, f"p{number}") for number in range(30)]
    policies += [a_policy("!after.devMode", "dev")]

    found = judged(policies, a_change(), a_change(after={"devMode": True}))

    assert found == (Verdict("dev", 1),)


def test_more_changes_than_a_batch_keep_their_positions() -> None:
    subjects = [a_change(name=f"web{number}") for number in range(BATCH + 2)]
    subjects[3] = a_change(after={"devMode": True})
    subjects[BATCH + 1] = a_change(after={"devMode": True})

    verdicts = judged(a_policy("!after.devMode"), *subjects)

    assert [verdict.subject for verdict in verdicts] == [3, BATCH + 1]


# Over the plan

CREATED = a_change(after={"devMode": True})
UPDATED = a_change("update", {"devMode": True}, {"redirectUris": ["https://a.example.com"]})
DELETED = a_change("delete", {"devMode": True})
PROJECT = a_change(kind=Kind.PROJECT)


def test_a_rule_over_the_plan_sees_its_changes() -> None:
    rules = {
        "size(changes) == 2": None,  # deletes are not named, nor projects
        "counts.OidcApplication.create == 1 && counts.Project.create == 1": None,
        "counts.OidcApplication.delete == 0": "failed",
        "counts.Action.update == 0": None,
        "changes.exists(c, c.change == 'create' && c.after.devMode)": None,
        "changes.all(c, !c.after.devMode)": "failed",
        "changes.filter(c, has(c.before)).all(c, c.before.devMode)": None,
        "changes.all(c, !has(c.before) || c.before.devMode)": None,
        "changes[0].before.devMode": "error",
        "changes[9].change == ''": "error",
        "!protected && environment == ''": None,
        "changes[1].ref == 'OidcApplication/acme/shop/web'": None,
    }

    verdicts = judged(by_text(rules, over=Over.PLAN), CREATED, UPDATED, DELETED, PROJECT)

    assert {each.subject for each in verdicts} == {None}
    assert {each.policy: outcome_of(each) for each in verdicts} == {
        rule: outcome for rule, outcome in rules.items() if outcome
    }


def test_a_change_has_no_defaults_of_another_kind() -> None:
    rule = "changes.all(c, !c.after.devMode)"
    (verdict,) = judged(a_policy(rule, kinds=(), over=Over.PLAN), PROJECT)

    assert verdict.reason
    assert "no_such_field" in verdict.reason


def test_a_missing_side_of_a_change_is_named() -> None:
    (verdict,) = judged(a_policy("changes[0].before.devMode", over=Over.PLAN), CREATED)

    assert "ask has(...) first" in verdict.reason


def test_a_plan_is_judged_once_even_if_it_is_empty() -> None:
    assert judged(a_policy("size(changes) > 0", over=Over.PLAN)) == (Verdict("p", None),)


def test_a_plan_is_forgotten_once_it_is_judged() -> None:
    with Engine([a_policy("size(changes) == 1", over=Over.PLAN)]) as engine:
        assert engine.judge([CREATED], NOWHERE) == ()
        assert engine.judge([UPDATED], NOWHERE) == ()


# Wrong rules


WRONG = [
    ("!after.devMod", 101, 17, "undefined field 'devMod'"),
    ("true &&\n !after.devMod", 102, 18, "undefined field 'devMod'"),
    ("'é😀' == after.nope", 101, 24, "undefined field 'nope'"),
    ("after.", 101, 17, "Syntax error"),
    ("1 +", 101, 14, "Syntax error"),
    ("(true", 101, 16, "Syntax error"),
    ("", 101, 11, "Syntax error"),
    ("nope(after)", 101, 15, "undeclared reference to 'nope'"),
    ("afer.devMode", 101, 15, "undeclared reference to 'afer.devMode'"),
    ("after.devMode == 'x'", 101, 25, "no matching overload"),
    ("after.clockSkew > 2", 101, 27, "no matching overload"),
    ("host(after) == ''", 101, 15, "no matching overload"),
    ("has(after.nope)", 101, 14, "undefined field 'nope'"),
    ("'text'", 101, 11, "of type string"),
    ("1", 101, 11, "of type int"),
    ("dyn(true)", 101, 11, "of type dyn"),
    ("after", 101, 11, "of type oidcapplication"),
    ("timestamp('2020-01-01T00:00:00Z') == null", 101, 20, "undeclared reference"),
    ("now() == now()", 101, 14, "undeclared reference"),
    ("changes == []", 101, 11, "undeclared reference to 'changes'"),
    ("[" * 40 + "1" + "]" * 40 + " == []", 101, 11, "recursion"),
    ("'a'" + " + 'a'" * 500 + " == ''", 101, 11, "recursion"),
    ("'\ud800' == ''", 101, 11, "half a character"),
]


def test_a_wrong_rule_has_a_place() -> None:
    found: dict[str, Diagnostic] = {}
    for finding in checked(
        *(a_policy(rule, f"{number}.") for number, (rule, *_) in enumerate(WRONG))
    ):
        found.setdefault(finding.summary.split(".")[0].split()[-1], finding)

    for number, (rule, line, column, why) in enumerate(WRONG):
        finding = found[str(number)]
        assert finding.code == "POLICY-RULE"
        assert finding.is_error
        assert why in finding.summary, (rule, finding)
        assert finding.location is not None
        assert (finding.location.line, finding.location.column) == (line, column), (rule, finding)


def test_all_errors_of_all_rules_are_found() -> None:
    findings = checked(
        a_policy("after.a || after.b", "one"), a_policy("true"), a_policy("after.c", "two")
    )

    assert [finding.summary.split("'")[1] for finding in findings] == ["a", "c", "b"]


@each_row(
    ("policy", "hint"),
    [
        (a_policy("after.devmode"), "Did you mean devMode? `reconciler explain OidcApplication`"),
        (
            a_policy("changes.all(c, c.after.scirpt == '')", kinds=(), over=Over.PLAN),
            "Did you mean script? `reconciler explain Action`",
        ),
        (a_policy("after.devMode", kinds=()), "Name in `kinds` only those that have it."),
    ],
)
def test_an_unknown_field_has_a_hint(policy: Policy, hint: str) -> None:
    (finding,) = checked(policy)

    assert finding.code == "POLICY-RULE"
    assert hint in finding.remedy


NULLS = [
    ("before.devMode", ("create",), "reads before, which a create does not have"),
    ("before.devMode", ("create", "update"), "reads before, which a create does not have"),
    ("has(before.clockSkew)", ("create",), "reads before"),
    ("before == after", ("create",), "reads before"),
    ("!after.devMode", ("delete",), "reads after, which a delete does not have"),
    ("before.devMode", ("update", "adopt", "delete"), ""),
    ("!after.devMode", ("create", "update", "adopt"), ""),
    ("[true].all(before, before)", ("create",), ""),  # a variable of its own
    ("fields.exists(f, f == 'before')", ("create", "delete"), ""),
]


def test_a_message_is_never_null() -> None:
    policies = [
        a_policy(rule, f"{number}.", changes=changes)
        for number, (rule, changes, _) in enumerate(NULLS)
    ]
    wrong = {number: why for number, (*_, why) in enumerate(NULLS) if why}

    findings = checked(*policies)

    assert {finding.code for finding in findings} == {"POLICY-NULL"}
    assert {int(finding.summary.split(".")[0].split()[-1]) for finding in findings} == {*wrong}
    for finding in findings:
        assert wrong[int(finding.summary.split(".")[0].split()[-1])] in finding.summary


def test_the_place_of_a_null_is_that_of_the_name() -> None:
    (finding,) = checked(a_policy("true ||\n  before.devMode", changes=("create",)))

    assert finding.location is not None
    assert (finding.location.line, finding.location.column) == (102, 13)


def test_a_rule_that_is_wrong_refuses_when_it_is_judged() -> None:
    with Engine([a_policy("after.nope"), a_policy("false", "no")]) as engine:
        assert engine.judge([a_change()], NOWHERE) == (
            Verdict("p", None, "the rule does not compile"),
            Verdict("no", 0),
        )


def test_the_engine_knows_what_a_rule_reads() -> None:
    rules = {
        "!after.devMode": {"after"},
        "before == after && change == 'update'": {"before", "after", "change"},
        "'X' in risks || size(fields) > 1 || ref == ''": {"risks", "fields", "ref"},
        "protected && environment == 'production'": {"protected", "environment"},
        "true": set(),
        "[1].all(after, after == 1)": set(),
    }
    policies = by_text(rules, changes=("update",))
    with Engine(policies) as engine:
        assert {each.rule: engine.reads(each) for each in policies} == rules


def test_a_rule_over_the_plan_reads_changes_or_counts() -> None:
    policy = a_policy("size(changes) == counts.Action.create", over=Over.PLAN)
    with Engine([policy]) as engine:
        assert engine.reads(policy) == {"changes", "counts"}


def test_there_is_a_greatest_number_of_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_RULES == 200
    monkeypatch.setattr(engine_module, "MAX_RULES", 2)
    (finding,) = checked(*[a_policy("true", f"p{number}") for number in range(3)])

    assert (finding.code, finding.summary) == ("POLICY-LIMIT", "more than 2 policies")


# A policy alone, and none


def test_a_policy_alone_is_judged_whatever_it_is_for() -> None:
    policy = a_policy("!after.devMode", environments=("production",), changes=("update",))
    bad, good = a_change(after={"devMode": True}), a_change()
    over_plan = a_policy("size(changes) == 1", "plan", over=Over.PLAN)
    table: list[tuple[Policy, Sequence[Subject], tuple[Verdict, ...]]] = [
        (policy, [bad], (Verdict("p", 0),)),
        (policy, [good], ()),
        (over_plan, [DELETED], ()),
        (over_plan, [], (Verdict("plan", None),)),
        (policy, [good, bad], (Verdict("p", 1),)),
    ]
    with Engine([policy, over_plan]) as engine:
        for judges, subjects, verdicts in table:
            assert engine.judge_alone(judges, subjects, NOWHERE) == verdicts


def test_a_change_of_another_kind_is_an_error() -> None:
    policy = a_policy("change == 'create'")
    with Engine([policy]) as engine:
        first, second = engine.judge_alone(policy, [PROJECT, PROJECT], NOWHERE)

    assert {outcome_of(first), outcome_of(second)} == {"error"}
    assert first.reason == "the policy is not about changes of Project"


def test_a_name_is_given_once() -> None:
    """The rule of the first one would not be judged."""
    with pytest.raises(AssertionError, match="two policies of one name"):
        Engine([a_policy("false"), a_policy("true")])


def test_without_policies_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "missing_modules", lambda _: ["cel_expr_python"])
    with Engine([]) as engine:
        assert engine.check() == ()
        assert engine.judge([a_change()], NOWHERE) == ()


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "missing_modules", lambda _: ["cel_expr_python"])

    with pytest.raises(UsageError, match="the extra policy, which is not installed") as caught:
        Engine([a_policy("true")]).__enter__()

    assert "musl" in caught.value.remedy


def test_a_subject_of_texts_of_any_kind_is_read_as_text() -> None:
    """Nothing in a value is part of the rule or of the form in which it travels."""
    odd = '"}\n{"done": []}\n\u2028😀\\'
    subject = Subject(*a_change(after={"redirectUris": [odd]})[:5], risks=(odd,))

    assert judged(a_policy("after.redirectUris == risks"), subject) == ()
