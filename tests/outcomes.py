"""A plugin of pytest: a JSON line for each test. ``-p tests.outcomes --outcomes FILE``."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file to write."""
    parser.addoption("--outcomes", type=Path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write how a test ended, and whether it was by an assertion if it failed."""
    report = yield
    if call.when == "call" or call.excinfo is not None:
        error = call.excinfo.value if call.excinfo else None
        told = {
            "test": item.nodeid,
            "failed": report.failed,
            "asserted": isinstance(error, (AssertionError, pytest.fail.Exception)),
            "said": str(error)[:200],
        }
        with item.config.getoption("outcomes").open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")
    return report
