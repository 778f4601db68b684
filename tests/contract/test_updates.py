"""What updates and removals answer and refuse, and which names are free, over every store."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Refusal
from tests.examples import CODE, JWT, SCRIPT
from tests.unit.service.asking import Asking


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
        "jwtConfig": {**JWT, "headerName": "", "audience": ""},
        "autoRegister": False,
    }


def test_updating_an_application_is_full(ask: Asking) -> None:
    """A list that is left out is empty afterwards, a flag at its default."""
    made = ask.an_app(redirectUris=["https://a/cb"], devMode=True)

    ask("UpdateOIDCAppConfig", projectId=ask.project, appId=made["appId"])

    (found,) = ask.objects()
    assert found["spec"] == normal_form(Kind.OIDC_APPLICATION, {})
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

    assert (refusal.code, refusal.message) == (3, "if-match: is for updates and deletes only")
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
