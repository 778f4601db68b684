"""Identity providers: two families of calls for the same objects, one of which has the audience."""

from __future__ import annotations

import pytest

from tests.examples import JWT
from tests.unit.service.asking import Asking


@pytest.fixture
def provider(ask: Asking) -> str:
    """Return the id of a provider with an audience."""
    fields = {**JWT, "name": "partner", "audience": "shop"}
    return str(ask("AddJWTProvider", organization=ask.organization, **fields)["id"])


def jwt(ask: Asking, provider: str) -> dict[str, str]:
    found: dict[str, str] = ask("GetProviderByID", id=provider)["idp"]["config"]["jwt"]
    return found


def test_an_old_call_leaves_the_audience_as_it_is(ask: Asking, provider: str) -> None:
    ask("UpdateOrgIDPJWTConfig", idpId=provider, **{**JWT, "headerName": "x-new"})

    assert (jwt(ask, provider)["headerName"], jwt(ask, provider)["audience"]) == ("x-new", "shop")


def test_a_template_call_empties_the_audience_that_it_leaves_out(
    ask: Asking, provider: str
) -> None:
    ask("UpdateJWTProvider", id=provider, name="renamed", **JWT)

    assert jwt(ask, provider)["audience"] == ""
    assert ask("GetOrgIDPByID", id=provider)["idp"]["name"] == "renamed"


def test_old_calls_rename_switch_and_remove_what_a_template_call_made(
    ask: Asking, provider: str
) -> None:
    ask("UpdateOrgIDP", idpId=provider, name="other")
    ask("DeactivateOrgIDP", idpId=provider)
    held = ask("GetProviderByID", id=provider)["idp"]
    assert (held["name"], held["state"]) == ("other", "IDP_STATE_INACTIVE")

    ask("ReactivateOrgIDP", idpId=provider)
    assert ask("RemoveOrgIDP", idpId=provider) == {}
    assert ask.refused("DeleteProvider", id=provider).code == 5


def test_options_that_change_something_are_refused(ask: Asking) -> None:
    options = {"isAutoUpdate": True}

    refused = ask.refused(
        "AddJWTProvider", organization=ask.organization, name="a", providerOptions=options, **JWT
    )

    assert refused.details["field"] == "providerOptions.isAutoUpdate"
