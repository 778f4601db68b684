"""A configuration against the trusted one: which differences decide, and which do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.configuration.model import Configuration, Environment
from reconciler.configuration.trusted import differences
from reconciler.diagnostics import SourceLocation

HERE = SourceLocation("reconciler.yaml", 3, 5)
SERVICE = SourceLocation("reconciler.yaml", 4, 14)


def of(**environments: dict[str, Any]) -> Configuration:
    return Configuration(
        "reconciler.yaml",
        Path(),
        Path(),
        environments={
            name: Environment(name, HERE, places={"service": SERVICE}, **fields)
            for name, fields in environments.items()
        },
    )


LIVE = {"service": "https://id.example.com", "protected": True}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (LIVE, []),
        ({**LIVE, "overlay": "environments/live", "variables": {}}, []),
        ({**LIVE, "tree": "default"}, []),
        (
            {**LIVE, "service": "https://evil.test"},
            [("service", "https://id.example.com", "https://evil.test", SERVICE)],
        ),
        ({"protected": True}, [("service", LIVE["service"], "a store of its own", SERVICE)]),
        ({**LIVE, "tree": "other"}, [("tree", "default", "other", HERE)]),
        ({**LIVE, "protected": False}, [("protected", "true", "false", HERE)]),
    ],
)
def test_service_tree_and_protection_decide(fields: dict[str, Any], found: list[Any]) -> None:
    told = differences(of(live=LIVE), of(live=fields))

    assert [each[1:] for each in told] == found


def test_an_environment_that_is_new_or_gone_is_a_difference() -> None:
    """A new one could have the service of another, and a tree of its own to delete in."""
    told = list(differences(of(a={}, live=LIVE), of(live=LIVE, b={})))

    assert [(each.environment, each.name, each.proposed) for each in told] == [
        ("b", "", "there"),
        ("a", "", "missing"),
    ]
    assert [each.place for each in told] == [HERE, SourceLocation("reconciler.yaml")]
