"""Commands that take secrets: one at a time, several at once, and many in one process."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.apply import command
from reconciler.apply.sink import Application, Delivery, Kept, SecretSink, never
from reconciler.apply.sinks import open_sink
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.secret import Secret
from tests.builders import WEB, a_ref

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "RECONCILER_TOKEN": "token", "RECONCILER_TREE": "t"}


def deliveries(count: int) -> list[Delivery]:
    return [
        Delivery(a_ref(name=f"app-{number}"), f"id-{number}", Secret(f"geheim-{number}"))
        for number in range(count)
    ]


HELPER = """
import json, os, pathlib, signal, sys, time
verb, kept = sys.argv[-1], pathlib.Path(sys.argv[1])
assert 'RECONCILER_TOKEN' not in os.environ and 'geheim' not in str(os.environ) + str(sys.argv)
kept.with_suffix('.runs').open('a').write(verb + '\\n')
{before}
for line in sys.stdin:
    one = json.loads(line)
    if verb == 'put':
        {put}
        kept.open('a').write(line)
        print(json.dumps({{'client_id': one['client_id'], 'kept': True}}){flush})
    elif verb == 'has':
        assert 'client_secret' not in one
        has = kept.exists() and one['client_id'] in kept.read_text()
        print(json.dumps({{'client_id': one['client_id'], 'has': has}}))
    else:
        sys.exit(9)
{after}
"""


class Helper:
    """A command that speaks the verbs, with lines of a test's own in it."""

    def __init__(self, folder: Path) -> None:
        self.kept, self.script = folder / "kept.jsonl", folder / "helper.py"
        self.write()

    def write(
        self, *, before: str = "", put: str = "pass", after: str = "", flush: str = ""
    ) -> None:
        self.script.write_text(
            HELPER.format(before=before, put=put, after=after, flush=flush), encoding="utf-8"
        )

    def sink(self, scheme: str = "exec-batch") -> SecretSink:
        words = shlex.join([sys.executable, str(self.script), str(self.kept)])
        return open_sink(f"{scheme}:{words}", ENVIRONMENT)

    @property
    def secrets(self) -> dict[str, str]:
        """Return the secrets it has, by client id."""
        lines = self.kept.read_text(encoding="utf-8").splitlines() if self.kept.exists() else []
        return {one["client_id"]: one["client_secret"] for one in map(json.loads, lines)}

    @property
    def runs(self) -> list[str]:
        return self.kept.with_suffix(".runs").read_text(encoding="ascii").split()


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    """Return a command that does what it should."""
    return Helper(tmp_path)


def is_kept(results: Sequence[Kept | LocalFileError]) -> list[bool]:
    return [isinstance(result, Kept) for result in results]


def test_many_secrets_go_through_one_process(helper: Helper) -> None:
    """A process for each of ten thousand takes minutes."""
    sink, many = helper.sink(), deliveries(500)
    sink.prove()

    results = sink.deliver(many)

    assert set(results) == {Kept(f"exec-batch:{sys.executable}")}
    assert helper.secrets == {f"id-{number}": f"geheim-{number}" for number in range(500)}
    assert helper.runs == ["put", "put"], "one of them is the proof"
    first = json.loads(helper.kept.read_text(encoding="utf-8").splitlines()[0])
    assert list(first) == ["organization", "project", "name", "client_id", "client_secret"]


def test_a_batch_is_shared_by_several_processes(helper: Helper) -> None:
    """Each secret has its own result, in the order of the deliveries."""
    helper.write(put="if one['client_id'] == 'id-4': continue")

    results = helper.sink("exec-batch?parallel=3").deliver(deliveries(7))

    assert is_kept(results) == [number != 4 for number in range(7)]
    assert sorted(helper.secrets) == [f"id-{number}" for number in range(7) if number != 4]
    assert helper.runs == ["put"] * 3


def test_a_command_is_asked_about_all_in_one_process(helper: Helper) -> None:
    """The sink is the witness for ten thousand applications."""
    sink = helper.sink()
    sink.deliver(deliveries(2))
    asked = [Application(a_ref(name=f"app-{number}"), f"id-{number}") for number in (1, 7, 0)]

    assert sink.held(asked) == [True, False, True]
    assert sink.held(asked[1:2])[0] is False
    assert sink.held([]) == []
    assert helper.runs == ["put", "has", "has"]


@pytest.mark.parametrize(
    ("before", "known"),
    [
        pytest.param("sys.exit(2)", None, id="it does not know the verb"),
        pytest.param("print('no JSON'); print('[1]'); print('{}')", True, id="it says more"),
        pytest.param("""print('{"client_id": [1], "has": 3}')""", True, id="of a wrong shape"),
    ],
)
def test_what_a_command_does_not_say_is_not_known(
    helper: Helper, before: str, known: object
) -> None:
    """Neither there nor missing: nothing is concluded from it."""
    sink = helper.sink()
    sink.deliver(deliveries(1))
    helper.write(before=before)

    assert sink.held([Application(a_ref(name="app-0"), "id-0")])[0] is known


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
        pytest.param({"before": "time.sleep(60)"}, "no answer within 1 s", id="it hangs"),
        pytest.param({"after": "sys.stdout.close(); os.close(1); time.sleep(60)"}, "",
                     id="it keeps all and does not end"),
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


def test_a_command_without_the_verb_is_found_before_there_is_a_secret(helper: Helper) -> None:
    """It would take secrets and lose them."""
    helper.write(before="sys.exit(1)")

    with pytest.raises(LocalFileError, match=r"cannot take secrets with the verb put \(exit code"):
        helper.sink().prove()


def test_a_run_that_is_to_stop_gives_nothing_more_to_a_batch(
    helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command is about to keep is waited for, but not for long."""
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.5)
    helper.write(put="time.sleep(0.2)", flush=", flush=True")
    began = time.monotonic()

    def stops() -> bool:
        return len(helper.secrets) >= 2

    results = helper.sink().deliver(deliveries(3000), stops)

    assert time.monotonic() - began < 20
    kept = [d.client_id for d, one in zip(deliveries(3000), results, strict=True)
            if isinstance(one, Kept)]  # fmt: skip
    assert 2 <= len(kept) < 50
    assert set(kept) <= set(helper.secrets)
    last = results[-1]
    assert isinstance(last, LocalFileError)
    assert "was not given to" in last.problem


TAKER = """
import os, pathlib, sys, time
name, kept = os.environ['RECONCILER_SECRET_NAME'], pathlib.Path(sys.argv[1])
assert 'RECONCILER_TOKEN' not in os.environ
began = time.time()
time.sleep(float(sys.argv[2]))
(kept / name).write_text(f'{began} {time.time()} {sys.stdin.read()}')
sys.exit(name == 'app-2')
"""


def a_taker(folder: Path, scheme: str, seconds: float) -> SecretSink:
    """Return a sink that runs a command for each secret; it fails for app-2."""
    script, kept = folder / "taker.py", folder / "kept"
    script.write_text(TAKER, encoding="utf-8")
    kept.mkdir()
    words = [sys.executable, str(script), str(kept), str(seconds)]
    return open_sink(f"{scheme}:{shlex.join(words)}", ENVIRONMENT)


@pytest.mark.parametrize(
    ("scheme", "at_once", "seconds"),
    [
        pytest.param("exec", 1, 0.1, id="one at a time"),
        pytest.param("exec?parallel=4", 4, 0.3, id="four at a time"),
    ],
)
def test_a_command_takes_one_secret_each_time(
    tmp_path: Path, scheme: str, at_once: int, seconds: float
) -> None:
    """Several at once only where the operator allowed it."""
    results = a_taker(tmp_path, scheme, seconds).deliver(deliveries(4))

    assert is_kept(results) == [True, True, False, True]
    times = {}
    for path in (tmp_path / "kept").iterdir():
        began, ended, secret = path.read_text(encoding="utf-8").split()
        assert secret == path.name.replace("app", "geheim")
        times[path.name] = (float(began), float(ended))
    begins = sorted(began for began, _ in times.values())
    first_end = min(ended for _, ended in times.values())
    assert sum(began < first_end for began in begins) <= at_once
    assert at_once == 1 or begins[1] < first_end


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
    ("address", "problem"),
    [
        pytest.param("exec?parallel=0:x", "exec: does not know parallel=0", id="none at once"),
        pytest.param("exec?parallel=65:x", "exec: does not know parallel=65", id="too many"),
        pytest.param("exec?at=once:x", "exec: does not know at=once", id="another setting"),
        pytest.param("exec-batch?x:x", "exec-batch: does not know x", id="of a batch"),
        pytest.param("file?x:x", "file: takes no settings before the colon", id="of a folder"),
        pytest.param(
            "exec-batch:", "exec-batch: is not a destination for secrets", id="no command"
        ),
    ],
)
def test_settings_of_a_command_are_checked(address: str, problem: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError) as refused:
        open_sink(address, ENVIRONMENT)

    assert refused.value.problem == problem


def test_a_question_mark_in_a_command_is_its_own() -> None:
    """An address on the web has one."""
    sink = open_sink("exec:/bin/echo https://vault.example.com/v1?batch=1", ENVIRONMENT)

    sink.prove()
    (kept,) = sink.deliver([Delivery(WEB, "7", Secret("geheim"))], never)
    assert isinstance(kept, Kept)
    assert kept.at == "exec:/bin/echo"
