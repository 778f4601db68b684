"""Services of every kind, with an organization and a project in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from reconciler.service.build import open_postgres, open_sqlite
from tests.contract.houses import (
    IN_PROCESS,
    OVER_HTTP,
    House,
    house_of,
    in_process,
    of_zitadel,
    over_http,
)
from tests.examples import Clock
from tests.listening import listening
from tests.memory_store import open_memory
from tests.running import Server, running_server
from tests.unit.service.asking import Asking
from tests.zitadel.stand_in import GENERATIONS, FakeZitadel


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Asking]:
    """Open one service of each kind of store."""
    clock = Clock()
    with ExitStack() as stack:
        if request.param == "memory":
            service = open_memory(now=clock)
        elif request.param == "postgres":
            address = stack.enter_context(request.getfixturevalue("postgres").empty_store())
            service = open_postgres(address, seal_key_file=tmp_path / "seal-key", now=clock)
        else:
            service = open_sqlite(tmp_path / "identity.db", create=True, now=clock)
        stack.enter_context(closing(service))
        asking = Asking(service, clock)
        asking.prepare()
        yield asking


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server of ours for all tests of a module."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def zitadels() -> Iterator[Mapping[str, str]]:
    """Serve a stand-in of each generation for all tests of a module; yield their addresses."""
    with ExitStack() as stack:
        apps = {each: FakeZitadel(version=each).app() for each in GENERATIONS}
        yield {each: stack.enter_context(listening(app)) for each, app in apps.items()}


@pytest.fixture
def house(service_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    """Open a client of a service of the kind that a fixture of the module names."""
    with ExitStack() as stack:
        if service_kind == IN_PROCESS:
            opener = stack.enter_context(in_process())
        elif service_kind == OVER_HTTP:
            opener = over_http(request.getfixturevalue("server"))
        else:
            opener = of_zitadel(request.getfixturevalue("zitadels")[service_kind], tmp_path)
        yield stack.enter_context(house_of(opener, remembers=service_kind not in GENERATIONS))
