"""Folders of secrets, as sinks of both kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.apply.secret_files import Sink, a_file_sink, an_age_sink


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that only its owner can read."""
    made = tmp_path / "secrets"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture(params=[a_file_sink, an_age_sink])
def sink(request: pytest.FixtureRequest, folder: Path) -> Sink:
    """Return a sink of each kind."""
    make: Callable[[Path], Sink] = request.param
    return make(folder)
