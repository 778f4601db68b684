"""Requests as models: a wrong one is refused in a sentence that names the field."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.form import Asked, Form
from reconciler.service.operations.models import checked
from reconciler.service.operations.table import operation_of
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
    request = asked("CreateAction", {**ACTION, "timeout": "5.0s"})

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
