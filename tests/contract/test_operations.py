"""What the operations answer and refuse, over every store there is."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from reconciler.resources.normal import DEFAULTS
from reconciler.resources.oidc import MESSAGES
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import EMBEDDED, Caller, Role
from reconciler.service.operations.table import operations
from tests.unit.service.asking import JWT, SCRIPT, Asking

CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
TIME = re.compile(r"2027-01-15T08:00:00\.\d{6}Z")


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
        **DEFAULTS[Kind.OIDC_APPLICATION],
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


@pytest.mark.parametrize("field", ["jwtEndpoint", "issuer", "keysEndpoint", "headerName"])
def test_all_four_fields_of_a_jwt_configuration_are_required(ask: Asking, field: str) -> None:
    """Source 2.2; a header name may be empty, but not left out."""
    idp = ask.an_idp()["idpId"]
    fields = {name: value for name, value in JWT.items() if name != field}

    refusal = ask.refused("UpdateOrgIDPJWTConfig", idpId=idp, **fields)

    assert (refusal.code, refusal.message) == (3, f"{field}: is required")


def test_updating_a_jwt_configuration_is_full_and_answers_details(ask: Asking) -> None:
    """Source 4.1: a field without a value is empty afterwards."""
    made = ask.an_idp()

    answer = ask("UpdateOrgIDPJWTConfig", idpId=made["idpId"], **{**JWT, "headerName": ""})

    assert set(answer) == {"details"}
    assert set(answer["details"]) == {"sequence", "changeDate", "resourceOwner"}
    idp = ask("GetOrgIDPByID", id=made["idpId"])["idp"]
    assert idp == {
        "id": made["idpId"],
        "details": {
            "sequence": answer["details"]["sequence"],
            "creationDate": made["details"]["creationDate"],
            "changeDate": answer["details"]["changeDate"],
            "resourceOwner": ask.organization,
        },
        "state": "IDP_STATE_ACTIVE",
        "name": "partner",
        "stylingType": "STYLING_TYPE_UNSPECIFIED",
        "owner": "IDP_OWNER_TYPE_ORG",
        "jwtConfig": {**JWT, "headerName": ""},
        "autoRegister": False,
    }


def test_updating_an_application_is_full(ask: Asking) -> None:
    """A list that is left out is empty afterwards, a flag at its default."""
    made = ask.an_app(redirectUris=["https://a/cb"], devMode=True)

    ask("UpdateOIDCAppConfig", projectId=ask.project, appId=made["appId"])

    (found,) = ask.objects()
    assert found["spec"] == DEFAULTS[Kind.OIDC_APPLICATION]
    assert found["clientId"] == made["clientId"]


def test_an_action_reads_back_as_it_was_made_and_as_it_was_updated(ask: Asking) -> None:
    """An update is full: what is left out is at its default."""
    made = ask.an_action(timeout="1.5s", allowedToFail=True)
    read = ask("GetAction", id=made["id"])["action"]
    assert read == {
        "id": made["id"],
        "details": made["details"],
        "state": "ACTION_STATE_ACTIVE",
        "name": "greet",
        "script": SCRIPT,
        "timeout": "1.5s",
        "allowedToFail": True,
    }

    answer = ask("UpdateAction", id=made["id"], name="hello", script="x")

    read = ask("GetAction", id=made["id"])["action"]
    assert read == {
        **read,
        "name": "hello",
        "script": "x",
        "timeout": "20s",
        "allowedToFail": False,
    }
    assert read["details"]["sequence"] == answer["details"]["sequence"]
    assert read["details"]["creationDate"] == made["details"]["creationDate"]


def updates_of(ask: Asking) -> dict[str, dict[str, Any]]:
    """Return every update, with the fields that change nothing about what was just made."""
    idp, app, action = ask.an_idp()["idpId"], ask.an_app()["appId"], ask.an_action()["id"]
    in_project = {"projectId": ask.project, "appId": app}
    return {
        "UpdateOrgIDP": {"idpId": idp, "name": "partner"},
        "UpdateOrgIDPJWTConfig": {"idpId": idp, **JWT},
        "UpdateApp": {**in_project, "name": "web"},
        "UpdateOIDCAppConfig": {**in_project, "grantTypes": [CODE], "clockSkew": "0.0s"},
        "UpdateAction": {"id": action, "name": "greet", "script": SCRIPT, "timeout": "20.0s"},
    }


UPDATES = [
    "UpdateOrgIDP",
    "UpdateOrgIDPJWTConfig",
    "UpdateApp",
    "UpdateOIDCAppConfig",
    "UpdateAction",
]
DIFFERENT: dict[str, dict[str, Any]] = {
    "UpdateOrgIDP": {"name": "other"},
    "UpdateOrgIDPJWTConfig": {"issuer": "other"},
    "UpdateApp": {"name": "other"},
    "UpdateOIDCAppConfig": {"devMode": True},
    "UpdateAction": {"script": "other"},
}


@pytest.mark.parametrize("operation", UPDATES)
def test_an_update_that_changes_nothing_is_a_success_without_an_event(
    ask: Asking, operation: str
) -> None:
    """It answers the object's present details; values that mean the same are the same."""
    fields = updates_of(ask)[operation]
    before, objects = ask.event_count(), ask.objects()

    answer = ask(operation, **fields)

    assert ask.event_count() == before
    assert ask.objects() == objects
    assert answer["details"]["sequence"] in {found["details"]["sequence"] for found in objects}


REMOVES = {
    "RemoveOrgIDP": ("UpdateOrgIDP", ["idpId"]),
    "RemoveApp": ("UpdateApp", ["projectId", "appId"]),
    "DeleteAction": ("UpdateAction", ["id"]),
}


@pytest.mark.parametrize("operation", [*UPDATES, *REMOVES, "RegenerateOIDCClientSecret"])
def test_a_write_that_expects_another_sequence_is_refused_and_writes_nothing(
    ask: Asking, operation: str
) -> None:
    """Precondition failed is 409 here, as the source says. The right sequence passes."""
    updates = updates_of(ask)
    update, names = REMOVES.get(operation, (operation, []))
    if operation == "RegenerateOIDCClientSecret":
        update, names = "UpdateApp", ["projectId", "appId"]
    fields = {**updates[update], **DIFFERENT.get(operation, {})}
    if names:
        fields = {name: fields[name] for name in names}
    target = next(value for name, value in fields.items() if name in {"idpId", "appId", "id"})
    (held,) = [found for found in ask.objects() if found["id"] == target]
    sequence = int(held["details"]["sequence"])
    before, objects = ask.event_count(), ask.objects()

    for wrong in (sequence - 1, sequence + 1, 0):
        refusal = ask.refused(operation, expected_sequence=wrong, **fields)
        assert (refusal.code, refusal.http_status) == (9, 409)
    assert ask.event_count() == before
    assert ask.objects() == objects

    ask(operation, expected_sequence=sequence, **fields)
    assert ask.event_count() == before + 1
    assert ask.objects() != objects


def test_an_expectation_that_nothing_is_held_to_is_refused(ask: Asking) -> None:
    """A create has no object that could have moved on; silence would be a trap."""
    before = ask.event_count()

    refusal = ask.refused(
        "CreateAction", organization=ask.organization, name="a", script="b", expected_sequence=1
    )

    assert refusal.code == 3
    assert ask.event_count() == before


@pytest.mark.parametrize("operation", list(REMOVES))
def test_what_is_removed_is_gone_and_frees_its_name(ask: Asking, operation: str) -> None:
    """The id is never used again."""
    update, names = REMOVES[operation]
    fields = {name: value for name, value in updates_of(ask)[update].items() if name in names}

    answer = ask(operation, **fields)

    assert set(answer) == ({"details"} if operation == "RemoveApp" else set())
    assert len(ask.objects()) == 2
    assert ask.refused(operation, **fields).code == 5
    make = {"UpdateOrgIDP": ask.an_idp, "UpdateApp": ask.an_app, "UpdateAction": ask.an_action}
    made = make[update]()
    assert made.get("id", made.get("appId", made.get("idpId"))) not in fields.values()


@pytest.mark.parametrize("make", ["an_action", "an_app", "an_idp"])
@pytest.mark.parametrize(("first", "second"), [("web", "WEB"), ("stra\xdfe", "STRASSE")])
def test_a_name_is_taken_whatever_its_case(ask: Asking, make: str, first: str, second: str) -> None:
    """Already exists, 409; nothing is written."""
    getattr(ask, make)(name=first)
    before = ask.event_count()

    with pytest.raises(Refusal) as caught:
        getattr(ask, make)(name=second)

    assert (caught.value.code, caught.value.http_status) == (6, 409)
    assert ask.event_count() == before


def test_names_are_unique_where_the_design_says_and_not_beyond(ask: Asking) -> None:
    """Application in its project; the others in their organization, each kind for itself."""
    second = ask("AddProject", organization=ask.organization, name="blog")["id"]
    other = ask("AddOrg", name="globex")["id"]

    ask.an_app("same")
    ask.an_app("same", projectId=second)
    ask.an_action("same")
    ask.an_action("same", organization=other)
    ask.an_idp("same")
    ask("AddProject", organization=other, name="shop")

    assert ask.refused("AddProject", organization=ask.organization, name="SHOP").code == 6
    assert ask.refused("AddOrg", name="ACME").code == 6


@pytest.mark.parametrize(
    ("operation", "make", "field"),
    [
        ("UpdateOrgIDP", "an_idp", "idpId"),
        ("UpdateApp", "an_app", "appId"),
        ("UpdateAction", "an_action", "id"),
    ],
)
def test_renaming_keeps_the_object_and_respects_other_names(
    ask: Asking, operation: str, make: str, field: str
) -> None:
    """The id stays; a name in use is refused; its own name in other letters is fine."""
    ask_for = getattr(ask, make)
    ask_for("taken")
    made = ask_for("mine")[field]
    fields: dict[str, Any] = {field: made}
    if operation == "UpdateApp":
        fields["projectId"] = ask.project
    if operation == "UpdateAction":
        fields["script"] = SCRIPT
    before = ask.event_count()

    assert ask.refused(operation, **fields, name="TAKEN").code == 6
    assert ask.event_count() == before
    ask(operation, **fields, name="MINE")

    assert {(found["id"], found["name"]) for found in ask.objects()} >= {(made, "MINE")}


def test_an_application_needs_a_project_that_is_there(ask: Asking) -> None:
    """Not found, 404; another organization's project looks just like a missing one."""
    other = ask("AddOrg", name="globex")["id"]
    answers = [
        ask.refused("AddOIDCApp", projectId="404", name="a"),
        ask.refused("AddOIDCApp", projectId=ask.organization, name="a"),
        ask.refused("AddOIDCApp", projectId=ask.project, name="a", organization=other),
    ]

    assert {(refusal.code, refusal.message) for refusal in answers} == {
        (5, "there is no such project")
    }


@pytest.mark.parametrize(
    ("operation", "fields", "message"),
    [
        ("CreateAction", {"nam": "a", "script": "b"}, "name: is required"),
        (
            "CreateAction",
            {"name": "a", "script": "b", "allowdToFail": True},
            "allowdToFail: is not a field of this request",
        ),
        ("CreateAction", {"name": 1, "script": "b"}, "name: must be a string"),
        ("CreateAction", {"name": None, "script": "b"}, "name: must be a string"),
        ("CreateAction", {"name": "a\0", "script": "b"}, "name: must not contain NUL"),
        (
            "CreateAction",
            {"name": "a", "script": "b", "allowedToFail": "yes"},
            "allowedToFail: must be true or false",
        ),
        ("CreateAction", {"name": "a", "script": float("nan")}, "script: must be a string"),
        ("CreateAction", {"name": "a", "script": {1, 2}}, "request: must be JSON"),
        ("CreateAction", {"name": "a", "script": Secret("hidden")}, "request: must be JSON"),
        ("CreateAction", {"name": "a", "script": EMBEDDED}, "request: must be JSON"),
        ("AddOIDCApp", {"name": "a", "redirectUris": "x"}, "redirectUris: must be a list"),
        ("AddOIDCApp", {"name": "a", "redirectUris": [1]}, "redirectUris[0]: must be a string"),
        (
            "AddOIDCApp",
            {"name": "a", "appType": "OIDC_APP_TYPE_TV"},
            "appType: must be 'OIDC_APP_TYPE_WEB', 'OIDC_APP_TYPE_USER_AGENT' or ",
        ),
        ("AddOIDCApp", {"name": "a", "version": "2.0"}, "version: must be 'OIDC_VERSION_1_0'"),
        (
            "AddOIDCApp",
            {"name": "a", "loginVersion": {"loginV2": {}}},
            "loginVersion: is not offered by this service: leave it out",
        ),
        (
            "AddOIDCApp",
            {"name": "a", "backChannelLogoutUri": "https://x"},
            "backChannelLogoutUri: must be ''",
        ),
        (
            "AddProject",
            {"name": "a", "projectRoleAssertion": True},
            "projectRoleAssertion: must be False",
        ),
        (
            "AddOrgJWTIDP",
            {"name": "a", **JWT, "stylingType": "STYLING_TYPE_GOOGLE"},
            "stylingType: must be 'STYLING_TYPE_UNSPECIFIED'",
        ),
        ("ListActions", {"query": {"limit": -1}}, "query.limit: must be a whole number, 0 or more"),
        ("ListActions", {"query": {"asc": 1}}, "query.asc: must be true or false"),
        ("ListActions", {"query": []}, "query: must be an object"),
        ("ListActions", {"queries": {}}, "queries: must be a list"),
        ("ListActions", {"odd": 1}, "odd: is not a field of this request"),
        (
            "ListActions",
            {"queries": [{"nameQuery": {}}]},
            "queries[0].nameQuery: is not a field of this request",
        ),
        (
            "ListActions",
            {"queries": [{}]},
            "queries[0].query: must be one of actionIdQuery, actionNameQuery, actionStateQuery",
        ),
        (
            "ListActions",
            {"queries": [{"actionNameQuery": {"name": "a", "method": "LIKE"}}]},
            "queries[0].actionNameQuery.method: must be one of ",
        ),
        (
            "ListActions",
            {"queries": [{"actionNameQuery": {"name": "x" * 201}}]},
            "queries[0].actionNameQuery.name: must be at most 200 characters long",
        ),
        ("GetAction", {}, "id: is required"),
        ("Healthz", {"a": 1}, "a: is not a field of this request"),
    ],
)
def test_what_is_malformed_is_refused_by_the_name_of_its_field(
    ask: Asking, operation: str, fields: dict[str, Any], message: str
) -> None:
    """A misspelt field that is ignored looks, to its author, like a change that was made."""
    if operation == "AddOIDCApp":
        fields = {"projectId": ask.project, **fields}
    before = ask.event_count()

    refusal = ask.refused(operation, organization=ask.organization, **fields)

    assert (refusal.code, refusal.http_status) == (3, 400)
    assert refusal.message.startswith(message)
    assert ask.event_count() == before


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_text_that_no_store_can_hold_is_refused(ask: Asking, text: str) -> None:
    """Lone surrogates are no Unicode text; wherever they stand, they are the caller's mistake."""
    refused = [
        ask.refused("CreateAction", organization=ask.organization, name=text, script="x"),
        ask.refused("CreateAction", organization=ask.organization, name="a", **{text: 1}),
        ask.refused("CreateAction", organization=ask.organization, name="a", script=text),
        ask.refused("GetAction", id=text),
        ask.refused("ListObjects", organizationId=text),
        ask.refused("ListObjects", organizationId=ask.organization, cursor=text),
        ask.refused("AcquireLease", named="a", holder=text, seconds=1),
        ask.refused(
            "CreateAction",
            organization=ask.organization,
            name="a",
            script="x",
            idempotency_key=text,
        ),
        ask.refused(
            "CreateAction",
            organization=ask.organization,
            name="a",
            script="x",
            context=f'{{"tree":"{text}"}}',
        ),
        ask.refused("GetMyOrg", organization=text),
    ]

    assert {refusal.code for refusal in refused} == {3}
    assert all(refusal.message.isascii() for refusal in refused)


def test_a_refusal_never_repeats_what_was_sent(ask: Asking) -> None:
    """What a caller sends may be a secret, or made to be shown."""
    for fields in (
        {"name": "canary" * 100, "script": "x"},
        {"name": "a", "script": "x", "timeout": "canary"},
        {"name": "a", "script": ["canary"]},
        {"name": "a", "script": "x", "allowedToFail": "canary"},
    ):
        refusal = ask.refused("CreateAction", organization=ask.organization, **fields)
        assert "canary" not in refusal.message + str(refusal.details)


def test_an_unknown_operation_is_unimplemented(ask: Asking) -> None:
    """12, as gRPC has it for methods a server does not know."""
    assert ask.refused("DeactivateApp").code == 12


def test_a_field_name_that_is_made_to_be_shown_is_made_visible(ask: Asking) -> None:
    """Escapes in a refusal would reach the terminal of whoever reads it."""
    refusal = ask.refused("Healthz", **{"\x1b[31mred\u202e": 1})

    assert refusal.message == r"'\x1b[31mred\u202e': is not a field of this request"


# Idempotency ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["an_action", "an_app", "an_idp"])
def test_the_same_key_gives_the_same_answer_again(ask: Asking, make: str) -> None:
    """Also the one-time secret; nothing is written the second time."""
    first = getattr(ask, make)(idempotency_key="k1")
    before = ask.event_count()

    again = getattr(ask, make)(idempotency_key="k1")

    assert again == first
    assert ask.event_count() == before


def test_the_same_key_in_one_batch_gives_the_same_answer(ask: Asking) -> None:
    """A retry that arrives together with what it repeats is still a retry."""
    request = ask.request(
        "AddOIDCApp", {"projectId": ask.project, "name": "web", "idempotency_key": "k"}
    )
    other = ask.request(
        "AddOIDCApp", {"projectId": ask.project, "name": "app", "idempotency_key": "l"}
    )

    first, second, third = ask.service.call_many([request, other, request])

    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first == third
    assert first["clientSecret"] != second["clientSecret"]
    assert ask.service.call_many([other, request]) == [second, first]


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("CreateAction", {"name": "other", "script": SCRIPT}),
        ("CreateAction", {"name": "greet", "script": SCRIPT, "timeout": "19s"}),
        ("AddProject", {"name": "greet"}),
    ],
)
def test_a_key_that_comes_back_with_another_request_is_refused(
    ask: Asking, operation: str, fields: dict[str, Any]
) -> None:
    """The key says it is the same; answering the first one would be a lie."""
    ask.an_action(idempotency_key="k1")
    before = ask.event_count()

    refusal = ask.refused(operation, organization=ask.organization, idempotency_key="k1", **fields)

    assert (refusal.code, refusal.reason) == (9, "idempotency.reused")
    assert ask.event_count() == before


def test_a_key_is_its_callers_own(ask: Asking) -> None:
    """Nobody can guess their way to another caller's answers."""
    ask.an_app(idempotency_key="k1")
    other = Caller("other", Role.ADMIN)

    refusal = ask.refused(
        "AddOIDCApp", projectId=ask.project, name="web", idempotency_key="k1", by=other
    )

    assert refusal.code == 6


def test_a_key_counts_for_a_day(ask: Asking) -> None:
    """Then the name decides, and the create is refused because the object is there."""
    day = 24 * 60 * 60 * 1_000_000
    first = ask.an_app(idempotency_key="k1")
    ask.clock.time += day - 1000
    assert ask.an_app(idempotency_key="k1") == first

    ask.clock.time += 2000

    with pytest.raises(Refusal) as caught:
        ask.an_app(idempotency_key="k1")
    assert caught.value.code == 6
    assert ask.an_app("other", idempotency_key="k1")["appId"] != first["appId"]


def test_a_refused_create_leaves_its_key_free(ask: Asking) -> None:
    """Once the cause is mended the same call may be made again."""
    ask.an_action()
    with pytest.raises(Refusal):
        ask.an_action(idempotency_key="k1")
    ask("DeleteAction", id=ask.objects()[0]["id"])

    assert ask.an_action(idempotency_key="k1")["id"]


@pytest.mark.parametrize("key", ["x" * 201, "a\n", "a\0"])
def test_a_malformed_key_is_refused(ask: Asking, key: str) -> None:
    """A key that cannot be kept would silently not count."""
    with pytest.raises(Refusal) as caught:
        ask.an_action(idempotency_key=key)
    assert caught.value.code == 3


# Batches ----------------------------------------------------------------------------------------


def test_a_refused_call_leaves_no_trace_and_keeps_no_other_back(ask: Asking) -> None:
    """Answers come in the order of the calls, reads among them see the writes before."""
    make = {"organization": ask.organization, "script": "x", "name": "a"}
    calls = [
        ("CreateAction", make),
        ("CreateAction", {**make, "name": "A"}),
        ("ListActions", {"organization": ask.organization}),
        ("CreateAction", {**make, "name": "b"}),
        ("CreateAction", {**make, "nme": "c"}),
        ("GetAction", {"id": "404"}),
    ]
    before = ask.event_count()

    answers = ask.service.call_many([ask.request(*call) for call in calls])

    codes = [answer.code if isinstance(answer, Refusal) else 0 for answer in answers]
    assert codes == [0, 6, 0, 0, 3, 5]
    assert ask.event_count() == before + 2
    listed = answers[2]
    assert isinstance(listed, dict)
    assert [found["name"] for found in listed["result"]] == ["a"]


def test_no_calls_are_no_work(ask: Asking) -> None:
    """An empty batch is not an error."""
    assert ask.service.call_many([]) == []


# Who may ----------------------------------------------------------------------------------------

VIEWER_MAY = {
    "Healthz", "ListOrgs", "GetMyOrg", "ListProjects", "GetProjectByID", "ListOrgIDPs",
    "GetOrgIDPByID", "ListApps", "GetAppByID", "ListActions", "GetAction", "GetServiceInfo",
    "ListObjects", "GetObjectHistory", "ListRemovals", "ListTrees", "ListOwedSecrets",
}  # fmt: skip
EDITOR_MAY = VIEWER_MAY | {
    "AddProject", "AddOrgJWTIDP", "UpdateOrgIDP", "UpdateOrgIDPJWTConfig", "RemoveOrgIDP",
    "AddOIDCApp", "UpdateApp", "UpdateOIDCAppConfig", "RemoveApp", "RegenerateOIDCClientSecret",
    "CreateAction", "UpdateAction", "DeleteAction", "RecordContext", "WriteBatch", "AcquireLease",
    "RenewLease", "ReleaseLease", "ClaimSecrets", "AcknowledgeSecrets",
}  # fmt: skip
ROLES = {
    Role.VIEWER: VIEWER_MAY,
    Role.EDITOR: EDITOR_MAY,
    Role.ADMIN: EDITOR_MAY | {"AddOrg"},
}


@pytest.mark.parametrize("role", list(Role))
def test_a_role_may_do_what_it_is_for(ask: Asking, role: Role) -> None:
    """Permission is asked before anything else is looked at."""
    may = set()
    for operation in operations():
        refused = ask.service.call_many(
            [ask.request(operation, {"by": Caller("x", role), "odd": 1, "organization": "\n"})]
        )[0]
        assert isinstance(refused, Refusal)
        if refused.code != 7:
            may.add(operation)

    assert may == ROLES[role] & set(operations())


def everything_about(ask: Asking, *, foreign: bool) -> dict[str, dict[str, Any]]:
    """Return a call of every operation that addresses something, of others or of nobody."""
    owner = ask("AddOrg", name="globex")["id"]
    if foreign:
        project = ask("AddProject", organization=owner, name="secret")["id"]
        idp = ask.an_idp(organization=owner)["idpId"]
        app = ask.an_app(projectId=project)["appId"]
        action = ask.an_action(organization=owner)["id"]
    else:
        owner, project, idp, app, action = "1", "2", "3", "4", "5"
    in_project = {"projectId": project, "appId": app}
    return {
        "GetMyOrg": {"organization": owner},
        "AddProject": {"organization": owner, "name": "x"},
        "ListProjects": {"organization": owner},
        "GetProjectByID": {"id": project},
        "AddOrgJWTIDP": {"organization": owner, "name": "x", **JWT},
        "ListOrgIDPs": {"organization": owner},
        "GetOrgIDPByID": {"id": idp},
        "UpdateOrgIDP": {"idpId": idp, "name": "x"},
        "UpdateOrgIDPJWTConfig": {"idpId": idp, **JWT, "expected_sequence": 1},
        "RemoveOrgIDP": {"idpId": idp},
        "AddOIDCApp": {"projectId": project, "name": "x"},
        "ListApps": {"projectId": project},
        "GetAppByID": in_project,
        "UpdateApp": {**in_project, "name": "x"},
        "UpdateOIDCAppConfig": in_project,
        "RemoveApp": in_project,
        "RegenerateOIDCClientSecret": in_project,
        "CreateAction": {"organization": owner, "name": "x", "script": "x"},
        "ListActions": {"organization": owner},
        "GetAction": {"id": action},
        "UpdateAction": {"id": action, "name": "x", "script": "x", "expected_sequence": 1},
        "DeleteAction": {"id": action},
        "ListObjects": {"organizationId": owner},
        "GetObjectHistory": {"id": action},
        "ListRemovals": {"organizationId": owner},
        "RecordContext": {"id": action},
        "AcquireLease": {"named": "globex" if foreign else "nobody", "holder": "x", "seconds": 1},
        "RenewLease": {"named": "globex" if foreign else "nobody", "lease": "x", "seconds": 1},
        "ReleaseLease": {"named": "globex" if foreign else "nobody", "lease": "x"},
    }


@pytest.mark.parametrize("own_header", [False, True])
def test_what_belongs_to_others_looks_exactly_like_what_is_missing(
    ask: Asking, *, own_header: bool
) -> None:
    """Code, message, details: a caller learns nothing of another organization."""
    limited = Caller("limited", Role.ADMIN, frozenset({ask.organization}))
    missing = everything_about(ask, foreign=False)
    foreign = everything_about_again(ask)
    before = ask.event_count()
    assert foreign.keys() == missing.keys()

    for operation in missing:
        told = []
        for fields in (missing[operation], foreign[operation]):
            own = {"organization": ask.organization} if own_header else {}
            refusal = ask.refused(operation, **{**own, **fields}, by=limited)
            told.append((refusal.code, refusal.message, refusal.reason, dict(refusal.details)))
        assert told[0] == told[1], operation
        assert told[0][0] == 5, operation
    assert ask.event_count() == before


def everything_about_again(ask: Asking) -> dict[str, dict[str, Any]]:
    """Return calls about the organization that is there already."""
    (found,) = [org for org in ask("ListOrgs")["result"] if org["name"] == "globex"]
    original = Asking.__call__
    made = {"AddOrg": {"id": found["id"]}}

    class Known(Asking):
        def __call__(self, operation: str, /, **fields: Any) -> dict[str, Any]:
            return made.get(operation) or original(self, operation, **fields)

    return everything_about(
        Known(ask.service, ask.clock, ask.organization, ask.project), foreign=True
    )


def test_a_limited_caller_lists_what_it_may_see(ask: Asking) -> None:
    """And does not learn how many others there are."""
    second = ask("AddOrg", name="globex")["id"]
    ask("AddOrg", name="initech")
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization, second}))

    answer = ask("ListOrgs", by=limited)

    assert [org["name"] for org in answer["result"]] == ["acme", "globex"]
    assert answer["details"]["totalResult"] == "2"
    query = {"nameQuery": {"name": "initech"}}
    assert ask("ListOrgs", by=limited, queries=[query])["result"] == []


def test_only_a_token_for_all_makes_organizations(ask: Asking) -> None:
    """Whoever could not see it afterwards does not make it."""
    limited = Caller("limited", Role.ADMIN, frozenset({ask.organization}))

    assert ask.refused("AddOrg", name="globex", by=limited).code == 7


def test_without_a_header_the_only_organization_of_the_token_is_meant(ask: Asking) -> None:
    """Source 5: by default the organization of the requesting user is used."""
    one = Caller("one", Role.EDITOR, frozenset({ask.organization}))

    made = ask("CreateAction", name="a", script="x", by=one)

    assert made["details"]["resourceOwner"] == ask.organization
    assert ask("GetMyOrg", by=one)["org"]["name"] == "acme"


@pytest.mark.parametrize("organizations", [None, frozenset({"1", "2"}), frozenset[str]()])
def test_a_token_for_several_must_say_which(
    ask: Asking, organizations: frozenset[str] | None
) -> None:
    """Guessing would write into the wrong organization."""
    caller = Caller("several", Role.EDITOR, organizations)

    refusal = ask.refused("CreateAction", name="a", script="x", by=caller)

    assert (refusal.code, refusal.message.split(":")[0]) == (9, "x-service-orgid")


def test_an_object_is_found_by_its_id_without_a_header(ask: Asking) -> None:
    """It is found by its owner; with a header it must belong to that organization."""
    other = ask("AddOrg", name="globex")["id"]
    made = ask.an_action()["id"]

    assert ask("GetAction", id=made)["action"]["id"] == made
    assert ask("GetAction", id=made, organization=ask.organization)["action"]["id"] == made
    assert ask.refused("GetAction", id=made, organization=other).code == 5


@pytest.mark.parametrize("header", ["a,b", "a b", "a/../b", "\xe9", "x" * 201, "a\n", "\0", "a "])
def test_a_malformed_header_is_refused(ask: Asking, header: str) -> None:
    """Whatever two servers might read differently is read by none."""
    refusal = ask.refused("ListActions", organization=header)

    assert (refusal.code, refusal.message.split(":")[0]) == (3, "x-service-orgid")


def test_an_id_of_another_kind_is_no_such_object(ask: Asking) -> None:
    """An id is only good where its kind is asked for."""
    app, action = ask.an_app()["appId"], ask.an_action()["id"]
    second = ask("AddProject", organization=ask.organization, name="blog")["id"]

    assert ask.refused("GetAction", id=app).code == 5
    assert ask.refused("GetProjectByID", id=action).code == 5
    assert ask.refused("GetAppByID", projectId=second, appId=app).code == 5
    assert ask.refused("RemoveApp", projectId=second, appId=app).code == 5


# Lists ------------------------------------------------------------------------------------------


def test_lists_answer_what_reads_answer(ask: Asking) -> None:
    """Whichever way an object is read, it looks the same."""
    app = ask.an_app()["appId"]
    action, idp = ask.an_action()["id"], ask.an_idp()["idpId"]
    own = {"organization": ask.organization}

    assert ask("ListApps", projectId=ask.project)["result"] == [
        ask("GetAppByID", projectId=ask.project, appId=app)["app"]
    ]
    assert ask("ListActions", **own)["result"] == [ask("GetAction", id=action)["action"]]
    assert ask("ListOrgIDPs", **own)["result"] == [ask("GetOrgIDPByID", id=idp)["idp"]]
    assert ask("ListProjects", **own)["result"] == [
        ask("GetProjectByID", id=ask.project)["project"]
    ]
    assert ask("ListOrgs")["result"] == [ask("GetMyOrg", **own)["org"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"actionNameQuery": {"name": "b"}}, "b"),
        ({"actionNameQuery": {"name": "B"}}, ""),
        (
            {
                "actionNameQuery": {
                    "name": "B",
                    "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE",
                }
            },
            "b",
        ),
        (
            {"actionNameQuery": {"name": "", "method": "TEXT_QUERY_METHOD_CONTAINS"}},
            "cba",
        ),
        ({"actionIdQuery": {"id": "404"}}, ""),
        ({"actionStateQuery": {"state": "ACTION_STATE_ACTIVE"}}, "cba"),
        ({"actionStateQuery": {"state": "ACTION_STATE_INACTIVE"}}, ""),
    ],
)
def test_a_query_narrows_a_list(ask: Asking, query: dict[str, Any], found: str) -> None:
    """Text methods as the API has them; what is in no other state is found in no other."""
    for name in "cba":
        ask.an_action(name)

    answer = ask("ListActions", organization=ask.organization, queries=[query])

    assert "".join(action["name"] for action in answer["result"]) == found
    assert answer["details"]["totalResult"] == str(len(found))


def test_queries_narrow_a_list_together(ask: Asking) -> None:
    """All of them must hold."""
    first, second = ask.an_action("one")["id"], ask.an_action("two")["id"]
    by_id = [{"actionIdQuery": {"id": found}} for found in (first, second)]
    own = {"organization": ask.organization}

    assert len(ask("ListActions", **own, queries=by_id[:1])["result"]) == 1
    assert ask("ListActions", **own, queries=by_id)["result"] == []


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, "cba"),
        ({"query": {"offset": "1", "limit": 1}}, "b"),
        ({"query": {"offset": 5}}, ""),
        ({"query": {"asc": True}, "sortingColumn": "ACTION_FIELD_NAME_NAME"}, "abc"),
        ({"sortingColumn": "ACTION_FIELD_NAME_NAME"}, "cba"),
        ({"query": {"asc": True}, "sortingColumn": "ACTION_FIELD_NAME_ID"}, "cba"),
        ({"sortingColumn": "ACTION_FIELD_NAME_ID"}, "abc"),
    ],
)
def test_a_list_is_sorted_and_cut_as_asked(ask: Asking, fields: dict[str, Any], found: str) -> None:
    """Without a column objects come in the order they were made."""
    for name in "cba":
        ask.an_action(name)

    answer = ask("ListActions", organization=ask.organization, **fields)

    assert "".join(action["name"] for action in answer["result"]) == found
    assert answer["details"]["totalResult"] == "3"
    assert set(answer["details"]) == {"totalResult", "processedSequence", "viewTimestamp"}


def test_a_list_has_a_thousand_at_most_and_tells_how_many_there_are(ask: Asking) -> None:
    """One answer is bounded; a client goes on by offset."""
    own = {"organization": ask.organization}
    made = [ask.request("AddProject", {**own, "name": f"p{number}"}) for number in range(1000)]
    assert not [one for one in ask.service.call_many(made) if isinstance(one, Refusal)]

    for query in ({}, {"limit": 0}, {"limit": 1000}):
        answer = ask("ListProjects", **own, query=query)
        assert (len(answer["result"]), answer["details"]["totalResult"]) == (1000, "1001")
    (last,) = ask("ListProjects", **own, query={"offset": 1000})["result"]

    assert last["name"] not in {found["name"] for found in answer["result"]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"query": {"limit": 1001}}, "query.limit: must be at most 1000"),
        ({"queries": [{"actionIdQuery": {"id": "1"}}] * 21}, "queries: must be at most 20"),
    ],
)
def test_what_a_list_may_cost_is_bounded(ask: Asking, fields: dict[str, Any], message: str) -> None:
    """A list of nine hundred filters kept everybody waiting for ten seconds."""
    refusal = ask.refused("ListActions", organization=ask.organization, **fields)

    assert (refusal.code, refusal.message) == (3, message)
    most = [{"actionIdQuery": {"id": "1"}}] * 20
    assert ask("ListActions", organization=ask.organization, queries=most)["result"] == []


def test_organizations_and_projects_are_found_by_name_and_id(ask: Asking) -> None:
    """So the reconciler finds the organization that a manifest names."""
    ignoring = {"name": "ACME", "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    by_owner = {"projectResourceOwnerQuery": {"resourceOwner": ask.organization}}
    by_other = {"projectResourceOwnerQuery": {"resourceOwner": "1"}}
    own = {"organization": ask.organization}

    assert len(ask("ListOrgs", queries=[{"nameQuery": ignoring}])["result"]) == 1
    assert len(ask("ListOrgs", queries=[{"idQuery": {"id": ask.organization}}])["result"]) == 1
    assert ask("ListOrgs", queries=[{"stateQuery": {"state": "ORG_STATE_REMOVED"}}])["result"] == []
    assert len(ask("ListProjects", **own, queries=[by_owner])["result"]) == 1
    assert ask("ListProjects", **own, queries=[by_other, by_owner])["result"] == []
    owner_type = {"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_SYSTEM"}}
    ask.an_idp()
    assert ask("ListOrgIDPs", **own, queries=[owner_type])["result"] == []


# Our own ----------------------------------------------------------------------------------------

CONTEXT = '{"tree":"default","revision":"abc","preventDelete":true}'


def test_every_object_is_listed_with_all_there_is_to_know(ask: Asking) -> None:
    """The organization first, then the rest in the order it was made."""
    app = ask.an_app(context=CONTEXT)

    organization, project, found = ask("ListObjects", organizationId=ask.organization)["objects"]

    assert (organization["kind"], organization["id"]) == ("Organization", ask.organization)
    assert (project["kind"], project["projectId"], project["spec"]) == ("Project", "", {})
    assert found == {
        "kind": "OidcApplication",
        "id": app["appId"],
        "organizationId": ask.organization,
        "projectId": ask.project,
        "name": "web",
        "spec": DEFAULTS[Kind.OIDC_APPLICATION],
        "details": app["details"],
        "clientId": app["clientId"],
        "hasSecret": True,
        "trees": ["default"],
        "owner": "default",
        "preventDelete": True,
        "critical": False,
        "changedBy": "admin",
        "context": json.loads(CONTEXT),
    }


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_objects_are_listed_page_by_page_each_once(ask: Asking, limit: int) -> None:
    """The cursor leads on until it is empty."""
    for number in range(5):
        ask.an_action(f"a{number}")
    names: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        page = ask("ListObjects", organizationId=ask.organization, cursor=cursor, limit=limit)
        names += [found["name"] for found in page["objects"]]
        cursor, pages = page["next"], pages + 1

    assert names == ["acme", "shop", "a0", "a1", "a2", "a3", "a4"]
    assert pages == -(-6 // limit)


def test_objects_of_others_are_not_listed(ask: Asking) -> None:
    """A listing is of one organization."""
    other = ask("AddOrg", name="globex")["id"]
    ask.an_action(organization=other)

    assert ask.objects() == []
    assert len(ask("ListObjects", organization=other)["objects"]) == 2


def test_every_tree_that_ever_wrote_an_object_is_remembered(ask: Asking) -> None:
    """Pruning asks whose an object is; the last one to write is not the only one."""
    made = ask.an_action(context='{"tree":"b","preventDelete":true}')["id"]
    ask("UpdateAction", id=made, name="greet", script="x", context='{"tree":"a","critical":true}')
    ask("UpdateAction", id=made, name="greet", script="y", by=Caller("hand", Role.EDITOR))

    (found,) = ask.objects()

    assert found["trees"] == ["a", "b"]
    assert (found["preventDelete"], found["critical"]) == (True, True)
    assert (found["context"], found["changedBy"]) == ({}, "hand")


def test_the_trees_of_an_organization_are_those_of_what_is_in_it(ask: Asking) -> None:
    """A tree may have made only an action in an organization that was there."""
    other = ask("AddOrg", name="globex", context='{"tree":"b"}')["id"]
    ask.an_action(context='{"tree":"a"}')
    ask.an_app(context='{"tree":"c"}', custody="run-1")
    limited = Caller("limited", Role.VIEWER, frozenset({ask.organization}))

    told = ask("ListTrees")["organizations"]

    assert told == [
        {
            "id": ask.organization,
            "name": "acme",
            "trees": ["a", "c"],
            "owed": [{"tree": "c", "secrets": "1"}],
            "custody": True,
        },
        {"id": other, "name": "globex", "trees": ["b"], "owed": [], "custody": False},
    ]
    assert ask("ListTrees", by=limited)["organizations"] == told[:1]
    assert ask("ListTrees", organization=other)["organizations"] == told[1:]


def test_taking_over_an_object_changes_nothing_but_whose_it_is(ask: Asking) -> None:
    """What is in step is not written anew only to remember a tree."""
    made = ask.an_action()
    sequence = int(made["details"]["sequence"])
    (before,) = ask.objects()

    assert ask.refused("RecordContext", id=made["id"], expected_sequence=sequence + 1).code == 9
    answer = ask("RecordContext", id=made["id"], context=CONTEXT, expected_sequence=sequence)

    (found,) = ask.objects()
    assert (found["trees"], found["preventDelete"]) == (["default"], True)
    assert (found["spec"], found["name"]) == (before["spec"], before["name"])
    assert found["details"]["sequence"] == answer["details"]["sequence"]


@pytest.mark.parametrize(
    "context",
    [
        "x", "[]", "1", '{"a":', '{"a":"' + "x" * 8186 + '"}', '""', '{"a":NaN}', '{"a":1.5}',
        '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":1,"a":2}', f'{{"a":{"1" * 21}}}',
        f'{{"a":{"[" * 9}{"]" * 9}}}', '{"a":"\ud800"}',
    ],
)  # fmt: skip
def test_a_malformed_context_is_refused(ask: Asking, context: str) -> None:
    """What history shows later is checked when it is written, as strictly as it will be read."""
    with pytest.raises(Refusal) as caught:
        ask.an_action(context=context)
    assert caught.value.code == 3


def test_the_history_of_an_object_tells_who_did_what_when_and_why(ask: Asking) -> None:
    """Also of a removed one; hashes of secrets are nobody's business."""
    made = ask.an_app(context=CONTEXT)
    target = {"projectId": ask.project, "appId": made["appId"]}
    ask("UpdateApp", **target, name="shop", by=Caller("hand", Role.EDITOR))
    ask("RegenerateOIDCClientSecret", **target)
    ask("UpdateOIDCAppConfig", **target, devMode=True)
    ask("RemoveApp", **target)

    answer = ask("GetObjectHistory", id=made["appId"])

    events = answer["events"]
    assert answer["next"] == ""
    assert [event["type"] for event in events] == [
        "app.oidc.added",
        "app.renamed",
        "app.oidc.secret.changed",
        "app.oidc.config.changed",
        "app.removed",
    ]
    assert [event["version"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["writer"] for event in events] == ["admin", "hand", "admin", "admin", "admin"]
    assert events[0]["context"] == json.loads(CONTEXT)
    assert events[0]["sequence"] == made["details"]["sequence"]
    assert events[0]["recordedAt"] == made["details"]["creationDate"]
    assert events[1]["payload"] == {"name": "shop"}
    assert "hash" not in json.dumps(answer)
    rest = ask("GetObjectHistory", id=made["appId"], after="3")
    assert [event["version"] for event in rest["events"]] == [4, 5]


def test_the_service_says_which_one_it_is(ask: Asking) -> None:
    """The instance is part of every plan's digest."""
    info = ask("GetServiceInfo")

    assert set(info) == {"instance", "product", "version", "custody", "batch", "allOrganizations"}
    assert info["allOrganizations"] is True
    assert info["product"] == "reconciler"
    assert re.fullmatch("[0-9a-f]{32}", info["instance"])
    assert ask("Healthz") == {}


# Leases -----------------------------------------------------------------------------------------


def lease(ask: Asking, name: str = "acme", **fields: Any) -> dict[str, Any]:
    return ask("AcquireLease", **{"named": name, "holder": "me", "seconds": 60, **fields})


def test_a_lease_is_held_by_one_at_a_time(ask: Asking) -> None:
    """Who asks in vain is told who holds it since when; names compare ignoring case."""
    first = lease(ask)

    refusal = ask.refused("AcquireLease", named="ACME", holder="you", seconds=60)

    assert refusal.code == 10
    assert refusal.details == {
        "holder": "me",
        "fence": first["fence"],
        "acquiredAt": first["acquiredAt"],
        "expiresAt": first["expiresAt"],
    }
    assert lease(ask, "globex")["lease"]  # of an organization that is still to be made


def test_a_lease_ends_with_its_time_or_when_it_is_given_back(ask: Asking) -> None:
    """Each next holder has a greater fence."""
    fences = [int(lease(ask)["fence"])]
    ask.clock.time += 60_000_001
    second = lease(ask)
    ask("ReleaseLease", named="acme", lease=second["lease"])
    third = lease(ask)
    ask("ReleaseLease", named="acme", lease=second["lease"])

    fences += [int(second["fence"]), int(third["fence"])]
    assert fences == sorted(set(fences))
    assert ask.refused("AcquireLease", named="acme", holder="you", seconds=60).code == 10


def test_a_lease_can_be_taken_from_a_holder_who_is_known_dead(ask: Asking) -> None:
    """Only from that one: the fence must be the one the caller was told."""
    first = lease(ask)
    taken = lease(ask, insteadOf=first["fence"])

    assert int(taken["fence"]) == int(first["fence"]) + 1
    stale = {"named": "acme", "holder": "x", "seconds": 1, "insteadOf": first["fence"]}
    assert ask.refused("AcquireLease", **stale).code == 10
    assert ask.refused("RenewLease", named="acme", lease=first["lease"], seconds=9).code == 10


def test_a_lease_is_renewed_by_its_holder_while_it_counts(ask: Asking) -> None:
    """A holder who slept too long has lost it, even if nobody has taken it."""
    mine = lease(ask)
    ask.clock.time += 59_000_000
    renewed = ask("RenewLease", named="acme", lease=mine["lease"], seconds=60)
    assert (renewed["lease"], renewed["fence"]) == (mine["lease"], mine["fence"])
    assert renewed["expiresAt"] > mine["expiresAt"]

    ask.clock.time += 61_000_000

    assert ask.refused("RenewLease", named="acme", lease=mine["lease"], seconds=60).code == 10


def test_a_write_under_a_lease_that_is_lost_is_refused(ask: Asking) -> None:
    """A holder who was paused and woke up again writes nothing."""
    mine = lease(ask)
    other = lease(ask, "globex")
    made = ask.an_action("a", under=mine["lease"])["id"]
    ask("UpdateAction", id=made, name="a", script="x", under=mine["lease"])
    before = ask.event_count()

    taken = lease(ask, insteadOf=mine["fence"])

    writes: list[tuple[str, dict[str, Any]]] = [
        ("CreateAction", {"organization": ask.organization, "name": "b", "script": "x"}),
        ("UpdateAction", {"id": made, "name": "c", "script": "x"}),
        ("DeleteAction", {"id": made}),
        ("AddProject", {"organization": ask.organization, "name": "b"}),
        ("AddOrg", {"name": "initech"}),
    ]
    for operation, fields in writes:
        refusal = ask.refused(operation, under=mine["lease"], **fields)
        assert (refusal.code, refusal.http_status) == (10, 409)
    assert ask.event_count() == before
    assert ask("AddOrg", name="globex", under=other["lease"])["id"]
    assert ask.an_action("b", under=taken["lease"])["id"]


def test_a_lease_that_is_lost_within_a_batch_is_lost_for_the_rest_of_it(ask: Asking) -> None:
    """What is remembered for speed is forgotten when it changes."""
    mine = lease(ask)["lease"]
    make = {"organization": ask.organization, "script": "x", "under": mine}
    calls = [
        ask.request("CreateAction", {**make, "name": "a"}),
        ask.request("ReleaseLease", {"named": "acme", "lease": mine}),
        ask.request("CreateAction", {**make, "name": "b"}),
    ]

    first, _, last = ask.service.call_many(calls)

    assert isinstance(first, dict)
    assert isinstance(last, Refusal)
    assert last.code == 10


@pytest.mark.parametrize("seconds", [0, 3601, "x", 1.5, True])
def test_a_lease_lasts_from_a_second_to_an_hour(ask: Asking, seconds: object) -> None:
    """A lease for ever would be a lock that a crash leaves behind."""
    assert ask.refused("AcquireLease", named="acme", holder="me", seconds=seconds).code == 3


def test_what_was_removed_is_told_with_who_when_and_what_it_was(ask: Asking) -> None:
    """Drift must know that an application is gone because somebody removed it."""
    made = ask.an_app(context='{"tree":"default"}')
    action = ask.an_action()
    ask("UpdateApp", projectId=ask.project, appId=made["appId"], name="shopfront")
    ask("RemoveApp", projectId=ask.project, appId=made["appId"], by=Caller("ana", Role.ADMIN))
    ask("DeleteAction", id=action["id"], context='{"tree":"other"}')

    answer = ask("ListRemovals", organizationId=ask.organization)

    app, other = answer["removals"]
    assert answer["next"] == ""
    assert (app["kind"], app["name"], app["projectId"]) == (
        "OidcApplication", "shopfront", ask.project,
    )  # fmt: skip
    assert (app["id"], app["trees"], app["writer"]) == (made["appId"], ["default"], "ana")
    assert (app["type"], app["context"]) == ("app.removed", {})
    assert TIME.fullmatch(app["recordedAt"])
    assert (other["kind"], other["projectId"], other["context"]) == (
        "Action", "", {"tree": "other"},
    )  # fmt: skip


def test_removals_are_looked_for_page_by_page(ask: Asking) -> None:
    """A long log does not make one call long, and tells nothing of what others did."""
    other = ask("AddOrg", name="globex")["id"]
    for number in range(3):
        made = ask.an_action()
        ask.an_action(organization=other, name=f"a{number}")
        ask("DeleteAction", id=made["id"])
    with ask.service.store.snapshot() as view:
        own = {str(event.sequence) for event in view.read_organization(ask.organization)}
    found, cursor, calls, cursors = [], "0", 0, set()
    while cursor:
        cursors.add(cursor)
        answer = ask("ListRemovals", organizationId=ask.organization, cursor=cursor, limit=2)
        found += answer["removals"]
        cursor, calls = answer["next"], calls + 1

    assert [removal["name"] for removal in found] == ["greet"] * 3
    assert calls == 5, "eight events, two a call, and one call that finds the end"
    assert cursors < own | {"0"}
