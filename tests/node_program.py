"""Programs of ``tests/web`` under Node.js."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WEB = Path(__file__).parent / "web"
ANSWER_WITHIN = 120.0


def told_by_node(program: str, job: Mapping[str, Any], **more: str) -> Any:
    """Return what a program says came of a job; extra environment by keyword."""
    node = shutil.which("node")
    assert node is not None, "install Node.js"
    done = subprocess.run(
        [node, "node.js", f"./{program}"],
        cwd=WEB,
        env={**os.environ, **more},
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=ANSWER_WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
