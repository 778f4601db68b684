"""Places at which a test can end the process as a power cut would."""

from __future__ import annotations

import os
import signal

VARIABLE = "RECONCILER_CRASHPOINT"


def _armed(written: str) -> dict[str, int]:
    name, _, visit = written.partition(":")
    return {name: int(visit or "1")} if name else {}


_visits_left = _armed(os.environ.get(VARIABLE, ""))


def crashpoint(name: str) -> None:
    """Kill the process here if the environment names this place: ``S4``, or ``S4:3`` (visit 3)."""
    if name not in _visits_left:
        return
    _visits_left[name] -= 1
    if _visits_left[name] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
