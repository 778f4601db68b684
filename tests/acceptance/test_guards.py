"""Guards through the real command: what stops, how it exits, and which flag lets it pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.conftest import (
    ORGANIZATION,
    Place,
    Run,
    an_action,
    an_application,
    an_idp,
    write,
)

NONE = "OIDC_AUTH_METHOD_TYPE_NONE"
WEB = "OidcApplication/acme/shop/web"
WHY = "the key is lost"


def with_metadata(manifest: str, **metadata: object) -> str:
    """Return a manifest with more metadata."""
    fields = json.loads(manifest)
    fields["metadata"].update(metadata)
    return json.dumps(fields)


@pytest.fixture
def critical(run: Run, small: Path) -> Path:
    """Return a folder that is applied, with an application that is critical."""
    write(small / "web.yaml", with_metadata(an_application("web"), critical=True))
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0
    return small


def blocks(run: Run, *flags: str) -> list[str]:
    """Return the codes of what blocks a plan."""
    found = run("plan", "--format", "json", *flags).json["diagnostics"]
    return [finding["code"] for finding in found if finding["severity"] == "error"]


def test_a_critical_application_is_not_weakened_unless_it_is_named(
    run: Run, critical: Path
) -> None:
    """The plan is shown in full, apply writes nothing, and the flag is in the text."""
    weaker = an_application("web", authMethodType=NONE)
    write(critical / "web.yaml", with_metadata(weaker, critical=True))

    shown = run("plan", "--detailed-exitcode")
    refused = run("apply", "--auto-approve")

    assert (shown.code, refused.code) == (3, 3)
    assert "credential-weaker" in shown.out
    assert f"allow just that: --break-glass {WEB}=REASON." in refused.err
    assert run("apply", "--auto-approve", "--break-glass", f"{WEB}={WHY}").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


RESPONSES = ["OIDC_RESPONSE_TYPE_CODE", "OIDC_RESPONSE_TYPE_ID_TOKEN"]
GRANTS = ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_IMPLICIT"]
LOSSES: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "response-removed": (
        {"responseTypes": RESPONSES, "grantTypes": GRANTS},
        {"responseTypes": RESPONSES[:1], "grantTypes": GRANTS},
    ),
    "origin-removed": ({"additionalOrigins": ["https://a.example.com"]}, {}),
    "logout-removed": ({"postLogoutRedirectUris": ["https://a.example.com/bye"]}, {}),
    "app-type-changed": ({}, {"appType": "OIDC_APP_TYPE_USER_AGENT"}),
    "role-assertion-off": ({"accessTokenRoleAssertion": True}, {}),
}


def test_what_a_critical_application_may_not_lose(place: Place) -> None:
    """Each kind of loss stops the plan for its own application."""

    def declare(side: int) -> None:
        for risk, spec in LOSSES.items():
            manifest = an_application(risk, authMethodType=NONE, **spec[side])
            write(place.manifests / f"{risk}.yaml", with_metadata(manifest, critical=True))

    declare(0)
    assert place.run("apply", "--auto-approve").code == 0
    declare(1)

    planned = place.run("plan", "--format", "json", "--detailed-exitcode")
    refused = place.run("apply", "--auto-approve")

    assert (planned.code, refused.code) == (3, 3), refused.all
    risks = {
        change["ref"]["name"]: {risk["class"] for risk in change["risks"]}
        for change in planned.json["changes"]
    }
    assert risks == {risk: {risk} for risk in LOSSES}
    assert refused.err.count("GUARD-CRITICAL") == len(LOSSES)


def test_the_service_remembers_what_was_critical_when_its_manifest_is_gone(
    run: Run, critical: Path
) -> None:
    """A folder that was left out must not be able to lock people out."""
    (critical / "web.yaml").unlink()
    flags = ("--prune", "--allow-deletes", "9")

    assert blocks(run, *flags) == ["GUARD-CRITICAL"]
    assert run("apply", "--auto-approve", *flags).code == 3
    assert blocks(run, *flags, "--break-glass", f"{WEB}={WHY}") == []
    assert run("apply", "--auto-approve", *flags, "--break-glass", f"{WEB}={WHY}").code == 0


def test_what_is_critical_stays_so_until_the_glass_is_broken(run: Run, critical: Path) -> None:
    """Otherwise two small changes would do what one may not."""
    write(critical / "web.yaml", an_application("web"))

    assert blocks(run) == ["GUARD-CRITICAL"]
    assert run("apply", "--auto-approve", "--break-glass", f"{WEB}={WHY}").code == 0
    write(critical / "web.yaml", an_application("web", authMethodType=NONE))
    assert blocks(run) == []


def test_glass_can_be_broken_for_several_objects_by_flag_or_environment(
    run: Run, critical: Path
) -> None:
    """Each by its name; as a plan writes it, too."""
    write(critical / "greet.yaml", with_metadata(an_action(), critical=True))
    assert run("apply", "--auto-approve").code == 0
    write(critical / "greet.yaml", with_metadata(an_action(script="let x;"), critical=True))
    weaker = an_application("web", authMethodType=NONE)
    write(critical / "web.yaml", with_metadata(weaker, critical=True))

    assert blocks(run) == ["GUARD-CRITICAL"] * 2
    assert blocks(run, "--break-glass", f"{WEB}={WHY}") == ["GUARD-CRITICAL"]
    both = (
        *("--break-glass", f"OidcApplication acme/shop/web={WHY}"),
        *("--break-glass", f"action/ACME/greet={WHY}"),
    )
    assert blocks(run, *both) == []
    lines = f"{WEB}={WHY}\nAction/acme/greet={WHY}"
    by_environment = run("plan", "--detailed-exitcode", RECONCILER_BREAK_GLASS=lines)
    assert by_environment.code == 2


@pytest.mark.parametrize("ref", ["web", "Application/acme/web", "Action", "Action/", "/acme/web"])
def test_a_name_that_cannot_be_one_is_wrong_usage(run: Run, small: Path, ref: str) -> None:
    """A slip in it must not look like a permission."""
    ran = run("plan", "--break-glass", ref)

    assert ran.code == 1
    assert "names no object" in ran.err
    assert (
        "inside a name, / is written %2F, = is written %3D, * is written %2A and % is written %25."
        in ran.err
    )


@pytest.fixture
def slashes(run: Run, small: Path) -> Path:
    """Return a folder of two critical applications whose names differ by where a slash belongs."""
    inner = with_metadata(an_application("a/b"), critical=True)
    write(small / "inner.yaml", inner.replace("a/b.example", "one.example"))
    outer = with_metadata(an_application("b"), critical=True, project="shop/a")
    write(small / "outer.yaml", outer)
    project = ORGANIZATION.split("---")[1].replace("shop", "shop/a")
    write(small / "project.yaml", project)
    assert run("apply", "--auto-approve").code == 0
    return small


def test_a_ref_means_one_object_or_none(run: Run, slashes: Path) -> None:
    """A slash in a name neither frees another object nor replaces its secret."""
    for name in ("inner.yaml", "outer.yaml"):
        weaker = json.loads((slashes / name).read_text())
        weaker["spec"]["authMethodType"] = NONE
        write(slashes / name, json.dumps(weaker))

    unclear = run("plan", "--break-glass", "OidcApplication/acme/shop/a/b=x")
    rotated = run("secret", "rotate", "--auto-approve", "acme/shop/a/b")
    told = run("history", "OidcApplication acme/shop/a/b")
    shown = run("plan")

    for ran in (unclear, rotated, told):
        assert ran.code == 1
        assert "could name several objects" in ran.err
        assert "OidcApplication/acme/shop/a%2Fb or OidcApplication/acme/shop%2Fa/b" in ran.err
    assert "~ OidcApplication acme/shop/a%2Fb" in shown.out
    assert "--break-glass OidcApplication/acme/shop%2Fa/b=REASON." in shown.err
    assert blocks(run, "--break-glass", "OidcApplication/acme/shop/a%2Fb=x") == ["GUARD-CRITICAL"]
    assert blocks(run, "--break-glass", "OidcApplication acme/shop%2fa/b=x") == ["GUARD-CRITICAL"]
    assert run("secret", "rotate", "--auto-approve", "acme/shop/a%2Fb").code == 0
    assert run("history", "OidcApplication", "acme/shop/a%2Fb").out.count("secret") >= 1


def test_no_adopt_stops_before_what_others_made_is_taken_over(run: Run, small: Path) -> None:
    """The plan counts it, blocked or not."""
    run("apply", "--auto-approve", "--tree", "other")
    write(small / "greet.yaml", an_action(timeout="1s"))

    blocked = run("plan", "--no-adopt", "--detailed-exitcode", "--format", "json")

    assert blocked.code == 3
    assert blocked.json["summary"]["adopt"] == 1
    assert blocks(run, "--no-adopt") == ["GUARD-ADOPT"]
    refused = run("apply", "--auto-approve", "--no-adopt")
    assert refused.code == 3
    assert "leave --no-adopt out" in refused.err
    assert run("plan", "--detailed-exitcode", RECONCILER_NO_ADOPT="1").code == 3
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--no-adopt", "--detailed-exitcode").code == 0


def test_a_rename_without_the_id_is_stopped_and_one_with_it_is_not(run: Run, small: Path) -> None:
    """Nobody loses a client id because a file was renamed."""
    run("apply", "--auto-approve")
    (small / "web.yaml").unlink()
    renamed = an_application("shopfront", redirectUris=["https://web.example.com/cb"])
    write(small / "shopfront.yaml", renamed)

    stopped = run("plan", "--prune", "--detailed-exitcode", "--format", "json")
    (finding,) = [found for found in stopped.json["diagnostics"] if found["severity"] == "error"]

    assert stopped.code == 3
    assert finding["code"] == "GUARD-MADE-ANEW"
    held = stopped.json["changes"][-1]["id"]
    assert f"metadata.id: '{held}'" in finding["remedy"]
    write(small / "shopfront.yaml", with_metadata(renamed, id=held))
    assert run("apply", "--auto-approve", "--prune").code == 0
    assert run("outputs", "--format", "json").out.count(held) >= 1


def test_an_application_that_was_renamed_and_redirected_by_hand_is_not_deleted(
    place: Place,
) -> None:
    """Nothing of it is as declared: only its history shows which one it is."""
    assert place.run("apply", "--auto-approve").code == 0
    web = place.direct.objects()["web"]
    named = {"projectId": web["projectId"], "appId": web["id"]}
    moved = {**web["spec"], "redirectUris": ["https://moved.example.com/cb"]}
    place.direct("UpdateApp", name="moved", **named)
    place.direct("UpdateOIDCAppConfig", **named, **moved)
    saved = place.run("plan", "--prune", "--allow-deletes", "1", "--out", "plan.json")

    for stopped in (
        place.run("apply", "--prune", "--allow-deletes", "1", "--auto-approve"),
        place.run("apply", "plan.json", "--prune", "--allow-deletes", "1"),
    ):
        assert stopped.code == 3
        assert stopped.err.count("GUARD-MADE-ANEW") == 1
        assert f"metadata.id: '{web['id']}'" in stopped.err

    assert saved.code == 0
    write(place.manifests / "web.yaml", with_metadata(an_application("web"), id=web["id"]))
    assert place.run("apply", "--prune", "--auto-approve").code == 0
    assert place.direct.objects()["web"]["clientId"] == web["clientId"]


def test_an_organization_that_is_no_longer_named_is_reported(run: Run, small: Path) -> None:
    """What is in it is no longer looked after, and somebody should know."""
    run("apply", "--auto-approve")
    for path in small.iterdir():
        text = path.read_text(encoding="utf-8").replace("acme", "globex")
        path.write_text(text, encoding="utf-8")

    plan = run("plan", "--format", "json").json
    part = run("plan", str(small / "organization.yaml"), "--format", "json").json
    other = run("plan", "--tree", "other", "--format", "json").json

    (left,) = [found for found in plan["diagnostics"] if found["code"] == "PLAN-ORGANIZATION-LEFT"]
    assert left["severity"] == "warning"
    assert left["remedy"].startswith("Tree default applied objects to acme, ")
    for quiet in (part, other):
        codes = [found["code"] for found in quiet["diagnostics"]]
        assert "PLAN-ORGANIZATION-LEFT" not in codes


def test_the_deprecated_operation_is_told_once_a_run(run: Run, small: Path) -> None:
    """By plan and by apply, with the file, and without a change of the digest."""
    run("apply", "--auto-approve")
    write(small / "partner.yaml", an_idp(headerName="x-token"))

    planned = run("plan")
    applied = run("apply", "--auto-approve")

    for ran in (planned, applied):
        assert ran.err.count("PLAN-DEPRECATED-OPERATION") == 1
        assert "IdpJwtConfig acme/partner (manifests/partner.yaml:1:" in ran.err
    assert applied.code == 0
    assert "PLAN-DEPRECATED-OPERATION" not in run("plan").err


@pytest.mark.parametrize("reason", ["key lost = urgent", "\U0001f511" * 500])
def test_the_reason_is_kept_with_what_was_written_and_no_other(place: Place, reason: str) -> None:
    """History tells why a guard was passed, after the pipeline's log is gone."""
    write(place.manifests / "web.yaml", with_metadata(an_application("web"), critical=True))
    assert place.run("apply", "--auto-approve").code == 0
    weaker = an_application("web", authMethodType=NONE)
    write(place.manifests / "web.yaml", with_metadata(weaker, critical=True))
    write(place.manifests / "greet.yaml", an_action(timeout="5s"))
    flags = ("--break-glass", f"{WEB}= {reason} ")
    saved = place.run("plan", *flags, "--out", "plan.json")
    assert saved.code == 0
    assert place.run("apply", "plan.json", *flags).code == 0

    told = place.run("history", WEB, "--format", "json").json["events"]
    other = place.run("history", "Action/acme/greet", "--format", "json").json["events"]

    assert [event["reason"] for event in told] == [None, reason]
    assert {event["reason"] for event in other} == {None}
    assert f"    reason: {reason}" in place.run("history", WEB).out
    assert reason not in (place.folder / "plan.json").read_text(encoding="utf-8")


def test_the_reason_is_no_part_of_the_digest(run: Run, critical: Path) -> None:
    """What would be done is the same, whoever allows it and why."""
    weaker = an_application("web", authMethodType=NONE)
    write(critical / "web.yaml", with_metadata(weaker, critical=True))

    digests = {
        run("plan", *flags, "--format", "json").json["digest"]
        for flags in ((), ("--break-glass", f"{WEB}=a"), ("--break-glass", f"{WEB}=b"))
    }

    assert len(digests) == 1
