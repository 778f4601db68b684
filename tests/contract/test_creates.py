"""What creates answer and refuse, over every store there is."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from reconciler.kinds.oidc_application.compliance import MESSAGES
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Refusal
from tests.examples import CODE, TIME
from tests.unit.service.asking import Asking


def test_creating_an_action_answers_id_and_details(ask: Asking) -> None:
    """Source 2.6 and 2.1: on create both dates, the same instant; the sequence is that time."""
    made = ask.an_action()

    assert set(made) == {"details", "id"}
    details = made["details"]
    assert set(details) == {"sequence", "creationDate", "changeDate", "resourceOwner"}
    assert details["resourceOwner"] == ask.organization
    assert details["creationDate"] == details["changeDate"]
    assert TIME.fullmatch(details["creationDate"])
    assert details["sequence"] == f"1800000000{details['creationDate'][20:26]}"


def test_creating_an_application_answers_everything_the_source_names(ask: Asking) -> None:
    """Source 2.4; the defaults of source 2.3 make it a web application with a secret."""
    made = ask.an_app(redirectUris=["https://shop.example.com/callback"])

    assert set(made) == {
        "appId", "details", "clientId", "clientSecret", "noneCompliant", "complianceProblems",
    }  # fmt: skip
    assert re.fullmatch("[A-Za-z0-9]{64}", made["clientSecret"])
    assert made["noneCompliant"] is False
    assert made["complianceProblems"] == []
    for id_ in (made["appId"], made["clientId"]):
        assert re.fullmatch("[1-9][0-9]{0,18}", id_)
        assert int(id_) < 2**63
    assert made["appId"] != made["clientId"]


@pytest.mark.parametrize(
    ("method", "has_secret"),
    [("BASIC", True), ("POST", True), ("NONE", False), ("PRIVATE_KEY_JWT", False)],
)
def test_a_secret_is_made_for_those_who_sign_in_with_one(
    ask: Asking, method: str, *, has_secret: bool
) -> None:
    """Source 2.4: returned depending on the chosen configuration."""
    made = ask.an_app(authMethodType=f"OIDC_AUTH_METHOD_TYPE_{method}")

    assert ("clientSecret" in made) == has_secret
    (found,) = ask.objects()
    assert found["hasSecret"] == has_secret


def test_only_the_hash_of_a_secret_is_kept(ask: Asking) -> None:
    """What was answered once is nowhere in the log, and can be checked against what is."""
    made = ask.an_app(idempotency_key="k")
    again = ask("RegenerateOIDCClientSecret", projectId=ask.project, appId=made["appId"])

    with ask.service.store.snapshot() as view:
        text = str(view.read_all()) + str(view.all_objects()) + str(view.record("admin", "k"))
        row = view.get_object(made["appId"])
    assert made["clientSecret"] not in text
    assert again["clientSecret"] not in text
    assert again["clientSecret"] != made["clientSecret"]
    assert row is not None
    assert row.secret_hash == hashlib.sha256(again["clientSecret"].encode()).hexdigest()
    assert set(again) == {"clientSecret", "details"}
    assert "creationDate" not in again["details"]


def test_moving_to_a_method_with_a_secret_makes_none(ask: Asking) -> None:
    """Wire facts 2.2: regenerate is the call for that, whatever the method."""
    made = ask.an_app(authMethodType="OIDC_AUTH_METHOD_TYPE_NONE")
    target = {"projectId": ask.project, "appId": made["appId"]}

    answer = ask("UpdateOIDCAppConfig", **target, authMethodType="OIDC_AUTH_METHOD_TYPE_POST")

    assert set(answer) == {"details"}
    assert ask.objects()[0]["hasSecret"] is False
    assert "clientSecret" in ask("RegenerateOIDCClientSecret", **target)
    assert ask.objects()[0]["hasSecret"] is True


def test_an_application_reads_back_as_it_was_made(ask: Asking) -> None:
    """Every field is printed, those at their defaults too."""
    made = ask.an_app(
        redirectUris=["https://a.example.com/x", "https://a.example.com/y", "app://b/c", "odd"],
        additionalOrigins=["https://o.example.com"],
        clockSkew="1.500s",
        grantTypes=["OIDC_GRANT_TYPE_REFRESH_TOKEN", CODE],
    )

    app = ask("GetAppByID", projectId=ask.project, appId=made["appId"])["app"]

    assert app["details"] == made["details"]
    assert (app["id"], app["name"], app["state"]) == (made["appId"], "web", "APP_STATE_ACTIVE")
    assert app["oidcConfig"] == {
        **normal_form(Kind.OIDC_APPLICATION, {}),
        "redirectUris": [
            "https://a.example.com/x", "https://a.example.com/y", "app://b/c", "odd",
        ],
        "grantTypes": [CODE, "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
        "additionalOrigins": ["https://o.example.com"],
        "clockSkew": "1.5s",
        "clientId": made["clientId"],
        "noneCompliant": made["noneCompliant"],
        "complianceProblems": made["complianceProblems"],
        "allowedOrigins": ["https://a.example.com", "app://b", "https://o.example.com"],
        "backChannelLogoutUri": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"redirectUris": ["https://a/cb"]}, []),
        ({"redirectUris": ["http://a/cb"]}, []),
        ({}, ["V1.NotCompliant", "V1.NoRedirectUris"]),
        (
            {"redirectUris": ["app://cb"]},
            ["V1.NotCompliant", "V1.Code.RedirectUris.CustomOnlyForNative"],
        ),
        (
            {
                "redirectUris": ["http://a"],
                "grantTypes": [CODE, "OIDC_GRANT_TYPE_IMPLICIT"],
            },
            ["V1.NotAllCombinationsAreAllowed"],
        ),
        (
            {
                "redirectUris": ["http://localhost/cb"],
                "appType": "OIDC_APP_TYPE_USER_AGENT",
            },
            [
                "V1.NotCompliant",
                "V1.Code.RedirectUris.HttpOnlyForWeb",
                "V1.UserAgent.AuthMethodType.NotNone",
            ],
        ),
        (
            {
                "redirectUris": ["app://cb", "http://127.0.0.1/cb"],
                "appType": "OIDC_APP_TYPE_NATIVE",
                "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE",
                "grantTypes": [CODE, "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
                "devMode": True,
            },
            [],
        ),
    ],
)
def test_compliance_is_told_on_create_and_on_read_and_refuses_nothing(
    ask: Asking, fields: dict[str, Any], problems: list[str]
) -> None:
    """The flag means the same on both: any problem but the note."""
    wanted = [
        {"key": f"Application.OIDC.{key}", "localizedMessage": MESSAGES[f"Application.OIDC.{key}"]}
        for key in problems
    ]
    flag = problems not in ([], ["V1.NotAllCombinationsAreAllowed"])

    made = ask.an_app(**fields)
    read = ask("GetAppByID", projectId=ask.project, appId=made["appId"])["app"]["oidcConfig"]

    for answer in (made, read):
        assert answer["complianceProblems"] == wanted
        assert answer["noneCompliant"] is flag


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"]}, "responseTypes[0]"),
        ({"grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT"]}, "responseTypes[0]"),
        ({"additionalOrigins": ["https://a", "https://a/"]}, "additionalOrigins[1]"),
        ({"additionalOrigins": ["https://canary.example.com/x"]}, "additionalOrigins[0]"),
        ({"clockSkew": "5.000000001s"}, "clockSkew"),
        ({"clockSkew": "1m"}, "clockSkew"),
    ],
)
def test_what_no_flow_can_carry_out_is_refused_on_create_and_on_update(
    ask: Asking, fields: dict[str, Any], named: str
) -> None:
    """Wire facts 2.2, the domain check. The refusal repeats no value."""
    app = ask.an_app("other")["appId"]
    before = ask.event_count()

    for refusal in (
        ask.refused("AddOIDCApp", projectId=ask.project, name="web", **fields),
        ask.refused("UpdateOIDCAppConfig", projectId=ask.project, appId=app, **fields),
    ):
        assert (refusal.code, refusal.http_status) == (3, 400)
        assert refusal.message.startswith(f"{named}: ")
        assert "canary" not in refusal.message
    assert ask.event_count() == before


LIMITS = [
    ("an_idp", "jwtEndpoint", 1, 200),
    ("an_idp", "issuer", 1, 200),
    ("an_idp", "keysEndpoint", 1, 200),
    ("an_idp", "headerName", 0, 200),
    ("an_idp", "name", 1, 200),
    ("an_app", "name", 1, 200),
    ("an_action", "name", 1, 200),
    ("an_action", "script", 1, 2000),
]


@pytest.mark.parametrize(("make", "field", "least", "most"), LIMITS)
@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_text_may_be_as_long_as_the_source_says(
    ask: Asking, make: str, field: str, least: int, most: int, letter: str
) -> None:
    """Source 8, at the limit and one beyond, in code points."""
    create = getattr(ask, make)

    create(**{field: letter * most})
    with pytest.raises(Refusal) as too_long:
        create(**{"name": "other", field: letter * (most + 1)})
    assert too_long.value.code == 3
    assert too_long.value.message == f"{field}: must be at most {most} characters long"
    if least:
        with pytest.raises(Refusal) as empty:
            create(**{"name": "third", field: ""})
        assert empty.value.message == f"{field}: must not be empty"
    else:
        create(**{"name": "third", field: ""})


@pytest.mark.parametrize(("make", "field"), [("an_app", "clockSkew"), ("an_action", "timeout")])
def test_durations_end_where_their_ranges_end(ask: Asking, make: str, field: str) -> None:
    """A clock skew is at most 5 s, a timeout at most 20 s, to the nanosecond."""
    create = getattr(ask, make)
    most = {"clockSkew": 5, "timeout": 20}[field]

    create(**{field: f"{most}.000s"})
    (found,) = ask.objects()
    assert found["spec"][field] == f"{most}s"
    for wrong in (f"{most}.000000001s", "-1s", "1", "1.s", ".5s", "01s", "1.0000000000s", ""):
        with pytest.raises(Refusal) as caught:
            create(**{"name": "other", field: wrong})
        assert caught.value.code == 3
        assert caught.value.message.startswith(f"{field}: ")
