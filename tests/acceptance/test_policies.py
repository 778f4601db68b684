"""Policies through the real command, embedded and against a server: what they refuse and when."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    Place,
    Ran,
    Run,
    an_action,
    an_application,
    an_idp,
    as_it_was_read,
    write,
)

WEB = "OidcApplication/acme/shop/web"
NO_DEV_MODE = "!after.devMode"


def a_policy(name: str, rule: str, **spec: Any) -> str:
    """Return a policy, of applications unless it says otherwise. None leaves a field out."""
    fields = {"kinds": ["OidcApplication"], "rule": rule, "message": f"{name} says no.", **spec}
    return _document(
        "Policy", name, {key: fields[key] for key in fields if fields[key] is not None}
    )


def a_waiver(name: str, policy: str, *refs: str, days: int = 100, **spec: Any) -> str:
    """Return a waiver that ends in so many days."""
    until = (datetime.now(UTC) + timedelta(days=days)).date().isoformat()
    fields = {"policy": policy, "refs": [*refs], "reason": "moving", "owner": "team-id"}
    return _document("Waiver", name, {**fields, "until": until, **spec})


def _document(kind: str, name: str, spec: Mapping[str, Any]) -> str:
    head = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec})


def in_folder(folder: Path, *documents: str, name: str = "policies") -> Path:
    """Write documents into a folder of policies, and nothing else."""
    write(folder / name / "all.yaml", "\n---\n".join(documents))
    return folder / name


def found(ran: Ran) -> set[tuple[str, str]]:
    """Return severity and code of the findings about policies and waivers."""
    told = ran.json["diagnostics"]
    return {
        (each["severity"], each["code"])
        for each in told
        if each["code"].startswith(("POLICY", "WAIVER"))
    }


def refused(ran: Ran) -> Mapping[str, set[str]]:
    """Return what each policy refuses, by its names."""
    told: dict[str, set[str]] = {}
    for each in ran.json["diagnostics"]:
        if each["code"] == "POLICY":
            about = each["remedy"].partition(": ")[0]
            told.setdefault(each["policy"], set()).add(about.rpartition("/")[2])
    return told


def objects(place: Place) -> int:
    """Return how many objects are left to make."""
    return len(place.run("plan", "--format", "json").json["changes"])


def test_an_error_blocks_plan_and_apply_and_nothing_is_written(place: Place) -> None:
    in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE, remedy="Remove devMode."))
    write(place.manifests / "web.yaml", an_application("web", devMode=True))

    before = objects(place)

    plan = place.run("plan", "--policies", "policies", "--detailed-exitcode")
    applied = place.run("apply", "--policies", "policies", "--auto-approve")

    assert (plan.code, applied.code) == (3, 3), plan.all + applied.all
    assert "manifests/web.yaml:1:" in plan.err
    assert "error POLICY: policy no-dev-mode: no-dev-mode says no" in plan.err
    assert "OidcApplication acme/shop/web: Remove devMode." in plan.err
    assert "Blocked by 1 finding of policies: apply refuses this plan." in plan.out
    assert "blocked by 1 finding of policies" in applied.err
    assert objects(place) == before > 3


@as_it_was_read
def test_what_a_policy_finds_is_in_every_form(place: Place) -> None:
    in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE))
    write(place.manifests / "web.yaml", an_application("web", devMode=True))
    flags = ("--policies", "policies")

    forms = [place.run("plan", *flags, "--format", form).out for form in ("markdown", "html")]
    for form in ("text", "github", "sarif", "junit"):
        ran = place.run("validate", *flags, "--format", form)
        assert ran.code == 1, ran.all
        forms.append(ran.out)
    (told,) = [
        each
        for each in place.run("plan", *flags, "--format", "json").json["diagnostics"]
        if each["code"] == "POLICY"
    ]

    assert all("POLICY" in text and "policy no-dev-mode" in text for text in forms)
    assert (told["policy"], told["file"], told["line"]) == ("no-dev-mode", "manifests/web.yaml", 1)
    assert "# POLICY: policy no-dev-mode" in forms[0]


@as_it_was_read
def test_warnings_and_notes_do_not_block(place: Place) -> None:
    policies = [a_policy(word, NO_DEV_MODE, severity=word) for word in ("warning", "note")]
    in_folder(place.folder, *policies)
    write(place.manifests / "web.yaml", an_application("web", devMode=True))

    ran = place.run("plan", "--policies", "policies", "--format", "json", "--detailed-exitcode")

    assert ran.code == 2
    assert found(ran) == {("warning", "POLICY"), ("note", "POLICY")}
    assert [each["name"] for each in ran.json["policies"]] == ["warning", "note"]


def test_apply_judges_again_what_was_approved(place: Place) -> None:
    """A plan file or a digest that was made without policies, or with others, passes none."""
    write(place.manifests / "web.yaml", an_application("web", devMode=True))
    digest = place.run("plan", "--out", "plain.json", "--format", "json").json["digest"]
    in_folder(place.folder, a_policy("hosts", "size(after.redirectUris) > 0"))
    place.run("plan", "--out", "judged.json", "--policies", "policies")
    in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE), name="stricter")

    stricter = ("--policies", "stricter", "--secrets-to", "file:kept")
    by_file = place.run("apply", "plain.json", *stricter)
    by_digest = place.run("apply", "--digest", digest, *stricter)
    unjudged = place.run("apply", "judged.json", "--secrets-to", "file:kept")
    judged = place.run(
        "apply", "judged.json", "--policies", "policies", "--secrets-to", "file:kept"
    )

    assert (by_file.code, by_digest.code) == (3, 3), by_file.all + by_digest.all
    assert unjudged.code == 4
    assert "judged by policies that are not given: hosts" in unjudged.err
    assert judged.code == 0, judged.all


@as_it_was_read
def test_a_part_is_judged_by_itself_and_over_the_plan_with_the_whole(place: Place) -> None:
    """Else a plan that a policy refuses could be applied by halves."""
    write(place.manifests / "web.yaml", an_application("web", devMode=True))
    few = a_policy("few", "counts.OidcApplication.create < 2", over="plan")
    fewer = a_policy("fewer", "size(changes) < 2", over="plan")
    in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE), few, fewer)
    in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE), name="singly")
    part = ("--exclude", WEB, "--secrets-to", "file:kept")

    plan = place.run("plan", *part[:2], "--policies", "policies", "--format", "json")
    place.run("plan", *part[:2], "--out", "part.json")
    applied = place.run("apply", "part.json", *part, "--policies", "policies")
    singly = place.run("apply", *part, "--policies", "singly", "--auto-approve")

    told = [each["policy"] for each in plan.json["diagnostics"] if each["code"] == "POLICY"]
    assert sorted(told) == ["few", "fewer"]
    assert applied.code == 3, applied.all
    assert singly.code == 0, singly.all


@as_it_was_read
def test_policies_are_in_the_plan_file_and_not_in_the_digest(place: Place) -> None:
    in_folder(
        place.folder,
        a_policy("no-dev-mode", NO_DEV_MODE),
        a_waiver("moving", "no-dev-mode", WEB),
    )
    write(place.manifests / "web.yaml", an_application("web", devMode=True))
    plain = place.run("plan", "--format", "json").json

    judged = place.run("plan", "--policies", "policies", "--format", "json", "--out", "p.json").json
    shown = place.run("show", "p.json", "--format", "json").json

    assert judged["digest"] == plain["digest"]
    assert "policies" not in plain
    assert [each["name"] for each in shown["policies"]] == ["no-dev-mode"]
    assert shown["policies"] == judged["policies"]
    assert shown["waived"] == judged["waived"]


def test_what_was_waived_stands_in_the_plan_and_with_the_event(place: Place) -> None:
    in_folder(
        place.folder,
        a_policy("no-dev-mode", NO_DEV_MODE),
        a_policy("few", "counts.OidcApplication.create < 2", over="plan"),
        a_waiver("moving", "no-dev-mode", "OidcApplication/ACME/*/w*b"),
        a_waiver("launch", "few", "*"),
    )
    write(place.manifests / "web.yaml", an_application("web", devMode=True))

    plan = place.run("plan", "--policies", "policies")
    ran = place.run("plan", "--policies", "policies", "--format", "json")
    applied = place.run(
        "apply", "--policies", "policies", "--auto-approve", "--secrets-to", "file:kept"
    )
    events = place.run("history", WEB, "--format", "json").json["events"]

    waived = {(each["policy"], each["ref"], each["waiver"]) for each in ran.json["waived"]}
    assert waived == {("no-dev-mode", WEB, "moving"), ("few", None, "launch")}
    assert f"{WEB}: no-dev-mode by moving, until " in plan.out
    assert "Judged by 2 policies, 2 refused and waived." in plan.out
    assert applied.code == 0, applied.all
    assert events[0]["waived"] == "no-dev-mode by moving, few by launch"


@pytest.mark.parametrize(
    ("waiver", "told", "code"),
    [
        (a_waiver("w", "no-dev-mode", WEB, days=-1), ("error", "WAIVER-EXPIRED"), 3),
        (a_waiver("w", "no-dev-mode", WEB, days=0), ("note", "WAIVER-ENDS"), 2),
        (a_waiver("w", "no-dev-mode", WEB, days=14), ("note", "WAIVER-ENDS"), 2),
        (a_waiver("w", "no-dev-mode", f"{WEB}?"), ("warning", "WAIVER-UNUSED"), 3),
        (a_waiver("w", "no-dev-mod", WEB), ("warning", "WAIVER-UNUSED"), 3),
    ],
    ids=["over", "the last day", "ends soon", "of nothing", "of no policy"],
)
def test_a_waiver_counts_to_its_last_day_and_must_waive_something(
    here: Place, waiver: str, told: tuple[str, str], code: int
) -> None:
    in_folder(here.folder, a_policy("no-dev-mode", NO_DEV_MODE), waiver)
    write(here.manifests / "web.yaml", an_application("web", devMode=True))

    ran = here.run("plan", "--policies", "policies", "--format", "json", "--detailed-exitcode")

    assert told in found(ran)
    assert ran.code == code, ran.all
    assert (("error", "POLICY") in found(ran)) == (code == 3)


# What counts comes from the target branch.


class PullRequest:
    """A pull request beside the folder of policies of its target branch."""

    def __init__(self, place: Place) -> None:
        self.place = place
        write(place.manifests / "web.yaml", an_application("web", devMode=True))
        in_folder(place.folder, a_policy("no-dev-mode", NO_DEV_MODE), name="trusted")

    def plan(self, *documents: str) -> Ran:
        """Return the plan with these documents as the policies of the pull request."""
        in_folder(self.place.folder, *documents)
        flags = ("--policies", "policies", "--trusted-policies", "trusted")
        return self.place.run("plan", *flags, "--format", "json", "--detailed-exitcode")


@pytest.fixture
def pull_request(place: Place) -> PullRequest:
    return PullRequest(place)


def after_merge(ran: Ran) -> set[str]:
    """Return what the plan says of the time after the merge."""
    told = ran.json["diagnostics"]
    return {each["summary"] for each in told if each["code"] == "POLICY-AFTER-MERGE"}


LOOSE = a_policy("no-dev-mode", "true")
STRICT = a_policy("no-dev-mode", NO_DEV_MODE)


@as_it_was_read
def test_a_pull_request_cannot_loosen_its_own_policy(pull_request: PullRequest) -> None:
    for proposed, told in (
        (LOOSE, "policy no-dev-mode is changed"),
        (a_policy("no-dev-mode", NO_DEV_MODE, severity="note"), "policy no-dev-mode is changed"),
        (a_policy("no-dev-mode", "true", kinds=["Action"]), "policy no-dev-mode is changed"),
        (a_policy("other", "true"), "policy no-dev-mode is taken out"),
    ):
        ran = pull_request.plan(proposed)

        assert ran.code == 3, ran.all
        assert refused(ran) == {"no-dev-mode": {"web"}}
        assert told in after_merge(ran)


@as_it_was_read
def test_a_pull_request_cannot_waive_a_policy_for_itself(pull_request: PullRequest) -> None:
    ran = pull_request.plan(STRICT, a_waiver("mine", "no-dev-mode", "*"))

    assert ran.code == 3, ran.all
    assert refused(ran) == {"no-dev-mode": {"web"}}
    assert after_merge(ran) == {"waiver mine is new"}
    assert "waived" not in ran.json


@as_it_was_read
def test_a_policy_of_a_pull_request_judges_as_well(pull_request: PullRequest) -> None:
    ran = pull_request.plan(STRICT, a_policy("short", "size(ref) < 10"))

    assert ran.code == 3
    assert refused(ran) == {"no-dev-mode": {"web"}, "short": {"web", "spa"}}
    assert after_merge(ran) == {"policy short is new"}


@as_it_was_read
def test_a_waiver_of_the_target_branch_counts_also_where_it_is_taken_out(
    pull_request: PullRequest,
) -> None:
    folder = pull_request.place.folder
    in_folder(folder, STRICT, a_waiver("w", "no-dev-mode", WEB), name="trusted")

    ran = pull_request.plan(STRICT)

    assert (ran.code, refused(ran)) == (2, {})
    assert after_merge(ran) == {"waiver w is taken out"}


@as_it_was_read
def test_a_pull_request_can_take_out_a_waiver_that_is_over(pull_request: PullRequest) -> None:
    """Its own policies decide about that, or nothing could ever be merged again."""
    folder = pull_request.place.folder
    old = a_waiver("w", "no-dev-mode", WEB, days=-5)
    in_folder(folder, STRICT, old, name="trusted")
    write(folder / "manifests" / "web.yaml", an_application("web"))

    kept, removed = pull_request.plan(STRICT, old), pull_request.plan(STRICT)

    assert (kept.code, removed.code) == (3, 2)
    assert ("error", "WAIVER-EXPIRED") in found(kept)


@as_it_was_read
def test_a_wrong_policy_of_a_pull_request_is_found_before_it_counts(
    pull_request: PullRequest,
) -> None:
    ran = pull_request.plan(a_policy("no-dev-mode", "!after.devMod"))

    assert ran.code == 1
    assert "POLICY-RULE" in ran.err


@as_it_was_read
def test_a_target_branch_without_policies_has_an_empty_folder(pull_request: PullRequest) -> None:
    (pull_request.place.folder / "trusted" / "all.yaml").unlink()

    ran = pull_request.plan(a_policy("new", "true"))

    assert (ran.code, after_merge(ran)) == (2, {"policy new is new"})


def test_the_list_in_the_configuration_is_that_of_the_target_branch(run: Run, small: Path) -> None:
    """A pull request that takes its policies out of the list blocks, and no service is asked."""
    folder = small.parent
    in_folder(folder, STRICT)
    write(small / "web.yaml", an_application("web", devMode=True))
    head = {"apiVersion": "reconciler/v1", "kind": "Configuration"}
    trusted = json.dumps({**head, "policies": ["policies", "recommended"]})
    write(folder / "trusted" / "reconciler.yaml", trusted)
    write(folder / "reconciler.yaml", trusted)
    flags = ("--trusted-config", "trusted/reconciler.yaml", "--detailed-exitcode")

    judged = run("plan", *flags, "--format", "json")
    write(folder / "reconciler.yaml", json.dumps({**head, "policies": ["recommended"]}))
    proposed = run("plan", *flags)

    assert judged.code == 3
    assert "no-dev-mode" in refused(judged)
    assert proposed.code == 3
    assert "the list of policies is not as in the trusted configuration" in proposed.all
    assert "It is recommended here and policies, recommended there." in proposed.all


# Errors refuse.


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_an_evaluation_error_is_a_refusal(here: Place, severity: str) -> None:
    """Whatever the severity, and a waiver does not help: nobody knows what the rule would say."""
    policy = a_policy("odd", "after.redirectUris[7] == 'x'", severity=severity)
    in_folder(here.folder, policy, a_waiver("w", "odd", "*"))

    ran = here.run("plan", "--policies", "policies", "--format", "json", "--detailed-exitcode")

    assert ran.code == 3, ran.all
    assert ("error", "POLICY-ERROR") in found(ran)


def test_no_rule_reads_the_environment_or_the_clock(run: Run, small: Path) -> None:
    for rule in ("env('HOME') == ''", "now() > timestamp(0)", "getenv('HOME') == ''"):
        in_folder(small.parent, a_policy("odd", rule))

        ran = run("validate", "--policies", "policies")

        assert ran.code == 1, rule
        assert "POLICY-RULE" in ran.all


def test_a_rule_has_a_greatest_length(run: Run, small: Path) -> None:
    for length, code in ((4_000, 0), (4_001, 1)):
        in_folder(small.parent, a_policy("long", f"'{'a' * (length - 8)}' != ''"))

        ran = run("validate", "--policies", "policies")

        assert ran.code == code, ran.all
        assert ("SCHEMA-TOO-LONG" in ran.all) == bool(code)


def test_every_finding_comes_in_one_run(run: Run, small: Path) -> None:
    folder = in_folder(
        small.parent,
        a_policy("one", "!after.devMod"),
        a_policy("two", "after.devMode &&"),
        a_policy("two", "true"),
        a_policy("three", "before.devMode"),
        a_policy("Four", "true"),
        _document("Plicy", "five", {}),
        _document("Policy", "six", {"rle": "true", "message": "m"}),
        a_policy("seven", "true", examples={"fail": [{"after": {"devMod": True}}]}),
        a_waiver("eight", "one", WEB, until="2026-02-30"),
    )
    write(
        folder / "block.yaml",
        """\
apiVersion: reconciler/v1
kind: Policy
metadata: {name: nine}
spec:
  kinds: [OidcApplication]
  message: no
  rule: |
    after.devMode
      || after.appTyp == 'x'
""",
    )

    ran = run("validate", "--policies", "policies", "--format", "json")

    codes = sorted(each["code"] for each in ran.json["diagnostics"])
    assert ran.code == 1
    assert codes == sorted(
        [
            "POLICY-DUPLICATE", "POLICY-KIND", "POLICY-NULL", "POLICY-RULE", "POLICY-RULE",
            "POLICY-RULE", "SCHEMA-MISSING-FIELD", "SCHEMA-UNKNOWN-FIELD", "SCHEMA-UNKNOWN-FIELD",
            "SCHEMA-VALUE", "WAIVER-DATE",
        ]
    )  # fmt: skip
    (inside,) = [each for each in ran.json["diagnostics"] if each["file"].endswith("block.yaml")]
    assert (inside["line"], "appType" in inside["remedy"]) == (9, True)


# Forty rules, four plans.

RULES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str]]] = {
    # name: (policy, what it refuses in each plan)
    "dev-mode": ({"rule": "!after.devMode"}, {"create": "dev", "update": "web"}),
    "https": (
        {"rule": "after.redirectUris.all(u, u.startsWith('https://'))"},
        {"create": "plain"},
    ),
    "host": (
        {"rule": "after.redirectUris.all(u, host(u).endsWith('.example.com'))"},
        {"create": "plain dev"},
    ),
    "path": (
        {"rule": "after.redirectUris.all(u, path(u) == '/cb')"},
        {"create": "plain", "update": "spa"},
    ),
    "no-list": ({"rule": "size(after.redirectUris) < 2"}, {"create": "two"}),
    "has-list": ({"rule": "size(after.redirectUris) > 0"}, {}),
    "no-implicit": (
        {"rule": "!('OIDC_GRANT_TYPE_IMPLICIT' in after.grantTypes)"},
        {"create": "implicit"},
    ),
    "code-only": (
        {"rule": "after.responseTypes == ['OIDC_RESPONSE_TYPE_CODE']"},
        {"create": "implicit"},
    ),
    "skew": ({"rule": "after.clockSkew <= duration('1s')"}, {"create": "two"}),
    "skew-is-none": ({"rule": "after.clockSkew == duration('0s')"}, {"create": "two"}),
    "role-claims": ({"rule": "!after.idTokenRoleAssertion"}, {}),
    "profile-claims": ({"rule": "!after.idTokenUserinfoAssertion"}, {"create": "two"}),
    "public": (
        {"rule": "after.authMethodType != 'OIDC_AUTH_METHOD_TYPE_NONE'"},
        {"create": "spa", "update": "spa"},
    ),
    "agent": (
        {"rule": "after.appType != 'OIDC_APP_TYPE_USER_AGENT'"},
        {"create": "spa", "update": "spa"},
    ),
    "jwt": ({"rule": "after.accessTokenType == 'OIDC_TOKEN_TYPE_JWT'"}, {
        "create": "web spa plain dev two implicit", "update": "web spa"
    }),
    "logout": ({"rule": "size(after.postLogoutRedirectUris) == 0"}, {"update": "spa"}),
    "by-name": ({"rule": "!ref.endsWith('/spa')"}, {"create": "spa", "update": "spa"}),
    "by-owner": ({"rule": "ref.startsWith('OidcApplication/acme/shop/')"}, {}),
    "no-update": ({"rule": "change != 'update'"}, {"update": "web spa"}),
    "no-create": (
        {"rule": "change != 'create'"},
        {"create": "web spa plain dev two implicit"},
    ),
    "only-updates": ({"rule": "false", "changes": ["update"]}, {"update": "web spa"}),
    "only-deletes": ({"rule": "false", "changes": ["delete"]}, {"delete": "dev two"}),
    "no-delete-of-dev": ({"rule": "!before.devMode", "changes": ["delete"]}, {"delete": "dev"}),
    "keeps-uris": (
        {"rule": "before.redirectUris.all(u, u in after.redirectUris)", "changes": ["update"]},
        {"update": "spa"},
    ),
    "no-new-dev-mode": (
        {"rule": "before.devMode || !after.devMode", "changes": ["update"]},
        {"update": "web"},
    ),
    "type-stays": ({"rule": "before.appType == after.appType", "changes": ["update"]}, {}),
    "one-field": ({"rule": "size(fields) < 2", "changes": ["update"]}, {"update": "spa"}),
    "not-dev-mode": ({"rule": "!('devMode' in fields)"}, {"create": "dev", "update": "web"}),
    "no-risk": ({"rule": "size(risks) == 0", "changes": ["update"]}, {"update": "web spa"}),
    "in-production": ({"rule": "false", "environments": ["production"]}, {}),
    "without-one": ({"rule": "environment == ''"}, {}),
    "unprotected": ({"rule": "!protected"}, {}),
    "timeout": (
        {"kinds": ["Action"], "rule": "after.timeout <= duration('5s')"},
        {"create": "greet", "update": "greet"},
    ),
    "no-log": (
        {"kinds": ["Action"], "rule": "!after.script.contains('console')"},
        {"update": "greet"},
    ),
    "may-not-fail": ({"kinds": ["Action"], "rule": "!after.allowedToFail"}, {"update": "greet"}),
    "audience": (
        {"kinds": ["IdpJwtConfig"], "rule": "after.audience != ''"},
        {"update": "partner"},
    ),
    "issuer-host": (
        {"kinds": ["IdpJwtConfig"], "rule": "host(after.issuer) == host(after.keysEndpoint)"},
        {"update": "partner"},
    ),
    "projects": ({"kinds": ["Project"], "rule": "ref == 'Project/acme/shop'"}, {}),
    "of-any-kind": ({"kinds": None, "rule": "size(ref) < 20"}, {
        "create": "web spa plain dev two implicit partner", "update": "web spa partner"
    }),
    "providers": ({"kinds": ["IdpJwtConfig"], "rule": "ref == 'IdpJwtConfig/acme/partner'"}, {}),
}  # fmt: skip
OVER_PLANS = {
    "few-creates": ("counts.OidcApplication.create <= 2", {"create"}),
    "no-deletes": ("counts.OidcApplication.delete == 0", {"delete"}),
    "few-changes": ("size(changes) < 3", {"create"}),
    "no-dev-mode": (
        "changes.all(c, c.change == 'delete' || !c.after.devMode)",
        {"create", "update"},
    ),
}


def _first(folder: Path) -> None:
    write(folder / "plain.yaml", an_application("plain", redirectUris=["http://localhost/x"],
                                                appType="OIDC_APP_TYPE_NATIVE"))  # fmt: skip
    write(folder / "dev.yaml", an_application("dev", devMode=True, redirectUris=["https://dev/cb"]))
    write(folder / "two.yaml", an_application(
        "two", redirectUris=["https://a.example.com/cb", "https://b.example.com/cb"],
        clockSkew="2s", idTokenUserinfoAssertion=True,
    ))  # fmt: skip
    write(folder / "implicit.yaml", an_application(
        "implicit", grantTypes=["OIDC_GRANT_TYPE_IMPLICIT"],
        responseTypes=["OIDC_RESPONSE_TYPE_ID_TOKEN"],
    ))  # fmt: skip


def _second(folder: Path) -> None:
    write(folder / "web.yaml", an_application("web", devMode=True))
    write(folder / "spa.yaml", an_application(
        "spa", appType="OIDC_APP_TYPE_USER_AGENT", authMethodType="OIDC_AUTH_METHOD_TYPE_NONE",
        redirectUris=["https://spa.example.com/other"],
        postLogoutRedirectUris=["https://spa.example.com/bye"],
    ))  # fmt: skip
    write(folder / "greet.yaml", an_action(
        "greet", script="function greet(ctx, api) { console.log(1) }", allowedToFail=True
    ))  # fmt: skip
    write(folder / "partner.yaml", an_idp(audience="", keysEndpoint="https://keys.example.com/k"))


def _third(folder: Path) -> None:
    for name in ("dev", "two"):
        (folder / f"{name}.yaml").unlink()


@as_it_was_read
def test_forty_rules_against_a_table_of_plans(place: Place) -> None:
    """Each rule refuses what it is to refuse, in a plan of creates, of updates and of deletes."""
    documents = [
        a_policy(name, **{"severity": "warning", **spec}) for name, (spec, _) in RULES.items()
    ]
    documents += [
        a_policy(f"plan-{name}", rule, over="plan", severity="warning",
                 changes=["create", "update", "delete"])
        for name, (rule, _) in OVER_PLANS.items()
    ]  # fmt: skip
    in_folder(place.folder, *documents)
    assert len(documents) >= 40
    prune = ("--prune", "--allow-deletes", "9", "--allow-updates", "9")
    steps = {"create": _first, "update": _second, "delete": _third}
    told: dict[str, Mapping[str, set[str]]] = {}

    for word, step in steps.items():
        step(place.manifests)
        ran = place.run("plan", "--policies", "policies", "--format", "json", *prune)
        assert ran.code == 0, ran.all
        told[word] = refused(ran)
        applied = place.run("apply", *prune, "--auto-approve", "--secrets-to", "file:kept")
        assert applied.code == 0, applied.all

    for word in steps:
        expected = {
            name: set(refusals[word].split())
            for name, (_, refusals) in RULES.items()
            if word in refusals
        }
        expected |= {f"plan-{name}": set() for name, (_, at) in OVER_PLANS.items() if word in at}
        found_here = {
            name: refs if not name.startswith("plan-") else set()
            for name, refs in told[word].items()
        }
        assert found_here == expected, word


# Folders, commands.


def test_a_policy_among_the_manifests_is_an_error(run: Run, small: Path) -> None:
    write(small / "policies" / "dev.yaml", STRICT)

    ran = run("validate")

    assert ran.code == 1
    assert "error POLICY-PLACE: a Policy stands among the manifests" in ran.all


@as_it_was_read
def test_folders_of_policies_do_not_disturb_prune_and_export(place: Place) -> None:
    """Neither kind is a resource: nothing of a folder of policies declares or holds an object."""
    in_folder(place.folder, a_policy("web", "true"), a_waiver("spa", "web", WEB))
    flags = ("--auto-approve", "--secrets-to", "file:kept")
    assert place.run("apply", *flags).code == 0
    (place.manifests / "web.yaml").unlink()

    pruned = place.run("apply", "--prune", "--allow-deletes", "1", *flags, "--policies", "policies")
    exported = place.run("export").out

    assert pruned.code == 0, pruned.all
    assert "1 deleted" in pruned.out
    assert "kind: Policy" not in exported
    assert "kind: Waiver" not in exported


def test_validate_judges_what_is_declared_and_says_what_needs_a_plan(run: Run, small: Path) -> None:
    in_folder(
        small.parent,
        a_policy("no-dev-mode", NO_DEV_MODE),
        a_policy("updates", "before.devMode || !after.devMode", changes=["update"]),
        a_policy("risky", "size(risks) == 0", severity="note"),
        a_policy("deletes", "false", changes=["delete"]),
        a_policy("few", "size(changes) < 9", over="plan"),
    )
    write(small / "web.yaml", an_application("web", devMode=True))

    ran = run("validate", "--policies", "policies", "--format", "json")

    needing = {
        each["summary"].split()[1]
        for each in ran.json["diagnostics"]
        if each["code"] == "POLICY-NEEDS-PLAN"
    }
    assert ran.code == 1
    assert refused(ran) == {"no-dev-mode": {"web"}}
    assert needing == {"updates", "risky", "deletes", "few"}


def test_each_environment_is_judged_by_its_own_policies(run: Run, small: Path) -> None:
    in_folder(
        small.parent,
        a_policy("live-only", NO_DEV_MODE, environments=["live"]),
        a_policy("protected-only", "!protected || !after.devMode"),
    )
    environments = {"live": {"protected": True}, "test": {"tree": "test"}}
    write(
        small.parent / "reconciler.yaml",
        json.dumps({
            "apiVersion": "reconciler/v1", "kind": "Configuration", "policies": ["policies"],
            "environments": environments,
        }),
    )  # fmt: skip
    write(small / "web.yaml", an_application("web", devMode=True))

    ran = run("validate", "--format", "json")
    live, test = (run("plan", "--env", name, "--format", "json") for name in environments)

    told = [each for each in ran.json["diagnostics"] if each["code"] == "POLICY"]
    assert [each["environments"] for each in told] == [["live"], ["live"]]
    assert refused(live) == {"live-only": {"web"}, "protected-only": {"web"}}
    assert refused(test) == {}


EXAMPLES = {
    "pass": [{"after": {"redirectUris": ["https://a.example.com/cb"]}}],
    "fail": [{"after": {"devMode": True}}],
}


@pytest.mark.parametrize(
    ("documents", "code", "told"),
    [
        ([a_policy("good", NO_DEV_MODE, examples=EXAMPLES)], 0, set()),
        ([a_policy("bare", "true")], 0, {("warning", "POLICY-UNTESTED")}),
        ([a_policy("lax", "true", examples=EXAMPLES)], 1, {("error", "POLICY-EXAMPLE")}),
        ([a_policy("no", "false", examples=EXAMPLES)], 1, {("error", "POLICY-EXAMPLE")}),
        (
            [a_policy("err", "after.redirectUris[0] != ''", examples=EXAMPLES)],
            1,
            {("error", "POLICY-EXAMPLE")},
        ),
        (
            [a_policy("few", "counts.Action.create < 2", over="plan", examples={
                "pass": [{"changes": []}],
                "fail": [{"changes": [{"kind": "Action", "after": {}}] * 2}],
            })],
            0,
            set(),
        ),
    ],
    ids=["good", "without a failing one", "too lax", "too strict", "an error", "over plans"],
)  # fmt: skip
def test_examples_are_judged(
    run: Run, tmp_path: Path, documents: Sequence[str], code: int, told: set[tuple[str, str]]
) -> None:
    in_folder(tmp_path, *documents)

    ran = run("policy", "test", "--format", "json")
    text = run("policy", "test", "policies")

    assert (ran.code, text.code, found(ran)) == (code, code, told)
    assert ran.json["passed"] == (code == 0)
    assert ("Passed: " in text.out) == (code == 0)


def test_the_recommended_policies_pass_their_own_examples(run: Run) -> None:
    ran = run("policy", "test", "recommended", "--format", "json")

    assert (ran.code, ran.json["diagnostics"]) == (0, [])
    assert len(ran.json["policies"]) >= 6


@pytest.mark.parametrize(
    ("argument", "said"),
    [("policies", "error FILE-NONE: no policies found"), ("missing", "error FILE-MISSING")],
)
def test_a_folder_without_policies_is_an_error(
    run: Run, small: Path, argument: str, said: str
) -> None:
    """A folder that lost its files would let everything pass."""
    (small.parent / "policies").mkdir()

    for command in (("plan", "--policies", argument), ("policy", "test", argument)):
        ran = run(*command)
        assert (ran.code, f"{argument}: {said}" in ran.all) == (1, True), ran.all


@pytest.mark.parametrize("content", ["", "# no-dev-mode", a_waiver("w", "no-dev-mode", "*")])
def test_files_without_a_policy_are_an_error(run: Run, small: Path, content: str) -> None:
    in_folder(small.parent, content)

    for command in (("plan", "--policies", "policies"), ("policy", "test", "policies")):
        ran = run(*command)
        assert (ran.code, "error POLICY-NONE: no policies found" in ran.all) == (1, True), ran.all


@pytest.mark.parametrize("name", ["changes", "kinds", "environments"])
def test_an_empty_list_is_an_error(run: Run, small: Path, name: str) -> None:
    """One without changes would judge nothing; one without kinds judges all."""
    in_folder(small.parent, a_policy("no", "false", **{name: []}))

    ran = run("plan", "--policies", "policies")

    assert (ran.code, f"SCHEMA-EMPTY: {name} is empty" in ran.err) == (1, True), ran.all


def test_a_policy_of_no_environment_there_is_is_named(run: Run, small: Path) -> None:
    in_folder(small.parent, a_policy("no", "true", environments=["prodution"]))
    head = {"apiVersion": "reconciler/v1", "kind": "Configuration"}
    environments: Mapping[str, Any] = {"production": {}, "staging": {}}
    write(small.parent / "reconciler.yaml", json.dumps({**head, "environments": environments}))

    ran = run("validate", "--policies", "policies", "--strict")

    assert ran.code == 1
    assert "POLICY-ENVIRONMENT: policy no judges nothing: there is no environment prod" in ran.all
    assert "Did you mean production?" in ran.all


def test_policies_are_in_some_of_the_folders(run: Run, small: Path) -> None:
    in_folder(small.parent, a_waiver("w", "no-dev-mode", "*"), name="waivers")
    folders = ("--policies", "waivers", "--policies", "recommended")

    assert run("plan", *folders, "--detailed-exitcode").code == 2


def test_a_policy_and_its_code_are_explained(run: Run) -> None:
    shown = run("explain", "POLICY")

    assert "a rule of your own" in shown.out.lower()
    assert "severity" in shown.out
    assert run("explain", "Policy.rule").out.startswith("Policy.rule")
    assert run("schema", "Waiver").json["title"] == "Waiver"


def test_a_run_without_policies_loads_nothing_of_them(small: Path) -> None:
    """Who has none pays nothing for them."""
    script = (
        "import sys; from reconciler.cli.main import run; run(['plan'], on_command=lambda: None);"
        "names = [n for n in sys.modules if n.startswith(('reconciler.policy', 'cel_expr'))];"
        "sys.exit(' '.join(names) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=small.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, ""), done.stderr
