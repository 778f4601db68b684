"""Folders of manifests for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.diagnostics import Diagnostic

PROJECT = """\
apiVersion: reconciler/v1
kind: Project
metadata:
  organization: acme
  name: {name}
"""
ACTION = """\
apiVersion: reconciler/v1
kind: Action
metadata:
  organization: acme
  name: greet
spec:
  scriptFile: {path}
"""


def a_project(name: str = "shop") -> str:
    return PROJECT.format(name=name)


def an_action(path: str) -> str:
    return ACTION.format(path=path)


def write_tree(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files by their paths beneath a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def codes(findings: tuple[Diagnostic, ...] | list[Diagnostic]) -> list[str]:
    return [finding.code for finding in findings]


def places(findings: tuple[Diagnostic, ...] | list[Diagnostic]) -> list[tuple[str, int, int]]:
    """Return code, line and column of each finding."""
    return [
        (finding.code, finding.location.line, finding.location.column)
        for finding in findings
        if finding.location is not None
    ]
