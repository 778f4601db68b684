"""The files that start ``run`` without a person are what systemd and Kubernetes take."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from reconciler.cli.run.command import run_command
from tests.acceptance.conftest import ROOT

DOCS = ROOT / "docs"
PAGE = (DOCS / "continuous.md").read_text(encoding="utf-8")
(UNIT,) = re.findall(r"```ini\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = sorted(DOCS.rglob("kubernetes.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_kubernetes_knows_every_field_of_the_examples(path: Path) -> None:
    """By the strict schemas of the newest Kubernetes that the validator has."""
    newest = kubernetes_validate.latest_version()

    for document in documents(path):
        assert kubernetes_validate.validate(document, newest, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_noticed() -> None:
    (deployment,) = documents(DOCS / "continuous" / "kubernetes.yaml")
    pod = deployment["spec"]["template"]["spec"]
    pod["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True

    with pytest.raises(kubernetes_validate.ValidationError, match="readOnlyRootFileSystem"):
        kubernetes_validate.validate(deployment, kubernetes_validate.latest_version(), strict=True)


def verified(folder: Path, unit: str) -> str:
    """Return what systemd says about a unit; it exits with 0 where it ignores a key."""
    path = folder / "reconciler-run.service"
    path.write_text(unit.replace("/opt/reconciler/bin/reconciler", sys.executable), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_the_unit_starts_run_as_it_can_be_started(tmp_path: Path) -> None:
    """With flags that it knows; systemd, where it is installed, knows every key of the unit."""
    (line,) = re.findall(r"^ExecStart=(.*(?:\\\n.*)*)", UNIT, re.MULTILINE)
    _, command, *words = line.replace("\\\n", " ").split()

    assert command == "run"
    flags = {flag for option in run_command.params for flag in option.opts}
    assert {word for word in words if word.startswith("--")} <= flags
    if shutil.which("systemd-analyze"):
        assert verified(tmp_path, UNIT) == ""
        wrong = verified(tmp_path, UNIT.replace("DynamicUser", "DynamikUser"))
        assert "Unknown key" in wrong
        assert "DynamikUser" in wrong
