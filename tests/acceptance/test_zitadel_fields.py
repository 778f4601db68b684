"""Fields and values that a ZITADEL takes and this project's service does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from tests.acceptance.conftest import ORGANIZATION, Run, an_action, an_application, an_idp, write
from tests.acceptance.zitadel import a_zitadel
from tests.zitadel.stand_in import GENERATIONS, NEWEST, OLDER, OLDEST, FakeZitadel

PUBLIC = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
LOGOUT = "https://web.example.com/logout"
GRANTS = ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_TOKEN_EXCHANGE"]
LOGIN = {"loginV2": {"baseUri": "https://login.example.com"}}
NEW_OPTIONS = {"isLinkingAllowed": True, "isCreationAllowed": True}
LONG = f"function greet(ctx, api) {{}} // {'é' * 10_000}"
WEB = an_application(
    "web",
    **PUBLIC,
    grantTypes=["AUTHORIZATION_CODE", "TOKEN_EXCHANGE"],
    backChannelLogoutUri=LOGOUT,
    loginVersion=LOGIN,
)


def an_app(fake: FakeZitadel, **config: Any) -> dict[str, Any]:
    project = fake.named("projects", "shop")[0]["id"]
    held = {"clientId": "7", **PUBLIC, "redirectUris": ["https://web.example.com/cb"], **config}
    return fake.put("apps", name="web", project=project, oidcConfig=held)


def config_of(fake: FakeZitadel) -> dict[str, Any]:
    [app] = fake.named("apps", "web")
    config: dict[str, Any] = app["oidcConfig"]
    return config


def risks(plan: Any) -> list[str]:
    return [each["class"] for change in plan["changes"] for each in change["risks"]]


@pytest.mark.parametrize("version", GENERATIONS)
def test_they_are_applied_read_and_exported(run: Run, tree: Path, version: str) -> None:
    """The plan goes by the service: nothing has to be chosen, and an export plans empty."""
    write(tree / "web.yaml", WEB)
    write(tree / "greet.yaml", an_action(script=LONG))
    with a_zitadel(version=version) as (fake, here):
        planned = run("plan", "--format", "json", **here)
        applied = run("apply", "--auto-approve", **here)
        again = run("plan", "--detailed-exitcode", **here)
        exported = run("export", "--out", "out", "--organization", "acme", **here)
        same = run("plan", "out", "--detailed-exitcode", **here)

    assert planned.code == 0, planned.all
    assert "token-exchange-added" in risks(planned.json)
    assert (applied.code, again.code, exported.code, same.code) == (0, 0, 0, 0), same.all
    held = config_of(fake)
    assert (held["grantTypes"], held["backChannelLogoutUri"]) == (GRANTS, LOGOUT)
    assert held["loginVersion"] == LOGIN
    assert fake.named("actions", "greet")[0]["script"] == LONG
    assert "reconciler validate --capabilities zitadel-3 or zitadel-4." in exported.err
    assert run("validate", "out").code == 1
    assert run("validate", "out", "--capabilities", "zitadel-3").code == 0


@pytest.mark.parametrize("version", GENERATIONS)
def test_what_a_manifest_leaves_out_stays_as_it_is_held(run: Run, tree: Path, version: str) -> None:
    """Another tool may have set it, also where the same update changes something else."""
    write(tree / "web.yaml", an_application("web", **PUBLIC))
    with a_zitadel(version=version) as (fake, here):
        an_app(fake, backChannelLogoutUri=LOGOUT, loginVersion=LOGIN)
        quiet = run("plan", "--detailed-exitcode", **here)
        write(tree / "web.yaml", an_application("web", **PUBLIC, devMode=True))
        applied = run("apply", "--auto-approve", **here)

    assert quiet.code == 0, quiet.all
    assert applied.code == 0, applied.all
    held = config_of(fake)
    assert (held["backChannelLogoutUri"], held["loginVersion"]) == (LOGOUT, LOGIN)
    assert held["devMode"] is True


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_change_of_them_is_shown_with_its_risks(run: Run, tree: Path, version: str) -> None:
    write(
        tree / "web.yaml",
        an_application("web", **PUBLIC, backChannelLogoutUri="", loginVersion={"loginV1": {}}),
    )
    with a_zitadel(version=version) as (fake, here):
        an_app(fake, backChannelLogoutUri=LOGOUT, loginVersion=LOGIN)
        text = run("plan", **here)
        plan = run("plan", "--format", "json", "--out", "plan.json", **here).json
        forms = [run("plan", "--format", form, **here) for form in ("markdown", "html")]
        applied = run("apply", "plan.json", **here)
        again = run("plan", "--detailed-exitcode", **here)

    fields = {
        each["name"]: (each["before"], each["after"]) for each in plan["changes"][0]["fields"]
    }
    assert fields == {
        "backChannelLogoutUri": (LOGOUT, ""),
        "loginVersion": (LOGIN, {"loginV1": {}}),
    }
    assert risks(plan) == ["back-channel-logout-removed", "login-version-changed"]
    shown = 'loginVersion: {"loginV2": {"baseUri": "https://login.example.com"}} -> {"loginV1": {}}'
    assert shown in text.out
    assert all(form.code == 0 and "loginVersion" in form.out for form in forms)
    assert (applied.code, again.code) == (0, 0), applied.all
    assert config_of(fake)["backChannelLogoutUri"] == ""
    assert config_of(fake)["loginVersion"] == {"loginV1": {}}


def test_a_server_that_is_too_old_for_them_is_sent_none(run: Run, tree: Path) -> None:
    """It takes what the source says: more is refused at its place, the rest is applied."""
    write(tree / "web.yaml", WEB)
    with a_zitadel(version=OLDEST) as (fake, here):
        refused = run("plan", **here)
        write(tree / "web.yaml", an_application("web", **PUBLIC))
        applied = run("apply", "--auto-approve", **here)
        write(tree / "web.yaml", an_application("web", **PUBLIC, devMode=True))
        updated = run("apply", "--auto-approve", **here)

    assert refused.code == 1
    assert refused.err.count("CAPABILITY-FIELD") == 2
    assert "this old ZITADEL has no loginVersion" in refused.err
    assert "web.yaml:1:" in refused.err
    assert (applied.code, updated.code) == (0, 0), updated.all
    assert config_of(fake)["devMode"] is True


@pytest.mark.parametrize(
    ("version", "options", "is_told"),
    [
        *((version, NEW_OPTIONS, False) for version in GENERATIONS),
        *((version, {**NEW_OPTIONS, "isAutoCreation": True}, True) for version in GENERATIONS),
        *((version, {}, True) for version in GENERATIONS),
    ],
)
def test_options_of_a_provider_are_kept_and_told_where_somebody_set_them(
    run: Run, tree: Path, version: str, options: dict[str, bool], *, is_told: bool
) -> None:
    """What a new provider has anyway is not worth a word."""
    write(tree / "partner.yaml", (partner := an_idp()))
    held = {**json.loads(partner)["spec"], "audience": "", "headerName": "x-old"}
    with a_zitadel(version=version) as (fake, here):
        made = fake.put_provider("partner", **held, providerOptions=options)
        exported = run("export", "--out", "out", "--organization", "acme", **here)
        planned = run("plan", **here)
        run("apply", "--auto-approve", **here)

    assert fake.held["idps"][made["id"]]["config"]["jwt"]["headerName"] == "authorization"
    assert fake.held["idps"][made["id"]]["config"]["options"] == options
    assert ("    kept: options set in the console\n" in planned.out) is is_told
    left_out = tree.parent / "out" / "NOT-EXPORTED.txt"
    told = left_out.read_text(encoding="utf-8") if left_out.exists() else ""
    assert ("IdpJwtConfig acme/partner: options set in the console\n" in told) is is_told
    assert "not exported: IdpJwtConfig" in exported.err if is_told else "partner" not in told
    assert "providerOptions" not in exported.all + planned.all


@pytest.mark.parametrize("version", GENERATIONS)
def test_an_application_of_another_type_is_named_once_with_its_type(
    run: Run, tree: Path, version: str
) -> None:
    write(tree / "owners.yaml", ORGANIZATION)
    with a_zitadel(version=version) as (fake, here):
        project = fake.named("projects", "shop")[0]["id"]
        fake.put("apps", name="backend", project=project, apiConfig={"clientId": "8"})
        fake.put("apps", name="wiki", project=project, samlConfig={"metadataUrl": "https://a"})
        exported = run("export", "--out", "out", "--organization", "acme", **here)
        one = run("export", "OidcApplication/acme/shop/backend", **here)
        write(tree / "backend.yaml", an_application("backend", **PUBLIC))
        blocked = run("plan", "--detailed-exitcode", **here)

    told = (tree.parent / "out" / "NOT-EXPORTED.txt").read_text(encoding="utf-8").splitlines()
    api = "it has the configuration of an API application, which no manifest can declare"
    assert [line for line in told if "backend" in line] == [
        f"OidcApplication acme/shop/backend: {api}"
    ]
    assert [line for line in told if "wiki" in line] == [
        f"OidcApplication acme/shop/wiki: {api.replace('an API', 'a SAML')}"
    ]
    assert (exported.code, one.code, blocked.code) == (0, 1, 3)
    assert api in one.err
    assert "holds the configuration of an API application" in " ".join(blocked.err.split())


@pytest.mark.parametrize("version", [*GENERATIONS, OLDEST])
def test_an_empty_header_is_refused_at_its_place_before_anything_is_written(
    run: Run, tree: Path, version: str
) -> None:
    """Every call of a ZITADEL refuses it, the old ones too; this project's service takes it."""
    write(tree / "greet.yaml", an_action())
    write(tree / "partner.yaml", (partner := an_idp(headerName="")))
    column = partner.index('"headerName": ') + len('"headerName": ') + 1
    with a_zitadel(version=version) as (fake, here):
        planned = run("plan", "--format", "json", **here)
        applied = run("apply", "--auto-approve", **here)
    ours, theirs = run("validate"), run("validate", "--capabilities", "zitadel-4")

    assert (planned.code, applied.code, ours.code, theirs.code) == (1, 1, 0, 1), ours.all
    for ran in (planned, applied, theirs):
        assert f"partner.yaml:1:{column}: error CAPABILITY-VALUE" in ran.all, ran.all
        assert "does not take an empty headerName" in ran.all
    assert fake.named("actions", "greet") == fake.named("idps", "partner") == []


@pytest.mark.parametrize(("version", "chosen"), [(NEWEST, "zitadel-3"), (OLDER, "zitadel-4")])
def test_another_generation_than_was_chosen_is_told(
    run: Run, tree: Path, version: str, chosen: str
) -> None:
    write(tree / "owners.yaml", ORGANIZATION)
    other = {"zitadel-3": "zitadel-4", "zitadel-4": "zitadel-3"}[chosen]
    with a_zitadel(version=version) as (_, here):
        wrong = run("plan", "--format", "json", "--capabilities", chosen, **here).json
        right = run("plan", "--format", "json", "--capabilities", other, **here).json
        plain = run("plan", "--format", "json", **here).json

    [finding] = [each for each in wrong["diagnostics"] if each["code"] == "PLAN-CAPABILITIES"]
    assert f"{chosen} were chosen, and the service has those of {other}" in finding["summary"]
    for plan in (right, plain):
        assert "PLAN-CAPABILITIES" not in [each["code"] for each in plan["diagnostics"]]


def test_a_generation_that_cannot_be_told_is_no_other_one(run: Run, tree: Path) -> None:
    """A proxy refuses the call that tells it, and a snapshot keeps that."""
    write(tree / "owners.yaml", ORGANIZATION)
    with a_zitadel(version=NEWEST) as (fake, here):
        fake.strays["ListExecutionFunctions"] = [JSONResponse({"message": "no"}, 403)] * 9
        live = run("plan", "--capabilities", "zitadel-4", **here)
        ours = run("plan", "--capabilities", "source", **here)
        saved = run("export", "--snapshot", "held.json", **here)
    against = run("plan", "--against", "held.json", "--capabilities", "zitadel-4")

    assert (live.code, saved.code, against.code) == (0, 0, 0), live.all + against.all
    assert "PLAN-CAPABILITIES" not in live.all + against.all
    assert "PLAN-CAPABILITIES" in ours.err


def test_an_old_logout_address_that_blocks_an_update_is_told_with_what_to_do(
    run: Run, tree: Path
) -> None:
    """The server checks it on every update, whether or not the manifest says it."""
    gone = "https://gone.invalid/logout"
    write(tree / "web.yaml", an_application("web", **PUBLIC, devMode=True))
    with a_zitadel() as (fake, here):
        an_app(fake, backChannelLogoutUri=gone)
        plan = run("plan", "--format", "json", **here).json
        refused = run("apply", "--auto-approve", **here)
        write(
            tree / "web.yaml",
            an_application("web", **PUBLIC, devMode=True, backChannelLogoutUri=""),
        )
        mended = run("apply", "--auto-approve", **here)

    [note] = [each for each in plan["diagnostics"] if each["code"] == "PLAN-LOGOUT-CHECKED"]
    assert "web" in note["remedy"]
    assert "backChannelLogoutUri" in note["remedy"]
    assert refused.code == 1, refused.all
    assert "Write a spec.backChannelLogoutUri that it can reach" in refused.out
    assert mended.code == 0, mended.all
    assert config_of(fake)["devMode"] is True


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param({}, "SCHEMA-VALUE", id="none"),
        pytest.param({"loginV1": {}, "loginV2": {}}, "SCHEMA-VALUE", id="both"),
        pytest.param({"loginV3": {}}, "SCHEMA-UNKNOWN-FIELD", id="one that there is not"),
        pytest.param({"loginV2": {"baseURI": "x"}}, "SCHEMA-UNKNOWN-FIELD", id="another text"),
        pytest.param("loginV2", "SCHEMA-TYPE", id="a text"),
    ],
)
def test_a_login_version_that_cannot_be_is_refused(
    run: Run, tree: Path, value: Any, code: str
) -> None:
    write(tree / "owners.yaml", ORGANIZATION)
    write(tree / "web.yaml", an_application("web", **PUBLIC, loginVersion=value))

    found = run("validate", "--format", "json", "--capabilities", "zitadel-4").json

    assert {each["code"] for each in found["diagnostics"]} == {code}
    assert all(each["file"].endswith("web.yaml") for each in found["diagnostics"])
    if code == "SCHEMA-VALUE":
        (told,) = found["diagnostics"]
        assert told["remedy"] == "Write loginV1 or loginV2."
        assert told["summary"] == f"loginVersion has {len(value) or 'none'} of its fields, not one"


@pytest.mark.parametrize("version", GENERATIONS)
def test_login_v2_without_an_address_is_no_endless_difference(
    run: Run, tree: Path, version: str
) -> None:
    """The server answers an empty address for none."""
    write(tree / "web.yaml", an_application("web", **PUBLIC, loginVersion={"loginV2": {}}))
    with a_zitadel(version=version) as (fake, here):
        applied = run("apply", "--auto-approve", **here)
        again = run("plan", "--detailed-exitcode", **here)
        run("export", "--out", "out", "--organization", "acme", **here)
        same = run("plan", "out", "--detailed-exitcode", **here)

    assert config_of(fake)["loginVersion"] == {"loginV2": {"baseUri": ""}}
    assert (applied.code, again.code, same.code) == (0, 0, 0), again.all + same.all


@pytest.mark.parametrize(("host", "code"), [("localhost", 1), ("127.0.0.1", 1), ("192.0.2.7", 0)])
def test_a_logout_address_of_the_server_itself_is_refused_with_what_to_do(
    run: Run, tree: Path, host: str, code: int
) -> None:
    """Also of a new application; other addresses are not tried."""
    logout = f"http://{host}/logout"
    write(tree / "web.yaml", an_application("web", **PUBLIC, backChannelLogoutUri=logout))
    with a_zitadel() as (fake, here):
        applied = run("apply", "--auto-approve", **here)

    assert applied.code == code, applied.all
    assert len(fake.named("apps", "web")) == 1 - code
    assert ("Write a spec.backChannelLogoutUri that it can reach" in applied.out) is bool(code)


def test_an_overlay_replaces_a_login_version_as_a_whole(run: Run, tree: Path) -> None:
    write(tree / "owners.yaml", ORGANIZATION)
    write(tree / "web.yaml", an_application("web", **PUBLIC, loginVersion={"loginV1": {}}))
    patch = json.loads(an_application("web"))
    patch["spec"] = {"loginVersion": {"loginV2": {"baseUri": "https://${host}"}}}
    write(tree.parent / "over" / "web.yaml", json.dumps(patch))
    environment = {
        "overlay": "over",
        "capabilities": "zitadel-4",
        "variables": {"host": "a.example"},
    }
    fields = {"variables": {"host": {"type": "string"}}, "environments": {"live": environment}}
    known = {"apiVersion": "reconciler/v1", "kind": "Configuration"}
    write(tree.parent / "reconciler.yaml", json.dumps({**known, **fields}))

    rendered = run("render", "--env", "live")

    assert rendered.code == 0, rendered.all
    assert "loginVersion:\n    loginV2:\n      baseUri: https://a.example\n" in rendered.out
    assert "loginV1" not in rendered.out


def test_a_snapshot_knows_what_its_service_takes(run: Run, tree: Path) -> None:
    """A plan against it needs no request to tell what it refuses."""
    write(tree / "owners.yaml", ORGANIZATION)
    write(tree / "greet.yaml", an_action(script=LONG))
    ours = {"RECONCILER_SERVICE": f"sqlite:{tree.parent}/ours.db"}
    with a_zitadel() as (_, here):
        saved = run("export", "--snapshot", "theirs.json", **here)
    write(tree / "greet.yaml", an_action())
    made = run("apply", "--auto-approve", **ours)
    kept = run("export", "--snapshot", "ours.json", **ours)
    write(tree / "greet.yaml", an_action(script=LONG))

    theirs = run("plan", "--against", "theirs.json", "--capabilities", "zitadel-4")
    refused = run("plan", "--against", "ours.json", "--capabilities", "zitadel-4")

    assert (saved.code, made.code, kept.code) == (0, 0, 0), saved.all + made.all + kept.all
    assert theirs.code == 0, theirs.all
    assert "PLAN-CAPABILITIES" not in theirs.all
    assert refused.code == 1
    assert "greet.yaml:1:" in refused.err
    assert "SCHEMA-TOO-LONG" in refused.err


def test_a_page_limit_that_an_operator_lowered_is_met(run: Run, tree: Path) -> None:
    """Every list is read to its end, so that nothing is planned to be made that is there."""
    write(tree / "owners.yaml", ORGANIZATION)
    names = [f"a{number}" for number in range(5)]
    for name in names:
        write(tree / f"{name}.yaml", an_action(name))
        write(tree / f"web-{name}.yaml", an_application(name, **PUBLIC))
    with a_zitadel() as (fake, here):
        fake.page_limit = 2
        applied = run("apply", "--auto-approve", **here)
        again = run("plan", "--detailed-exitcode", **here)
        exported = run("export", "--out", "out", **here)
        same = run("plan", "out", "--detailed-exitcode", **here)

    assert applied.code == 0, applied.all
    assert (again.code, exported.code, same.code) == (0, 0, 0), again.all + same.all
    assert sorted(item["name"] for item in fake.held["actions"].values()) == names
