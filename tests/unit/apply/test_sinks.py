"""Sinks by their address, and commands that take secrets: one at a time, or many in one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from reconciler.apply.folder_sinks import FileSink
from reconciler.apply.sink import Application, Delivery, Kept, never
from reconciler.apply.sinks import KINDS, open_sink
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.secret import Secret
from tests.builders import WEB, a_ref
from tests.rows import each_row
from tests.unit.apply.commands import ENVIRONMENT, Helper, a_taker, deliveries, is_kept


@pytest.fixture
def helper(tmp_path: Path) -> Helper:
    """Return a command that does what it should."""
    return Helper(tmp_path)


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        pytest.param("vault:x", "vault", id="of a kind there is not"),
        pytest.param("file:", "file", id="without a folder"),
        pytest.param("secrets", "secrets", id="a bare folder"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_an_address_that_is_no_sink_is_refused(address: str, scheme: str) -> None:
    """Before anything is sent."""
    with pytest.raises(UsageError) as refused:
        open_sink(address, {})

    assert (refused.value.problem, refused.value.remedy) == (
        f"{scheme}: is not a destination for secrets",
        f"Write one of {KINDS}.",
    )


@pytest.mark.parametrize(
    ("address", "folder"),
    [
        pytest.param("file:~/kept", "/base/ada/kept", id="below the home folder"),
        pytest.param("file:~", "/base/ada", id="the home folder"),
        pytest.param("file:~/", "/base/ada", id="the home folder with a slash"),
        pytest.param("file:./~x/kept", "~x/kept", id="a folder named so"),
        pytest.param("file:a/~/kept", "a/~/kept", id="in the middle"),
    ],
)
def test_a_tilde_in_front_is_the_home_folder(address: str, folder: str) -> None:
    """It stands behind a colon, where no shell replaces it."""
    sink = open_sink(address, {"HOME": "/base/ada"})

    assert isinstance(sink, FileSink)
    assert sink.folder == Path(folder)


@each_row("home", [{}, {"HOME": ""}, {"HOME": "relative"}])
@each_row("address", ["file:~/kept", "age:~/kept?recipient=x"])
def test_a_home_folder_that_is_not_known_is_told(address: str, home: dict[str, str]) -> None:
    """A folder named ~ helps nobody."""
    with pytest.raises(UsageError, match="HOME does not say where that is"):
        open_sink(address, home)


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


def test_a_command_without_the_verb_is_found_before_there_is_a_secret(helper: Helper) -> None:
    """It would take secrets and lose them."""
    helper.write(before="sys.exit(1)")

    with pytest.raises(LocalFileError, match=r"cannot take secrets with the verb put \(exit code"):
        helper.sink().prove()


@pytest.mark.parametrize(
    ("scheme", "at_once", "seconds"),
    [
        pytest.param("exec", 1, 0.02, id="one at a time"),
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


@each_row(
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


def test_a_folder_is_a_sink(tmp_path: Path) -> None:
    """A colon in its name is part of the name."""
    sink = open_sink(f"file:{tmp_path / 'a:b'}", {})
    sink.prove()

    (kept,) = sink.deliver(deliveries(1))

    assert isinstance(kept, Kept)
    assert kept.at == str(tmp_path / "a:b" / "acme.shop.app-0.json")
