"""Two specs are equal when they mean the same."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kinds.fields import KINDS
from reconciler.resources import normal
from reconciler.resources.capabilities import fields_of_source
from reconciler.resources.fields import Form
from reconciler.resources.normal import DEFAULTS, LEFT_AS_HELD, normal_form, without_idle
from reconciler.resources.ref import Kind
from reconciler.service.operations.models import model_with
from tests.effort import cases
from tests.rows import each_row

CODE = "OIDC_RESPONSE_TYPE_CODE"
IDENTITY = "OIDC_RESPONSE_TYPE_ID_TOKEN"
GRANT = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
REFRESH = "OIDC_GRANT_TYPE_REFRESH_TOKEN"

RESPONSE_TYPES = st.lists(st.sampled_from([CODE, IDENTITY]), max_size=4)
GRANT_TYPES = st.lists(st.sampled_from([GRANT, REFRESH]), max_size=4)
URIS = st.lists(st.sampled_from(["https://a.test/", "https://b.test/"]), max_size=4)
DURATIONS = st.sampled_from(["0s", "1s", "1.0s", "1.50s", "4.999s"])
APPLICATIONS = st.fixed_dictionaries(
    {},
    optional={
        "redirectUris": URIS,
        "postLogoutRedirectUris": URIS,
        "responseTypes": RESPONSE_TYPES,
        "grantTypes": GRANT_TYPES,
        "clockSkew": DURATIONS,
        "devMode": st.booleans(),
        "accessTokenType": st.sampled_from(["OIDC_TOKEN_TYPE_BEARER", "OIDC_TOKEN_TYPE_JWT"]),
    },
)
ACTIONS = st.fixed_dictionaries(
    {
        "script": st.text(
            st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=9
        )
    },
    optional={"timeout": DURATIONS, "allowedToFail": st.booleans()},
)
SPECS = APPLICATIONS.map(lambda spec: (Kind.OIDC_APPLICATION, spec)) | ACTIONS.map(
    lambda spec: (Kind.ACTION, spec)
)


@each_row(
    ("one", "other"),
    [
        pytest.param({}, {"devMode": False}, id="a default left unsaid"),
        pytest.param({}, {"responseTypes": []}, id="an empty list of response types"),
        pytest.param({}, {"grantTypes": [GRANT]}, id="the default grant type"),
        pytest.param({}, {"grantTypes": []}, id="an empty list of grant types"),
        pytest.param({"clockSkew": "1s"}, {"clockSkew": "1.000s"}, id="equal durations"),
        pytest.param(
            {"grantTypes": [GRANT, REFRESH]},
            {"grantTypes": ["REFRESH_TOKEN", GRANT, "AUTHORIZATION_CODE"]},
            id="short words of a set",
        ),
        pytest.param({"appType": "OIDC_APP_TYPE_NATIVE"}, {"appType": "NATIVE"}, id="a short word"),
        pytest.param(
            {"loginVersion": {"loginV2": {}}},
            {"loginVersion": {"loginV2": {"baseUri": ""}}},
            id="an empty text of a variant",
        ),
        pytest.param(
            {"grantTypes": [REFRESH]}, {"grantTypes": ["REFRESH_TOKEN"]}, id="one short word"
        ),
        pytest.param(
            {"grantTypes": [REFRESH]},
            {"grantTypes": ["REFRESH_TOKEN", REFRESH]},
            id="both spellings of a word",
        ),
        pytest.param(
            {"grantTypes": [GRANT, REFRESH]}, {"grantTypes": [REFRESH, GRANT, REFRESH]}, id="a set"
        ),
    ],
)
def test_what_means_the_same_is_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    kind = Kind.OIDC_APPLICATION

    assert normal_form(kind, one) == normal_form(kind, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            {"redirectUris": ["https://a.test/", "https://b.test/"]},
            {"redirectUris": ["https://b.test/", "https://a.test/"]},
            id="the order of URIs",
        ),
        pytest.param({"clockSkew": "1s"}, {"clockSkew": "1.000000001s"}, id="a nanosecond"),
        pytest.param({}, {"devMode": True}, id="a field"),
    ],
)
def test_what_means_something_else_is_not(one: dict[str, Any], other: dict[str, Any]) -> None:
    kind = Kind.OIDC_APPLICATION

    assert normal_form(kind, one) != normal_form(kind, other)


@settings(max_examples=cases(30))
@given(spec=SPECS)
def test_a_normal_form_is_its_own_normal_form(spec: tuple[Kind, dict[str, Any]]) -> None:
    kind, fields = spec
    normal = normal_form(kind, fields)

    assert normal_form(kind, normal) == normal
    assert set(normal) == {*(DEFAULTS[kind].keys() - LEFT_AS_HELD[kind].keys()), *fields}


@settings(max_examples=cases(30))
@given(spec=SPECS)
def test_making_it_leaves_what_was_written_and_the_defaults_alone(
    spec: tuple[Kind, dict[str, Any]],
) -> None:
    kind, fields = spec
    before, defaults = copy.deepcopy(fields), copy.deepcopy(DEFAULTS)

    normal_form(kind, fields)

    assert fields == before
    assert defaults == DEFAULTS


@settings(max_examples=cases(30))
@given(spec=SPECS)
def test_the_model_has_the_same_normal_form(spec: tuple[Kind, dict[str, Any]]) -> None:
    """Models fill in defaults on the service's side, this table does on ours."""
    kind, fields = spec

    known = model_with(kind.value, fields_of_source(kind))
    model = known.model_validate_json(json.dumps(fields))

    assert normal_form(kind, model.model_dump(mode="json", by_alias=True)) == normal_form(
        kind, fields
    )


@settings(max_examples=cases(30))
@given(fields=APPLICATIONS, grants=st.permutations([GRANT, REFRESH]))
def test_the_order_of_sets_does_not_show(fields: dict[str, Any], grants: list[str]) -> None:
    kind = Kind.OIDC_APPLICATION

    assert normal_form(kind, {**fields, "grantTypes": grants}) == normal_form(
        kind, {**fields, "grantTypes": sorted(grants)}
    )


def test_the_rules_of_a_kind_are_those_of_its_fields() -> None:
    """They are made when the module is loaded; made again, they are the same."""
    for kind, row in KINDS.items():
        made = normal._rules(kind)
        by_form = {form: [each for each in row.fields if each.form is form] for form in Form}

        assert made.defaults == {
            each.name: each.default
            for each in row.fields
            if each.default is not None and not each.left_as_held
        }
        assert list(made.durations) == [each.name for each in by_form[Form.DURATION]]
        assert made.choices == [(each.name, each.short) for each in by_form[Form.CHOICE]]
        assert made.sets == [(each.name, each.short) for each in by_form[Form.SET]]
        assert list(made.variants) == [each.name for each in by_form[Form.VARIANT]]


def test_what_is_left_as_held_and_at_its_default_is_idle() -> None:
    """A variant keeps its texts, less the empty ones."""
    told = {"loginVersion": {"loginV2": {"baseUri": "", "x": "y"}}}
    kind = Kind.OIDC_APPLICATION

    assert normal_form(kind, told)["loginVersion"] == {"loginV2": {"x": "y"}}
    assert without_idle(kind, {**told, "name": "web"}) == {**told, "name": "web"}
    assert without_idle(kind, {"loginVersion": {}, "name": "web"}) == {"name": "web"}
    assert without_idle(Kind.ACTION, {"name": "greet"}) == {"name": "greet"}
