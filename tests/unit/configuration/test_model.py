"""A configuration in use: paths from the current folder, services, and layers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reconciler.configuration.model import Configuration, Environment
from reconciler.diagnostics import SourceLocation
from reconciler.manifests.placeholders import VariableValue

PLACE = SourceLocation("reconciler.yaml", 1, 1)
STAGING = Environment("staging", PLACE, overlay="environments/staging")
LIVE = Environment("live", PLACE, service="https://id.example.com", overlay="environments/live")
SHARED = Environment("shared", PLACE, service="sqlite:stores/../shared.db")
CONFIGURATION = Configuration(
    "../../reconciler.yaml",
    Path("/repository"),
    Path("../..").resolve(),
    environments={each.name: each for each in (STAGING, LIVE, SHARED)},
)


def test_paths_start_from_the_folder_of_the_file() -> None:
    """A command may be run in any folder of the repository."""
    services = [CONFIGURATION.service_of(each) for each in (STAGING, LIVE, SHARED)]

    assert CONFIGURATION.path("manifests") == "../../manifests"
    assert CONFIGURATION.state_of(STAGING) == "../../.reconciler/staging"
    assert services == [
        "sqlite:../../.reconciler/staging/identity.db",
        "https://id.example.com",
        "sqlite:../../shared.db",
    ]


def test_paths_start_from_the_folder_itself_where_a_link_leads_to_it() -> None:
    """They are the paths that were checked: a link may stand elsewhere in the repository."""
    linked = replace(CONFIGURATION, file="link/reconciler.yaml", folder=Path("a/b").resolve())

    assert linked.path("../manifests") == "a/manifests"


def test_paths_are_absolute_if_the_file_was_named_so() -> None:
    """As they were named, they are shown."""
    named = replace(CONFIGURATION, file="/link/reconciler.yaml", folder=Path("/a/b"))

    assert named.path("../manifests") == "/a/manifests"


def test_the_overlays_of_other_environments_are_known_but_not_laid_over() -> None:
    """They belong to other services."""
    values = {"host": VariableValue("a", PLACE)}
    layers = CONFIGURATION.layers_of(STAGING, values)
    nothing = CONFIGURATION.layers_of(None, values)

    assert (layers.environment, layers.variables) == ("staging", values)
    assert layers.overlay == "../../environments/staging"
    assert layers.other_overlays == ("../../environments/live",)
    assert layers.root == "../../manifests"
    assert (nothing.environment, nothing.overlay) == ("", "")
    assert nothing.overlays == ("../../environments/live", "../../environments/staging")
