"""The process: streams that lose nothing without a word, exit codes, memory that is not freed."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import errors
from reconciler.cli import process
from reconciler.cli.main import run
from reconciler.cli.process import (
    OutputChoice,
    choose,
    chosen,
    exit_code_of,
    forget_run,
    keep_until_exit,
    lost_output,
)
from reconciler.diagnostics import error
from reconciler.errors import ReconcilerError, UsageError


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Begin and end with the defaults."""
    forget_run()
    yield
    forget_run()


def test_a_reader_that_has_gone_is_remembered_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    out = process._text(process._Stream(writer, "w"), None)
    monkeypatch.setattr(sys, "stdout", out)

    out.write("one\n")
    out.write("two\n")

    assert lost_output() == "its reader has gone"
    monkeypatch.undo()
    out.close()


def test_a_stream_that_takes_everything_has_lost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    out = process._text(process._Stream(writer, "w"), None)
    monkeypatch.setattr(sys, "stdout", out)

    out.write("é\ud800\n")

    assert lost_output() == ""
    monkeypatch.undo()
    out.close()
    assert os.read(reader, 99) == "é\\ud800\n".encode(), "what has no bytes is escaped"
    os.close(reader)


def test_another_stream_lost_nothing() -> None:
    """That of a test, or of a program that uses this one as a library."""
    assert lost_output() == ""


def test_options_are_taken_where_they_were_given() -> None:
    choose("color", "never")
    choose("verbose", value=True)
    choose("color", None)

    assert chosen() == OutputChoice("never", verbose=True)


def test_contradicting_options_are_refused() -> None:
    choose("quiet", value=True)

    with pytest.raises(UsageError, match="contradict"):
        choose("verbose", value=True)


PROGRAM = """
import atexit, os, sys
from reconciler.cli.process import end, keep_until_exit
class Large:
    def __del__(self, write=os.write):
        write(1, b"taken apart")
if sys.argv[1] == "held":
    keep_until_exit(Large())
else:
    sys.large = Large()
atexit.register(print, "called at exit")
sys.stdout.write("buffered ")
end(3)
"""


@pytest.mark.slow
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
    keep_until_exit(large)
    del large
    assert gone() is not None

    forget_run()
    assert gone() is None


def test_a_valid_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Places are found by reading a file again, which only what has findings is worth."""

    def again(text: str, *_: object) -> None:
        raise AssertionError(f"it is read a second time: {text}")

    monkeypatch.setattr("reconciler.manifests.manifest.node_of", again)
    manifest = "apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: acme\n"
    (tmp_path / "acme.yaml").write_text(manifest, encoding="utf-8")

    assert run(["validate", str(tmp_path)]) == 0


@pytest.mark.slow
def test_signals_are_handled_before_anything_slow_is_loaded() -> None:
    """Until then Python's own handler prints a traceback on SIGINT."""
    source = (
        "import sys; known = set(sys.modules)\n"
        "import reconciler.__main__\n"
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


CODES: dict[type[ReconcilerError], int] = {
    errors.UsageError: 1,
    errors.BlockedPlanError: 3,
    errors.StalePlanError: 4,
    errors.LocalFileError: 1,
    errors.LockHeldError: 6,
    errors.ServiceError: 1,
    errors.InvalidArgumentError: 1,
    errors.ObjectNotFoundError: 1,
    errors.AlreadyExistsError: 1,
    errors.AccessDeniedError: 7,
    errors.PreconditionFailedError: 4,
    errors.ServiceUnavailableError: 1,
}


@pytest.mark.parametrize(
    ("kind", "code"), CODES.items(), ids=lambda each: getattr(each, "__name__", "")
)
def test_every_failure_has_its_number(kind: type[ReconcilerError], code: int) -> None:
    """A pipeline waits for a lock, asks for a review or gives up, by the number alone."""
    assert exit_code_of(kind("problem", remedy="remedy")) == code


@pytest.mark.parametrize(("signal", "code"), [(2, 130), (15, 143)])
def test_an_interrupted_run_ends_as_shells_expect(signal: int, code: int) -> None:
    """Of a signal's number and 128."""
    assert exit_code_of(errors.InterruptedRunError(signal)) == code


def test_wrong_manifests_are_an_error() -> None:
    """One, whatever is wrong and however often."""
    assert exit_code_of(errors.InvalidManifestsError([error("X", "s", "r")] * 3)) == 1
