"""Trust rules that contradict themselves: refused by the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Code
from tests.signing import Forge
from tests.unit.service.asking import Asking

KEYS = Forge().keys
RULE = {
    "kind": "issuer",
    "name": "apply",
    "role": "viewer",
    "issuer": "https://ci.example",
    "claims": {"sub": ["job"]},
    "keys": KEYS,
}


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"expiresAt": 1}, "expiresAt", "expiresAt: is over already"),
        ({"kind": "machine", "issuer": None}, "kind", "kind: a machine has a key and no claims"),
        (
            {"authority": "x"},
            "authority",
            "authority: must be certificates in PEM, of an issuer whose keys are fetched",
        ),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused_by_its_field(
    ask: Asking, changed: dict[str, Any], field: str, message: str
) -> None:
    """For programs, too, which read the field from the details."""
    rule = {name: value for name, value in {**RULE, **changed}.items() if value is not None}

    refusal = ask.refused("GrantTrust", **rule)

    assert (refusal.code, refusal.message) == (Code.INVALID_ARGUMENT, message)
    assert refusal.details == {"field": field}
