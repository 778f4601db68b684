"""A folder for what targets write, in memory where the system has such."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev", "shm")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)


def scratch() -> Path:
    """Return the folder of this process; it goes with the process."""
    return Path(_folder().name)
