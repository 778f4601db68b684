"""An object that the tests of a module share, on their server."""

from __future__ import annotations

import pytest

from tests.contract.json_transport.asking import send
from tests.contract.story import JWT
from tests.running import Server


@pytest.fixture(scope="module")
def idp(server: Server) -> str:
    """Return the id of an identity provider."""
    made = send(server, "POST", "/management/v1/idps/jwt", {"name": "partner", **JWT})
    return str(made.json["idpId"])
