"""Configurations for tests: written into a folder, then read."""

from __future__ import annotations

from pathlib import Path

from reconciler.configuration.model import Configuration
from reconciler.configuration.reading import Reading, read_configuration

HEAD = "apiVersion: reconciler/v1\nkind: Configuration\n"


def reading_of(folder: Path, text: str) -> Reading:
    """Write what follows the head of a configuration, and read it."""
    path = folder / "reconciler.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return read_configuration(str(path))


def configuration_of(folder: Path, text: str) -> Configuration:
    """Return the configuration of a text in which nothing is wrong."""
    configuration, findings = reading_of(folder, text)
    assert configuration is not None, findings
    return configuration


def told(reading: Reading) -> list[tuple[str, int, int]]:
    """Return the code, line and column of each finding."""
    return [
        (finding.code, finding.location.line, finding.location.column)
        for finding in reading.findings
        if finding.location
    ]
