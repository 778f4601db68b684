"""The journal: what it was told is there after any crash, and nothing in it can crash a run."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.apply.journal import Intent, Journal, intents_in
from reconciler.errors import LocalFileError, LockHeldError
from tests.builders import WEB, a_ref, declared
from tests.on_disk import watch_the_disk

CREATE = Intent("create", "key-1", WEB, owes_secret=True, spec=declared(WEB).spec)
ODD = Intent(
    "create", "key-2", a_ref(name='日本 "q"\n\x85\u2028'), owes_secret=False, spec={"a": [1, None]},
    prevent_delete=True,
)  # fmt: skip
SECRET = Intent("secret", "key-3", WEB, owes_secret=True, id="7")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a journal is kept; its folder is not there yet."""
    return tmp_path / "state" / "apply.jsonl"


def left_open(path: Path) -> list[Intent]:
    with Journal(path) as journal:
        return list(journal.open_intents)


def test_what_was_begun_and_not_ended_is_open_for_the_next_run(path: Path) -> None:
    """Every field comes back as it was, whatever characters names have."""
    with Journal(path) as journal:
        assert (journal.is_new, journal.open_intents) == (True, ())
        journal.begin([CREATE, ODD, SECRET])
        journal.end(["key-1", "of nobody", "key-1"])
        assert list(journal.open_intents) == [ODD, SECRET]

    with Journal(path) as journal:
        assert (journal.is_new, list(journal.open_intents)) == (False, [ODD, SECRET])


def test_intents_are_found_by_organizations_ignoring_case() -> None:
    """Recovery, the sink and a take-over all look for those of the run's scope."""
    other = Intent("secret", "key-4", a_ref(organization="globex"), owes_secret=True, id="8")

    assert intents_in([CREATE, other, SECRET], ["ACME"]) == [CREATE, SECRET]


def test_a_journal_without_open_intents_is_emptied(path: Path) -> None:
    """It never grows from run to run."""
    with Journal(path) as journal:
        journal.begin([CREATE, SECRET])
        journal.end(["key-1"])
        assert path.stat().st_size > 0
        journal.end(["key-3"])

        assert path.read_bytes() == b""
        journal.begin([SECRET])

    assert left_open(path) == [SECRET]


def test_the_journal_is_for_its_owner_alone(path: Path) -> None:
    """It holds no secret, but it holds what the manifests of a private repository say."""
    with Journal(path) as journal:
        journal.begin([CREATE])

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_what_is_recorded_is_on_the_disk_before_anything_is_sent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut right after a request must not take back that it was about to be sent."""
    seen = watch_the_disk(monkeypatch)
    with Journal(path) as journal:
        assert seen[-1] == ("synced", path.parent.name)
        seen.clear()

        journal.begin([CREATE, SECRET])
        journal.end(["key-1"])

    assert seen == [("synced", path.name)] * 2


def test_nothing_to_record_writes_nothing(path: Path) -> None:
    """An apply with nothing to create leaves the disk in peace."""
    with Journal(path) as journal:
        journal.begin([])
        journal.end([])
        journal.end(["of nobody"])

    assert path.read_bytes() == b""


def lines_of(path: Path) -> list[bytes]:
    with Journal(path) as journal:
        journal.begin([CREATE])
        journal.begin([SECRET])
        journal.begin([ODD])
        journal.end(["key-3"])
    return path.read_bytes().splitlines(keepends=True)


def test_wherever_the_last_write_was_torn_the_lines_before_it_count(path: Path) -> None:
    """A power cut leaves half a line, which was then not promised to anybody."""
    lines = lines_of(path)
    whole, last = b"".join(lines[:-1]), lines[-1]
    for cut in range(len(last)):
        path.write_bytes(whole + last[:cut])

        assert left_open(path) == [CREATE, SECRET, ODD]
        with Journal(path) as journal:
            journal.end(["key-1"])
        assert left_open(path) == [SECRET, ODD], f"cut at {cut}: what came after counts too"


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_damaged_line_in_the_middle_is_named_and_kept(path: Path, number: int) -> None:
    """It may be the only trace of a secret; nobody but its owner may decide to go on without."""
    lines = lines_of(path)
    lines[number - 1] = b"{" + lines[number - 1]
    path.write_bytes(b"".join(lines))

    with pytest.raises(LocalFileError, match=f"line {number} of the journal {path} cannot be read"):
        Journal(path)

    assert path.read_bytes() == b"".join(lines)


GOOD = json.loads(json.dumps({
    "purpose": "create", "key": "k", "ref": list(WEB), "owes_secret": True, "spec": {},
    "prevent_delete": False, "id": "",
}))  # fmt: skip


def begin(**changes: Any) -> str:
    """Return the line of an intent with some fields changed; None leaves one out."""
    fields = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return json.dumps({"begin": fields})


def test_the_line_that_the_hostile_ones_are_made_from_is_good(path: Path) -> None:
    """Otherwise each of them would be refused for the wrong reason."""
    path.parent.mkdir()
    path.write_text(begin() + "\n", encoding="ascii")

    assert [intent.key for intent in left_open(path)] == ["k"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 200_000, id="deep nesting"),
        pytest.param('{"begin":' * 100_000, id="deep nesting of objects"),
        pytest.param("", id="an empty line"),
        pytest.param("7", id="a number"),
        pytest.param("9" * 5000, id="a number of too many digits"),
        pytest.param('"begin"', id="a text"),
        pytest.param('"the end"', id="a text with the word"),
        pytest.param('["begin"]', id="a list with the word"),
        pytest.param("null", id="nothing"),
        pytest.param("NaN", id="no number"),
        pytest.param("{}", id="no key"),
        pytest.param('{"journal": 2}', id="a newer format"),
        pytest.param('{"end": []}', id="an end of a list"),
        pytest.param('{"begin": []}', id="a list for an intent"),
        pytest.param('{"begin": "ref"}', id="a text for an intent"),
        pytest.param(begin(ref=None), id="no ref"),
        pytest.param(begin(key=None), id="no key of the intent"),
        pytest.param(begin(more=1), id="an unknown field"),
        pytest.param(begin(ref=[*WEB, "more"]), id="a ref of five"),
        pytest.param(begin(ref=["Nothing", "a", "b", "c"]), id="an unknown kind"),
        pytest.param(begin(ref=["Action", 1, "", "c"]), id="a number for a name"),
        pytest.param(begin(ref=[[], "a", "b", "c"]), id="a list for a kind"),
        pytest.param(begin(purpose="destroy"), id="an unknown purpose"),
        pytest.param(begin(purpose=[]), id="a list for a purpose"),
        pytest.param(begin(key=1), id="a number for a key"),
        pytest.param(begin(key=[]), id="a list for a key"),
        pytest.param(begin(id=7), id="a number for an id"),
        pytest.param(begin(spec=[]), id="a list for a spec"),
        pytest.param(begin(spec=None), id="a create without a spec"),
        pytest.param(begin(id="7"), id="a create with an id"),
        pytest.param(begin(owes_secret=0), id="no for a flag"),
        pytest.param(begin(prevent_delete=1), id="a number for a flag"),
        pytest.param(begin(purpose="secret", spec=None), id="a secret without an id"),
        pytest.param(begin(ref=["Action", "a", "", "c"]), id="a secret for an action"),
        pytest.param(begin(ref=["Action", "a", "", "\ud800"], owes_secret=False), id="half a text"),
        pytest.param(begin(spec={"script": "\ud800"}), id="half a text in a spec"),
    ],
)
def test_a_journal_that_we_did_not_write_is_refused_by_line(path: Path, line: str) -> None:
    """No content, however made, ends a run with anything but a sentence."""
    path.parent.mkdir()
    path.write_text(f'{{"journal": 1}}\n{line}\n{begin()}\n', encoding="utf-8")

    with pytest.raises(LocalFileError, match="line 2 of the journal"):
        Journal(path)
    with pytest.raises(LocalFileError, match="line 2 of the journal"):
        Journal(path)  # and the lock was given back


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":,0begind\n\\u', max_size=80).map(
    str.encode))  # fmt: skip
@example(content=b'{"journal": 1}\r{"begin": 1}\n')
@example(content=b"\xff\xfe{\x00}\x00\n")
@example(content=b'{"end": "a", "end": "b"}\n')
@example(content=b'{"begin": 1, "end": "a"}\n')
def test_no_content_ends_a_run_with_anything_but_a_sentence(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Files are damaged in ways that nobody thought of."""
    path = tmp_path_factory.getbasetemp() / "hostile.jsonl"
    path.write_bytes(content)
    problem = ""
    try:
        found = left_open(path)
    except LocalFileError as refused:
        problem, found = refused.problem, []

    assert found == []
    assert not problem or problem.endswith(f"of the journal {path} cannot be read")


@pytest.mark.parametrize("key", ["ref", "purpose", "journal"])
def test_of_two_equal_keys_neither_crashes_a_run(path: Path, key: str) -> None:
    """Readers differ about which of the two counts."""
    path.parent.mkdir()
    path.write_text(begin()[:-2] + f', "{key}": 1}}}}\n', encoding="ascii")

    with pytest.raises(LocalFileError, match="line 1 of the journal"):
        Journal(path)


# Files.


def hold(path: Path, told: Connection) -> None:
    """Hold a journal until told otherwise."""
    with Journal(path):
        told.send("held")
        told.recv()


def test_a_journal_in_use_by_another_process_is_not_touched(path: Path) -> None:
    """Two runs that write one journal would each end what the other began."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    other = context.Process(target=hold, args=(path, there))
    other.start()
    assert here.recv() == "held"
    try:
        with pytest.raises(LockHeldError, match=f"another apply of this tree is using {path}"):
            Journal(path)
    finally:
        here.send("enough")
        other.join()

    assert left_open(path) == []


def test_a_journal_behind_a_link_is_refused(tmp_path: Path) -> None:
    """A link could lead a run to empty somebody else's file."""
    target = tmp_path / "precious"
    target.write_text("{}\n", encoding="ascii")
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "link")

    assert target.read_text(encoding="ascii") == "{}\n"


def a_folder(path: Path) -> None:
    path.mkdir()


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [a_folder, a_pipe], ids=["a folder", "a pipe"])
def test_what_is_no_file_is_no_journal(tmp_path: Path, make: Any) -> None:
    """A run must not wait for ever for a pipe."""
    make(tmp_path / "odd")

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "odd")


def test_a_journal_beneath_a_file_is_a_clear_error(tmp_path: Path) -> None:
    """The folder cannot be made."""
    (tmp_path / "file").write_text("", encoding="ascii")

    with pytest.raises(LocalFileError, match="cannot write the journal"):
        Journal(tmp_path / "file" / "apply.jsonl")


FULL = """
import resource, signal, sys
from pathlib import Path
from reconciler.apply.journal import Intent, Journal
from reconciler.errors import LocalFileError
from reconciler.resources.ref import Kind, ResourceRef

ref = ResourceRef(Kind.ACTION, "acme", "", "greet")
small = Intent("create", "small", ref, False, {})
large = Intent("create", "large", ref, False, {"script": "x" * 5000})
path = Path(sys.argv[1])
with Journal(path) as journal:
    journal.begin([small])
    before = path.read_bytes()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 1000, hard))
    try:
        journal.begin([large])
    except LocalFileError as failure:
        print(failure.problem)
    assert path.read_bytes() == before
    assert [intent.key for intent in journal.open_intents] == ["small"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    journal.begin([Intent("create", "next", ref, False, {})])
print([intent.key for intent in Journal(path).open_intents])
"""


def test_a_full_disk_leaves_the_journal_as_it_was(path: Path) -> None:
    """Half a line, gone on with once there is room, would make the journal unreadable."""
    result = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=False
    )

    assert (result.stderr, result.stdout.splitlines()) == (
        "",
        [f"cannot write the journal {path}: File too large", "['small', 'next']"],
    )
