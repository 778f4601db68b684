"""Requests as models: strict, closed, and with every default; refusals name the field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.kinds.fields import KINDS
from reconciler.resources.capabilities import fields_of_source
from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.form import Asked, Form
from reconciler.service.operations.models import Model, checked, model_with
from reconciler.service.operations.table import operation_of
from tests.builders import an_action, an_application
from tests.examples import JWT
from tests.rows import each_row

ACTION: dict[str, Any] = {"name": "greet", "script": "x"}
APP: dict[str, Any] = {"projectId": "1", "name": "a"}


def asked(operation: str, fields: dict[str, Any]) -> Asked:
    row = operation_of(operation)
    assert row is not None
    assert isinstance(row.request, Form)
    return checked(row.request, fields)


def test_a_sound_request_is_read_and_its_spec_is_in_normal_form() -> None:
    request = asked("CreateAction", {**ACTION, "timeout": "5.0s", "allowedToFail": None})

    assert request["name"] == "greet"
    assert request.spec == {"script": "x", "timeout": "5s", "allowedToFail": False}


def test_requests_that_mean_the_same_have_the_same_meaning() -> None:
    """Lists and tuples, and what only has one value, make no difference."""
    said = {"redirectUris": ("https://a",), "backChannelLogoutUri": "", "clockSkew": "0.0s"}

    one = asked("AddOIDCApp", {**APP, "redirectUris": ["https://a"]})
    assert one.meaning() == asked("AddOIDCApp", {**APP, **said}).meaning()
    assert one.meaning() != asked("AddOIDCApp", APP).meaning()
    assert isinstance(one.spec["redirectUris"], list)


@each_row(
    ("fields", "sentence"),
    [
        ({"name": "a"}, "script: is required"),
        ({**ACTION, "script": None}, "script: is required"),
        ({**ACTION, "scirpt": None}, "scirpt: is not a field of this request"),
        ({**ACTION, "scirpt": "x"}, "scirpt: is not a field of this request"),
        ({**ACTION, "odd": 1, "even": 2}, "even: is not a field of this request"),
        ({**ACTION, "name": 7}, "name: must be a string"),
        ({**ACTION, "name": ""}, "name: must not be empty"),
        ({**ACTION, "name": "x" * 201}, "name: must be at most 200 characters long"),
        ({**ACTION, "name": "a\0"}, "name: must not contain NUL"),
        ({**ACTION, "allowedToFail": "no"}, "allowedToFail: must be true or false"),
        (
            {**ACTION, "timeout": "21s"},
            "timeout: must be decimal seconds with s, from 0s to 20s, such as 1.5s",
        ),
    ],
)
def test_a_wrong_request_is_refused_with_its_first_field(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Refusal) as refused:
        asked("CreateAction", fields)

    assert (refused.value.code, refused.value.message) == (Code.INVALID_ARGUMENT, sentence)


@pytest.mark.parametrize(
    ("changed", "start"),
    [
        ({"redirectUris": "x"}, "redirectUris: must be a list"),
        ({"redirectUris": ["a", 7]}, "redirectUris[1]: must be a string"),
        ({"appType": "x"}, "appType: must be 'OIDC_APP_TYPE_WEB'"),
    ],
)
def test_a_place_in_a_list_is_named(changed: dict[str, object], start: str) -> None:
    with pytest.raises(Refusal) as refused:
        asked("AddOIDCApp", {**APP, **changed})

    assert refused.value.message.startswith(start)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refusal, match="name: must be Unicode"):
        asked("CreateAction", {**ACTION, "name": "\ud800"})


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"providerOptions": 1}, "providerOptions: must be an object"),
        ({"providerOptions": {"x": 1}}, "providerOptions.x: is not a field of this request"),
        (
            {"providerOptions": {"isAutoUpdate": True}},
            "providerOptions.isAutoUpdate: must be False",
        ),
    ],
)
def test_a_part_that_is_not_offered_takes_what_changes_nothing(
    fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(Refusal) as refused:
        asked("AddJWTProvider", {**JWT, "name": "a", **fields})

    assert refused.value.message == sentence


def model_of(kind: Kind) -> type[Model]:
    return model_with(kind.value, fields_of_source(kind))


WITH_SPEC = [kind for kind in Kind if KINDS[kind].fields]


@pytest.mark.parametrize("kind", WITH_SPEC)
def test_a_model_has_the_fields_of_its_kind_in_their_order(kind: Kind) -> None:
    fields = fields_of_source(kind)
    assert list(model_of(kind).model_fields) == [field.name for field in fields]


def test_what_is_left_unsaid_is_at_its_default() -> None:
    model = model_of(Kind.ACTION).model_validate(an_action())

    assert model.model_dump()["timeout"] == "20s"
    assert model.model_dump()["allowedToFail"] is False


@each_row(
    "changed",
    [
        pytest.param({"devMode": "yes"}, id="a text that is no flag"),
        pytest.param({"devMoed": True}, id="an unknown field"),
        pytest.param({"responseTypes": ["x"]}, id="an unknown word"),
        pytest.param({"grantTypes": ["OIDC_GRANT_TYPE_TOKEN_EXCHANGE"]}, id="a word of others"),
        pytest.param({"clockSkew": "6s"}, id="a duration out of range"),
        pytest.param({"redirectUris": ["a\0b"]}, id="a NUL"),
        pytest.param({"redirectUris": "https://x"}, id="a text for a list"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model_of(Kind.OIDC_APPLICATION).model_validate(an_application(**changed))


def test_a_model_is_frozen() -> None:
    model: Any = model_of(Kind.ACTION).model_validate(an_action())

    with pytest.raises(ValidationError):
        model.script = "x"
