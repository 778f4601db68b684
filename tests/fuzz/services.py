"""Fuzzing the operations of the service: whole stories in memory, and lists in two stores."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import count
from typing import Any

from reconciler.resources.secret import Secret
from reconciler.resources.strict_json import read_object
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore import sqlite_files
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.sqlite import SqliteEventStore
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import Request, header_values
from reconciler.service.operations.runtime import Identifiers, LeaseClock, Runtime
from reconciler.service.operations.table import operations
from reconciler.service.projections.maintenance import verify
from reconciler.service.transport.http_messages import json_answer
from reconciler.service.transport.json_bodies import read_body
from tests.examples import JWT, SCRIPT, Clock
from tests.fuzz.scratch import scratch
from tests.memory_store import MemoryEventStore
from tests.unit.service.asking import ADMIN

MAX_CALLS = 12
_HEADERS = ("if-match", "idempotency-key", "x-reconciler-lease", "x-reconciler-context",
            "x-reconciler-custody", "x-service-orgid", "x-zitadel-orgid")  # fmt: skip

# Names that stores could compare, sort, escape or fold in ways of their own.
ODD_NAMES = (
    "a", "ab", "a_b", "a%b", "a\\b", "a'b", 'a"b', "a*b", "a?b", "[a]", "100%", "_", "%", "\\",
    " a", "a ", "é", "e\u0301", "Straße", "\u017f", "\u0130", "\u0131", "\u212a", "\ufb01", "日本",
    "🔑", "\uffff", "\ue000", "\U00010000", "\U0010ffff", "\x01", "\x7f", "\ufeff", "\u202e",
    "a\nb", "0", "-1", "A;--", "null",
)  # fmt: skip


class _Open:
    """Seals nothing: sealing has tests of its own, and takes its time."""

    def ready(self) -> None:
        pass

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        return json.dumps([secret.reveal() if secret else None for secret in secrets]).encode()

    def open(self, sealed: bytes) -> Sequence[Secret | None] | None:
        return [None if text is None else Secret(text) for text in json.loads(sealed)]


class Story:
    """Calls of one service, which holds an organization and a project.

    Attributes:
        ids: What was made, in order: ``$0`` stands for the organization, ``$1`` for the project.
    """

    def __init__(self, store: EventStore | None = None, clock: Clock | None = None) -> None:
        clock = clock or Clock()
        self.store = store or MemoryEventStore(clock)
        self._engine = Engine(
            self.store,
            Runtime(
                clock, Identifiers(clock, lambda _: 0), bytes, _Open(), LeaseClock(clock, clock)
            ),
        )
        self._headers: dict[str, list[str]] = {}
        self.ids: list[str] = []
        self.call("AddOrg", {"name": "acme"})
        self._headers = {"x-service-orgid": [self.ids[0]]}
        self.call("AddProject", {"name": "shop"})

    def call(self, operation: str, fields: Mapping[str, Any]) -> dict[str, Any] | Refusal:
        """Carry out a call as ADMIN; whatever it raises but a refusal is a defect."""
        headers, self._headers = self._headers, {}
        try:
            request = Request(operation, fields, caller=ADMIN, **header_values(headers))
        except Refusal as refusal:
            return refusal
        (answer,) = self._engine.run([request])
        assert read_object(json_answer(answer).body) is not None  # as our client does
        if isinstance(answer, Refusal):
            assert answer.code is not Code.INTERNAL
            assert answer.message.isprintable()
        else:
            self.ids += [answer[name] for name in ("id", "appId") if name in answer]
        return answer

    def line(self, line: bytes) -> dict[str, Any] | Refusal | None:
        """Carry out ``Operation {fields}``; ``@name value`` is a header of the next call."""
        for index, made in enumerate(self.ids[:10]):
            line = line.replace(f"${index}".encode(), made.encode())
        word, _, rest = line.partition(b" ")
        if word[:1] == b"@":
            name = word[1:].decode("latin-1")
            if name in _HEADERS:
                self._headers.setdefault(name, []).append(rest.decode("latin-1"))
            return None
        try:
            return self.call(word.decode("latin-1"), read_body(rest))
        except Refusal as refusal:
            return refusal


def calls(data: bytes) -> bool:
    """Tell a story: every call is answered or refused, and the store stays sound."""
    story = Story()
    answers = [story.line(line) for line in data.split(b"\n")[:MAX_CALLS]]
    assert verify(story.store) == []
    return any(isinstance(answer, dict) for answer in answers)


def lists(data: bytes) -> bool:
    """Ask two stores that hold the same: they answer the same, to the byte."""
    memory, sqlite = _two_stories()
    is_answered = False
    for line in data.split(b"\n")[:4]:
        word = line.partition(b" ")[0].decode("latin-1")
        if word[:1] != "@" and (word not in operations() or operations()[word].writes):
            continue
        answers = [story.line(line) for story in (memory, sqlite)]
        told = [_told(answer) for answer in answers]
        assert told[0] == told[1]
        is_answered |= isinstance(answers[0], dict)
    return is_answered


def _told(answer: dict[str, Any] | Refusal | None) -> str:
    return "" if answer is None else json_answer(answer).body.decode()


@cache
def _two_stories() -> tuple[Story, Story]:
    path = scratch() / "lists.db"
    sqlite_files.create(path)
    clocks = Clock(), Clock()
    stories = (
        Story(MemoryEventStore(clocks[0]), clocks[0]),
        Story(SqliteEventStore(path, clocks[1]), clocks[1]),
    )
    for story in stories:
        organization = story.ids[0]
        for name in ODD_NAMES:
            for operation, fields in (
                ("CreateAction", {"script": SCRIPT}),
                ("AddOrgJWTIDP", JWT),
                ("AddProject", {}),
                ("AddOIDCApp", {"projectId": story.ids[1]}),
            ):
                story.line(f"@x-service-orgid {organization}".encode())
                story.call(operation, {"name": name, **fields})
            story.call("AddOrg", {"name": name})
    assert stories[0].ids == stories[1].ids
    assert len(stories[0].ids) > 4 * len(ODD_NAMES)
    return stories


_names = count()
_IN_A_STORY = 500  # calls; afterwards another begins, so that memory does not grow


def service_takes(operation: str, **fields: Any) -> bool:
    """Say whether the service makes an application or action with these fields."""
    number = next(_names)
    story = _story_of(number // _IN_A_STORY)
    needed = {"script": SCRIPT} if operation == "CreateAction" else {"projectId": story.ids[1]}
    story.line(f"@x-service-orgid {story.ids[0]}".encode())
    answer = story.call(operation, {"name": f"n{number}", **needed, **fields})
    if isinstance(answer, Refusal):
        assert answer.code is Code.INVALID_ARGUMENT, answer.message
        assert re.match(rf"(?:{'|'.join(fields)})\b", answer.message), answer.message
        return False
    return True


@lru_cache(maxsize=1)
def _story_of(number: int) -> Story:
    return Story()
