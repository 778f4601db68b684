"""A store file with something in it, made once and copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.service.stored import fill


@pytest.fixture(scope="session")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a store, for copies."""
    path = tmp_path_factory.mktemp("filled") / "identity.db"
    fill(path)
    return path


@pytest.fixture
def filled(filled_store: Path, tmp_path: Path) -> Path:
    """Return the path of a store with something in it."""
    return Path(shutil.copy(filled_store, tmp_path))
