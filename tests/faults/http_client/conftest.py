"""One server for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.running import Server, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server for all tests of this module."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running
