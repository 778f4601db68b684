"""One server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.json_transport.asking import send
from tests.contract.story import JWT
from tests.running import Server, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def idp(server: Server) -> str:
    """Return the id of an identity provider."""
    made = send(server, "POST", "/management/v1/idps/jwt", {"name": "partner", **JWT})
    return str(made.json["idpId"])
