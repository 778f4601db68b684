"""The process: streams that lose nothing without a word, exit codes, memory that is not freed."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler import errors
from reconciler.apply.outcome import ApplyReport, Delivered, Outcome, Status
from reconciler.cli import apply, plan, process
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
from reconciler.diagnostics import error, warning
from reconciler.errors import ReconcilerError, UsageError
from reconciler.plan.model import Create, Plan, Unmanaged
from tests.builders import GREET, WEB, a_plan, declared


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

    def again(text: str, file: str) -> None:
        raise AssertionError(f"{file} is read a second time")

    monkeypatch.setattr("reconciler.manifests.manifest.trace_documents", again)
    manifest = "apiVersion: reconciler/v1\nkind: Organization\nmetadata:\n  name: acme\n"
    (tmp_path / "acme.yaml").write_text(manifest, encoding="utf-8")

    assert run(["validate", str(tmp_path)]) == 0


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
    errors.PlanError: 1,
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


MADE = Outcome(Create(declared(WEB)), Status.MADE, "7")
SKIPPED = Outcome(Create(declared(GREET)), Status.NOT_TRIED)


DENIED = errors.AccessDeniedError("problem", remedy="remedy")
KEPT = Delivered(WEB, "7", "7@shop", "kept/web.json")
OWED = Delivered(WEB, "7", "7@shop", error=DENIED)
MISSING = error("SECRET-NOT-IN-SINK", "s", "r")


def failed(kind: type[ReconcilerError]) -> Outcome:
    return Outcome(Create(declared(GREET)), Status.FAILED, error=kind("problem", remedy="remedy"))


@pytest.mark.parametrize(
    ("report", "code"),
    [
        pytest.param(ApplyReport((MADE,), remaining=0), 0, id="all made"),
        pytest.param(ApplyReport((), remaining=0), 0, id="nothing to do"),
        pytest.param(ApplyReport((MADE,)), 0, id="made, and nobody could look again"),
        pytest.param(ApplyReport((MADE,), remaining=1), 5, id="the service made something else"),
        pytest.param(
            ApplyReport((MADE, failed(errors.InvalidArgumentError))), 5, id="one of two failed"
        ),
        pytest.param(ApplyReport((MADE, SKIPPED)), 5, id="one of two not tried"),
        pytest.param(
            ApplyReport((failed(errors.PreconditionFailedError), SKIPPED)), 4, id="outdated"
        ),
        pytest.param(
            ApplyReport((replace(failed(errors.AccessDeniedError), written=True),), remaining=0),
            5,
            id="written, and its secret refused",
        ),
        pytest.param(ApplyReport((failed(errors.LockHeldError),)), 6, id="the lock was lost"),
        pytest.param(ApplyReport((failed(errors.AccessDeniedError),)), 7, id="not allowed"),
        pytest.param(ApplyReport((failed(errors.InvalidArgumentError),)), 1, id="refused"),
        pytest.param(ApplyReport((MADE, SKIPPED), interrupted=15), 143, id="interrupted"),
        pytest.param(ApplyReport((), delivered=(KEPT,), remaining=0), 0, id="delivered"),
        pytest.param(ApplyReport((), delivered=(OWED,), remaining=0), 7, id="owed still"),
        pytest.param(ApplyReport((), delivered=(KEPT, OWED), remaining=0), 5, id="one of two"),
        pytest.param(ApplyReport((), (MISSING,), remaining=0), 5, id="a secret is nowhere"),
        pytest.param(
            ApplyReport((MADE,), (warning("W", "s", "r"),), remaining=0), 0, id="only warned"
        ),
    ],
)
def test_an_apply_ends_with_what_came_of_it(report: ApplyReport, code: int) -> None:
    """Partly applied is a number of its own: something was changed."""
    assert apply.exit_code(report) == code


@pytest.mark.parametrize(
    ("found", "code"),
    [
        pytest.param(a_plan(), 0, id="nothing to do"),
        pytest.param(a_plan(unmanaged=(Unmanaged(WEB),)), 0, id="only unmanaged"),
        pytest.param(a_plan(Create(declared(WEB))), 2, id="changes"),
        pytest.param(
            a_plan(Create(declared(WEB)), blocks=(error("G", "s", "r"),)), 3, id="blocked wins"
        ),
    ],
)
def test_a_plan_ends_with_whether_anything_would_change(found: Plan, code: int) -> None:
    """With --detailed-exitcode, as in the tools people know."""
    assert plan.exit_code(found) == code
