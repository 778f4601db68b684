"""Requests as models: a wrong one is refused in a sentence that names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.resources.ref import Kind
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.actions import CreateActionRequest
from reconciler.service.operations.applications import AddOIDCAppRequest
from reconciler.service.operations.models import checked
from tests.rows import each_row

ACTION: dict[str, Any] = {"name": "greet", "script": "x"}


def test_a_sound_request_is_read_and_its_spec_is_in_normal_form() -> None:
    request = checked(CreateActionRequest, json.dumps({**ACTION, "timeout": "5.0s"}))

    assert request.name == "greet"
    assert request.spec_of(Kind.ACTION)["timeout"] == "5s"


@each_row(
    ("text", "sentence"),
    [
        ("{", "request: must be JSON in Unicode"),
        ("[]", "request: must be an object"),
        (json.dumps({"name": "a"}), "script: is required"),
        (json.dumps({**ACTION, "scirpt": "x"}), "scirpt: is not a field of this request"),
        (json.dumps({**ACTION, "name": 7}), "name: must be a string"),
        (json.dumps({**ACTION, "name": ""}), "name: must not be empty"),
        (json.dumps({**ACTION, "name": "x" * 201}), "name: must be at most 200 characters long"),
        (json.dumps({**ACTION, "name": "a\0"}), "name: must not contain NUL"),
        (json.dumps({**ACTION, "allowedToFail": "no"}), "allowedToFail: must be true or false"),
        (
            json.dumps({**ACTION, "timeout": "21s"}),
            "timeout: must be decimal seconds with s, from 0s to 20s, such as 1.5s",
        ),
    ],
)
def test_a_wrong_request_is_refused_with_its_first_field(text: str, sentence: str) -> None:
    with pytest.raises(Refusal) as refused:
        checked(CreateActionRequest, text)

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
        checked(AddOIDCAppRequest, json.dumps({"projectId": "1", "name": "a", **changed}))

    assert refused.value.message.startswith(start)


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Refusal, match="request"):
        checked(CreateActionRequest, '{"name": "\ud800"}')
