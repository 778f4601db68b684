"""What is sent of a run: order, drops, watching runs, restarts, and nothing that is secret."""

from __future__ import annotations

import base64
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from reconciler.cli.run.memory import Purpose, read_noticed, write_noticed
from reconciler.cli.run.notify import MOST_WAITING, Message, Notices, Sender, key_of, signed
from reconciler.cli.run.status import Status
from reconciler.continuous.decision import Condition, Hold
from reconciler.continuous.notices import Known
from reconciler.errors import UsageError
from reconciler.resources.secret import Secret
from reconciler.service_client.endpoint import Posted
from reconciler.service_client.http_wire import Poster
from tests.receiver import KEY
from tests.rows import each_row

OLD, NEW = "a" * 40, "b" * 40
PURPOSE = Purpose(
    "https://u:hunter2@git.example.com/a.git", "refs/heads/main", "https://id", "e", ""
)
STATUS = Status(PURPOSE, tree="default", seen=OLD, applied=OLD, looked_at=1)
C = Condition


@dataclass
class Posts(Poster):
    """A way to a receiver, which is held up until ``free`` is set."""

    status: int = 204
    bodies: list[Any] = field(default_factory=list)
    free: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)

    def post(self, headers: Mapping[str, str], body: bytes) -> Posted:
        self.began.set()
        self.free.wait(30)
        Webhook(KEY).verify(body, dict(headers))
        self.bodies.append(json.loads(body))
        return Posted(self.status)

    def close(self) -> None:
        """Nothing is open."""

    @property
    def types(self) -> list[str]:
        return [each["type"] for each in self.bodies]


@pytest.fixture
def posts() -> Posts:
    return Posts()


@pytest.fixture
def start(tmp_path: Path, posts: Posts) -> Iterator[Callable[[], Notices]]:
    """Start the notices of a run with the same state each time."""
    started: list[Notices] = []

    def begin() -> Notices:
        made = Notices(tmp_path, PURPOSE, [Sender(posts, "host", key_of(KEY, "file"))])
        started.append(made)
        return made

    yield begin
    posts.free.set()
    for each in started:
        each.close()


def on(*conditions: Condition, **more: Any) -> Status:
    return replace(STATUS, conditions=conditions, **more)


def test_a_round_does_not_wait_and_order_is_kept(
    start: Callable[[], Notices], posts: Posts
) -> None:
    notices = start()
    notices.look(on(), watches=False)
    notices.look(on(C.DRIFTED), watches=False)
    notices.look(on(C.DRIFTED, C.OWED), watches=False)
    assert notices.counts() == Counter(waiting=3)

    posts.free.set()
    notices.close()

    assert posts.types == ["run.began", "drifted.began", "owed.began"]
    assert notices.counts() == Counter(sent=3)


def test_where_too_many_wait_the_oldest_is_dropped(posts: Posts) -> None:
    sender = Sender(posts, "host", key_of(KEY, "file"))
    sender.put(Message("msg", "first", b'{"type":"first"}', 1e12))
    posts.began.wait(30)
    for n in range(MOST_WAITING + 2):
        sender.put(Message("msg", "t", json.dumps({"type": n}).encode(), 1e12))
    posts.free.set()
    sender.close()

    assert posts.types == ["first", *range(2, MOST_WAITING + 2)]
    assert sender.counts() == Counter(sent=MOST_WAITING + 1, failed=2)


def test_after_its_time_a_notice_is_given_up(posts: Posts) -> None:
    posts.status = 500
    posts.free.set()
    sender = Sender(posts, "host", key_of(KEY, "file"))
    sender.put(Message("msg", "old", b'{"type":"old"}', 0.0))
    while sender.counts()["waiting"]:
        threading.Event().wait(0.01)
    posts.status = 204
    sender.put(Message("msg", "new", b'{"type":"new"}', 1e12))
    sender.close()

    assert posts.types == ["old", "new"]
    assert sender.counts() == Counter(sent=1, failed=1)


def test_at_the_end_no_notice_overtakes_one_that_failed(posts: Posts) -> None:
    posts.status = 500
    sender = Sender(posts, "host", key_of(KEY, "file"))
    sender.put(Message("msg", "first", b'{"type":"first"}', 1e12))
    sender.put(Message("msg", "second", b'{"type":"second"}', 1e12))
    sender.end()
    posts.free.set()
    sender.close()

    assert {*posts.types} == {"first"}
    assert sender.counts() == Counter(waiting=2)


def test_a_restart_says_only_what_changed(start: Callable[[], Notices], posts: Posts) -> None:
    """Before the first look the conditions are those of before, whatever fails."""
    posts.free.set()
    first = start()
    first.look(on(C.DRIFTED, C.BLOCKED), watches=False)
    first.close()

    second = start()
    second.look(Status(PURPOSE, conditions=(C.FAILING,)), watches=False)
    second.look(on(C.DRIFTED), watches=False)
    second.close()

    assert posts.types == ["run.began", "failing.began", "blocked.ended", "failing.ended"]


def test_what_was_not_sent_is_said_after_a_kill(
    start: Callable[[], Notices], posts: Posts, tmp_path: Path
) -> None:
    """The state that was noticed is kept only once all of it was sent."""
    killed = start()
    killed.look(on(C.DRIFTED), watches=False)
    assert read_noticed(tmp_path) is None
    assert posts.began.wait(30)

    posts.free.set()
    again = start()
    again.look(on(C.DRIFTED), watches=False)
    again.close()
    killed.close()

    assert posts.types == ["run.began"] * 2
    assert read_noticed(tmp_path) == Known(OLD, OLD, (C.DRIFTED,))


def test_a_run_that_watches_says_nothing_until_it_leads(
    start: Callable[[], Notices], posts: Posts
) -> None:
    posts.free.set()
    notices = start()
    notices.look(on(C.DRIFTED, C.WATCHING), watches=True)
    notices.look(on(C.WATCHING), watches=False)
    assert notices.counts() == Counter()
    notices.look(on(C.OWED), watches=False)
    notices.look(on(C.OWED, C.WATCHING), watches=True)
    notices.look(on(C.OWED), watches=False)
    notices.close()

    assert posts.types == ["run.began", "run.began"]


def test_no_text_of_others_is_in_a_notice(start: Callable[[], Notices], posts: Posts) -> None:
    """Words of holds and failures may hold values; names are shown without control characters."""
    hold = Hold(Condition.INVALID, "value hunter2", "write hunter2")
    status = on(
        C.INVALID, C.FAILING, holds=(hold,), failures=("token hunter2",), tree="a\x1b\u202eb"
    )
    posts.free.set()
    notices = start()
    notices.look(status, watches=False)
    notices.close()

    (body,) = posts.bodies
    assert "hunter2" not in json.dumps(body)
    assert body["data"]["tree"].isprintable()
    assert body["data"]["conditions"] == ["invalid", "failing"]


@each_row(
    "content",
    [b"", b"[", b"{}", b'{"seen": "x", "applied": "", "conditions": []}',
     b'{"seen": "", "applied": "", "conditions": ["odd"]}', b"[" * 60000, b"\xff"],
)  # fmt: skip
def test_a_damaged_state_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "noticed.json").write_bytes(content)

    assert read_noticed(tmp_path) is None


def test_a_known_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    known = Known(NEW, OLD, (C.PENDING, C.BLOCKED))
    write_noticed(tmp_path, known)
    assert read_noticed(tmp_path) == known
    write_noticed(tmp_path, None)
    assert read_noticed(tmp_path) is None


def a_key(size: int, prefix: str = "whsec_") -> str:
    return f"{prefix}{base64.b64encode(b'x' * size).decode()}\n"


@each_row("text", [a_key(24), a_key(64), a_key(32, "")])
def test_a_key_is_base64_with_its_prefix_or_without(text: str) -> None:
    assert signed(key_of(text, "file"), Message("id", "t", b"{}", 0.0), 1)


@each_row("text", [a_key(23), a_key(65), "", "whsec_", "whsec_no base64", "whsec_\xe9", "\0"])
def test_a_key_of_another_form_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match=r"^file holds no key of notices$"):
        key_of(text, "file")


def test_a_key_does_not_show_itself() -> None:
    assert repr(key_of(KEY, "file")) == repr(Secret(""))
