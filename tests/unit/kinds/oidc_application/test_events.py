"""Client secrets as the events of their applications leave them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.kinds.oidc_application.events import SecretChanged
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import (
    Changed,
    Event,
    Held,
    ImpossibleHistoryError,
    State,
    Unborn,
)
from reconciler.service.domain.state import evolve
from tests.rows import each_row

KIND = Kind.OIDC_APPLICATION
OIDC = dict(DEFAULTS[KIND])
POST = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_POST"}
PUBLIC = {**OIDC, "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
DEV = {**PUBLIC, "devMode": True}
APP = Held(KIND, "1", "acme", "shop", "web", OIDC, "7", "hash")
NEW_HASH = "new hash"
BY_HAND = replace(APP, spec=PUBLIC, secret_hash=NEW_HASH)


@each_row(
    ("before", "event", "after"),
    [
        (APP, Changed(KIND, POST), replace(APP, spec=POST)),
        (APP, Changed(KIND, PUBLIC), replace(APP, spec=PUBLIC, secret_hash="")),
        (BY_HAND, Changed(KIND, DEV), replace(BY_HAND, spec=DEV)),
        (APP, SecretChanged(KIND, NEW_HASH), replace(APP, secret_hash=NEW_HASH)),
    ],
)
def test_only_a_move_to_a_sign_in_without_a_secret_ends_it(
    before: State, event: Event, after: State
) -> None:
    assert evolve(before, event) == after


def test_only_an_application_gets_a_new_secret() -> None:
    for state in (Unborn("1", "acme"), None, Held(Kind.ACTION, "1", "acme", "acme", "greet", {})):
        with pytest.raises(ImpossibleHistoryError):
            evolve(state, SecretChanged(KIND, NEW_HASH))
