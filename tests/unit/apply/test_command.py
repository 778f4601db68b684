"""Commands that fail, hang, or are stopped in the midst of their work."""

from __future__ import annotations

import inspect
import signal
import threading
import time
from pathlib import Path

import pytest

from reconciler.apply import command
from reconciler.apply.sink import Kept
from reconciler.errors import LocalFileError, UsageError
from tests.unit.apply.commands import Helper, a_taker, deliveries, is_kept


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    """Return a command that does what it should."""
    return Helper(tmp_path)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        pytest.param({"before": "sys.exit(3)"}, "exit code 3", id="at once"),
        pytest.param(
            {"put": "sys.exit(3) if one['client_id'] == 'id-2' else None"}, "exit code 3",
            id="in the middle",
        ),
        pytest.param({"put": "continue"}, "no answer", id="it says nothing"),
        pytest.param({"before": "print('x' * 100_000, flush=True)"}, "too large", id="it floods"),
        pytest.param({"before": "time.sleep(60)"}, "no answer within 1 s", id="it hangs",
                     marks=pytest.mark.slow),
        pytest.param({"after": "sys.stdout.close(); os.close(1); time.sleep(60)"}, "",
                     id="it keeps all and does not end", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_what_a_command_kept_before_it_failed_is_told_as_kept(
    helper: Helper, how: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says of one secret is true of that one."""
    monkeypatch.setattr(command, "SECONDS", 1.0)
    helper.write(**how)

    results = helper.sink().deliver(deliveries(4))

    for delivery, result in zip(deliveries(4), results, strict=True):
        if isinstance(result, LocalFileError):
            assert said in result.problem
            assert str(delivery.ref) in result.problem
            assert "geheim" not in result.problem + result.remedy
        else:
            assert delivery.client_id in helper.secrets


def test_no_traceback_shows_the_lines_of_a_talk(helper: Helper) -> None:
    """One with values, as some loggers write it, has the text of every value."""
    shown: list[str] = []

    def stops() -> bool:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        shown.append(repr(frame.f_back.f_locals))
        return False

    assert is_kept(helper.sink().deliver(deliveries(2), stops)) == [True, True]
    assert shown != []
    assert "geheim" not in "".join(shown)


def test_a_run_that_is_to_stop_gives_nothing_more_to_a_batch(
    helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command is about to keep is waited for, but not for long."""
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.1)
    helper.write(put="time.sleep(0.03)", flush=", flush=True")
    began = time.monotonic()

    def stops() -> bool:
        return len(helper.secrets) >= 2

    results = helper.sink().deliver(deliveries(1500), stops)

    assert time.monotonic() - began < 20
    kept = [d.client_id for d, one in zip(deliveries(1500), results, strict=True)
            if isinstance(one, Kept)]  # fmt: skip
    assert 2 <= len(kept) < 50
    assert set(kept) <= set(helper.secrets)
    last = results[-1]
    assert isinstance(last, LocalFileError)
    assert "was not given to" in last.problem


def test_a_run_that_is_to_stop_starts_no_further_command(tmp_path: Path) -> None:
    """Those that are started end, and their secrets are kept."""
    kept = tmp_path / "kept"

    def stops() -> bool:
        return any(kept.iterdir())

    results = a_taker(tmp_path, "exec", 0.0).deliver(deliveries(3), stops)

    assert is_kept(results) == [True, False, False]
    assert isinstance(results[1], LocalFileError)
    assert "the run was interrupted" in results[1].problem


def test_a_command_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its secret is still owed."""
    monkeypatch.setattr(command, "SECONDS", 0.3)

    (result,) = a_taker(tmp_path, "exec", 60).deliver(deliveries(1))

    assert isinstance(result, LocalFileError)
    assert "not done within" in result.problem


def test_a_run_that_must_end_now_leaves_no_command_behind(tmp_path: Path) -> None:
    """A second signal is raised in the midst of the deliveries."""
    sink, began = a_taker(tmp_path, "exec?parallel=3", 60), time.monotonic()
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
    # A shell ignores the signal for what it starts in the background, such as these tests.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()

    with pytest.raises(KeyboardInterrupt):
        sink.deliver(deliveries(30))

    timer.join()
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30
    assert list((tmp_path / "kept").iterdir()) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [("put 'x", "the command of exec: cannot be read"), (" ", "exec: needs a command")],
)
def test_a_command_that_is_no_words_is_refused(line: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        command.Command(line, {}, 1)
