"""What every kind of test may ask for."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from tests.postgres_server import PostgresServer, a_server
from tests.shared import shared_folder, use_memory
from tests.surroundings import settle_in

settle_in()
use_memory()
shared_folder()  # before processes are started that use it together

# How long one example takes says how busy the machine is. Time is asked about where it matters.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).parents[1]
_FOLDERS = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for one test, with nothing beside it.

    The fixture of pytest looks through the folders of all earlier tests for its number, and so do
    commands that look for manifests beside the folder they are given.
    """
    folder = tmp_path_factory.getbasetemp() / str(next(_FOLDERS)) / "test"
    folder.mkdir(mode=0o700, parents=True)
    return folder


def pytest_collection(session: pytest.Session) -> None:
    """Import the modules of tests; each process of a run begins with other ones.

    So each compiles its share of those that changed, and finds the others compiled.
    """
    if session.config.pluginmanager.hasplugin("dsession"):  # it runs no tests itself
        return
    files = [file for path in session.config.args for file in sorted(Path(path).rglob("test_*.py"))]
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = len(files) * process // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    gc.disable()  # modules stay loaded, so a collection would free nothing
    for file in [*files[first:], *files[:first]]:
        with suppress(Exception):  # which pytest tells when it collects the module
            name = file.absolute().relative_to(ROOT).with_suffix("")
            importlib.import_module(".".join(name.parts))


def pytest_collection_finish() -> None:
    """Collect garbage as usual while tests run, and look only at what comes from now on."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Save what was measured now: xdist kills a process ten seconds after its last test."""
    if "coverage" in sys.modules:
        from coverage import Coverage

        if measured := Coverage.current():
            measured.save()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Start a real server, once for all tests of a process."""
    with a_server() as server:
        yield server
