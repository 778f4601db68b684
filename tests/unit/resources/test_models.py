"""Models made from the declarations: strict, closed, and with every default."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from reconciler.kinds.fields import KINDS
from reconciler.resources.capabilities import CAPABILITIES, SOURCE, fields_taken
from reconciler.resources.models import Model, model_with
from reconciler.resources.ref import Kind
from tests.builders import an_action, an_application
from tests.rows import each_row


def model_of(kind: Kind) -> type[Model]:
    return model_with(kind.value, fields_taken(kind, CAPABILITIES[SOURCE]))


WITH_SPEC = [kind for kind in Kind if KINDS[kind].fields]


@pytest.mark.parametrize("kind", WITH_SPEC)
def test_a_model_has_the_fields_of_its_kind_in_their_order(kind: Kind) -> None:
    fields = fields_taken(kind, CAPABILITIES[SOURCE])
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
