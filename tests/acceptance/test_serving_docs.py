"""The files that show how to run a server say what the server understands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.serve import serve_command
from reconciler.service.transport.pages import PATHS
from tests.acceptance.conftest import ROOT
from tests.running import running_server

SERVING = ROOT / "docs" / "serving"
DOCKERFILE = (SERVING / "Dockerfile").read_text(encoding="utf-8")
FLAGS = {flag for option in serve_command.params for flag in option.opts}
VARIABLES = {option.envvar for option in serve_command.params if hasattr(option, "envvar")}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((SERVING / name).read_text(encoding="utf-8")))


def commands() -> Iterator[tuple[str, list[str]]]:
    yield "Dockerfile", json.loads(re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)[0])
    yield "compose.yaml", documents("compose.yaml")[0]["services"]["identity"]["command"]
    pod = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]
    yield "kubernetes.yaml", pod["containers"][0]["args"]


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=[name for name, _ in commands()]
)
def test_every_flag_is_one_of_serve(name: str, command: list[str]) -> None:
    """A flag that was renamed is renamed there, too."""
    assert command[0] == "serve"
    assert {word for word in command if word.startswith("--")} <= FLAGS
    assert "--behind-proxy" in command  # TLS is spoken by what stands in front of each


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "kubernetes.yaml"])
def test_every_variable_is_one_of_serve(name: str) -> None:
    """A variable that nobody reads would be a setting that does nothing."""
    text = (SERVING / name).read_text(encoding="utf-8")

    assert set(re.findall(r"RECONCILER_\w+", text)) <= VARIABLES


def test_probes_ask_where_health_is() -> None:
    """Ready where the store is asked, alive where it is not."""
    container = documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]["containers"][0]

    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert {"/readyz", "/healthz"} <= PATHS


def test_the_example_runs_more_than_one_replica_without_rights() -> None:
    """On a file system that nobody can write to."""
    deployment = documents("kubernetes.yaml")[0]["spec"]
    pod = deployment["template"]["spec"]

    assert deployment["replicas"] > 1
    assert pod["securityContext"]["runAsNonRoot"]
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_the_health_check_of_the_image_tells_a_server_from_none(tmp_path: Path) -> None:
    """Python asks; there is no curl in the image."""
    (written,) = re.findall(r"^HEALTHCHECK .*\\\n\s+CMD (.+)$", DOCKERFILE, re.MULTILINE)
    _, flag, script = json.loads(written)
    with running_server(tmp_path) as server:
        there = script.replace(":8080", f":{server.port}")
        healthy = subprocess.run([sys.executable, flag, there], check=False)
    gone = subprocess.run([sys.executable, flag, there], check=False, capture_output=True)

    assert (healthy.returncode, gone.returncode) == (0, 1)
