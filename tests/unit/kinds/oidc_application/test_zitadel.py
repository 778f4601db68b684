"""OIDC applications as a ZITADEL answers them."""

from __future__ import annotations

import pytest

from reconciler.kinds.oidc_application.zitadel import ROW
from reconciler.resources.call import JsonObject
from reconciler.service_client.zitadel.objects import Owner

ACME, SHOP = Owner("1", "acme"), Owner("2", "shop")
BASE: JsonObject = {
    "id": "7", "name": "web",
    "details": {"sequence": "9", "changeDate": "2026-01-01T00:00:00Z", "resourceOwner": "1"},
}  # fmt: skip


def test_what_the_service_derives_is_never_sent_back() -> None:
    config = {"clientId": "c", "noneCompliant": True}

    web = ROW.observed({**BASE, "oidcConfig": config}, ACME, SHOP)

    assert (web.ref.project, web.project_id, web.client_id) == ("shop", "2", "c")
    assert (web.carried, web.uncarried) == ({}, ())


@pytest.mark.parametrize(
    ("fields", "strange"),
    [
        ({"apiConfig": {}}, "the configuration of an API application"),
        ({"colour": "red"}, "colour"),
        ({}, "no configuration"),
    ],
)
def test_what_no_manifest_can_say_is_marked(fields: JsonObject, strange: str) -> None:
    """Nothing ever writes to it."""
    assert ROW.observed({**BASE, **fields}, ACME, SHOP).uncarried == (strange,)
