"""The end of a process: nothing that matters is left out, and nothing that is held is freed."""

from __future__ import annotations

import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from reconciler.cli.ending import hold, let_go
from reconciler.cli.main import run

PROGRAM = """
import atexit, os, sys
from reconciler.cli.ending import end, hold
class Large:
    def __del__(self, write=os.write):
        write(1, b"taken apart")
if sys.argv[1] == "held":
    hold(Large())
else:
    sys.large = Large()
atexit.register(print, "called at exit")
sys.stdout.write("buffered ")
end(3)
"""


@pytest.mark.parametrize(
    ("place", "told"),
    [("held", "buffered called at exit\n"), ("free", "buffered called at exit\ntaken apart")],
)
def test_a_process_ends_with_its_code_and_output_and_leaves_what_is_held(
    place: str, told: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, place], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (3, told, "")


def test_another_run_in_the_process_lets_go_of_what_the_last_one_held() -> None:
    class Large:
        pass

    large = Large()
    gone = weakref.ref(large)
    hold(large)
    del large
    assert gone() is not None

    let_go()
    assert gone() is None


def test_a_valid_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are found by reading a file again, which only what has findings is worth."""

    def again(text: str, file: str) -> None:
        raise AssertionError(f"{file} is read a second time")

    monkeypatch.setattr("reconciler.manifests.source_file.trace_documents", again)
    manifest = "apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: acme\n"
    (tmp_path / "acme.yaml").write_text(manifest, encoding="utf-8")

    assert run(["validate", str(tmp_path)]) == 0


def test_signals_are_handled_before_anything_slow_is_loaded() -> None:
    """Until then Python's own handler prints a traceback on SIGINT."""
    source = (
        "import sys; known = set(sys.modules)\n"
        "import reconciler.cli.entry\n"
        "print(*sorted(set(sys.modules) - known))"
    )
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-S", "-c", source],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    loaded = set(done.stdout.split())
    assert "reconciler.cli.signals" in loaded
    assert loaded.isdisjoint({"typing", "re", "dataclasses", "click", "reconciler.errors"})
