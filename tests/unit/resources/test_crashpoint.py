"""Places at which a test ends the process: the one that is named, at the visit that is named."""

from __future__ import annotations

import os
import signal

import pytest

from reconciler.resources import crashpoint as module


@pytest.mark.parametrize(
    ("written", "visits", "kills"),
    [
        ("", ["S4", "S4"], []),
        ("S4", ["S3", "S4", "S4"], [1]),
        ("S4:3", ["S4", "S4", "S5", "S4", "S4"], [3]),
        ("S40", ["S4"], []),
    ],
)
def test_the_process_is_killed_at_one_visit_of_one_place(
    monkeypatch: pytest.MonkeyPatch, written: str, visits: list[str], kills: list[int]
) -> None:
    killed: list[tuple[int, int, int]] = []
    monkeypatch.setattr(module, "_visits_left", module._armed(written))

    for at, name in enumerate(visits):
        monkeypatch.setattr(os, "kill", lambda pid, sent, at=at: killed.append((at, pid, sent)))
        module.crashpoint(name)

    assert killed == [(at, os.getpid(), signal.SIGKILL) for at in kills]
