"""One request, three transports: equal answers, equal refusals, equal events.

The same story is told to three servers that are alike, each over one transport. Ids, times and
secrets differ from server to server, and are compared by the order in which they come up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.service.operations.answers import made_id
from reconciler.service.transport.protobuf import METHODS
from tests.contract.described import check_answer
from tests.contract.normal import Normal
from tests.contract.story import SHARED, STORY, Id, Step
from tests.running import Server, running_server
from tests.wires import WIRES, Answered, Grpc, GrpcWeb, Outcome, Refused, frame, read_web

CREATE_ACTION = "/zitadel.management.v1.ManagementService/CreateAction"


@dataclass(frozen=True)
class Told:
    """What came of a step: in normal form, the events it wrote, and the answer as it came."""

    outcome: Any
    code: int
    events: Sequence[Any]
    answer: Any = field(compare=False)


def tell(server: Server, transport: str) -> dict[str, Told]:
    """Tell the whole story over one transport."""
    known = {
        "organization": server.known.organization,
        "other": server.known.other_organization,
        "project": server.known.project,
    }
    normal, told = Normal(), {}
    position = server.events()[-1].position
    with closing(WIRES[transport](server)) as wire:
        for name, step in STORY.items():
            outcome = wire.call(
                step.operation,
                filled(step.fields, known),
                headers_of(step, server, known),
                step.address,
            )
            if step.names and isinstance(outcome, Answered):
                known[step.names] = made_id({**outcome.fields})
            events = server.events(position)
            position = events[-1].position if events else position
            told[name] = Told(
                normal.of(vars(outcome)),
                outcome.code,
                [
                    (event.type, event.writer, normal.of(json.loads(event.payload)), event.context)
                    for event in events
                ],
                outcome.fields if isinstance(outcome, Answered) else None,
            )
    return told


def filled(value: Any, known: Mapping[str, str]) -> Any:
    """Return fields with the ids that earlier steps brought."""
    if isinstance(value, Id):
        return known[value.name]
    if isinstance(value, Mapping):
        return {name: filled(inner, known) for name, inner in value.items()}
    return [filled(inner, known) for inner in value] if isinstance(value, list) else value


def headers_of(step: Step, server: Server, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what goes beside the fields of a step."""
    headers = [(name, filled(value, known)) for name, value in step.headers]
    if step.by is not None:
        token = server.known.tokens.get(step.by, step.by)
        headers.append(("authorization", f"Bearer {token}"))
    return headers


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Told]]:
    """Tell the story to three servers."""
    with ExitStack() as stack:
        return {
            transport: tell(
                stack.enter_context(running_server(tmp_path_factory.mktemp(transport))), transport
            )
            for transport in WIRES
        }


@pytest.mark.parametrize("name", STORY)
def test_every_transport_gives_the_same_answer(
    stories: dict[str, dict[str, Told]], name: str
) -> None:
    """Whoever changes the client changes nothing else."""
    rest, grpc, web = (stories[transport][name] for transport in WIRES)

    assert rest.code == STORY[name].code, rest.outcome
    assert len(rest.events) == STORY[name].writes
    assert grpc == rest
    assert web == rest


@pytest.mark.parametrize("name", [name for name, step in STORY.items() if step.code == 0])
def test_every_answer_is_as_its_schema_says(stories: dict[str, dict[str, Told]], name: str) -> None:
    """Operations that JSON alone has are held to that by ``test_openapi.py``."""
    check_answer(STORY[name].operation, stories["json"][name].answer)


def test_the_story_has_every_operation() -> None:
    """Well, and as somebody who may not."""
    succeeded = {step.operation for step in STORY.values() if step.code == 0}
    refused = {step.operation for step in STORY.values() if step.code == 16}

    assert succeeded == {row.name for row in SHARED}
    assert refused == {row.name for row in SHARED if row.needs_token}


def both(
    server: Server, path: str, data: bytes, headers: Sequence[tuple[str, str]]
) -> list[Outcome]:
    """Send the bytes of a message over gRPC and over gRPC-web."""
    import grpc

    from tests.wires import refused_by

    method = METHODS[path]
    with closing(Grpc(server)) as one, closing(GrpcWeb(server)) as other:
        try:
            one.bytes(path, data, headers)
            first: Outcome = Answered({})
        except grpc.RpcError as error:
            first = refused_by(error)
        return [first, read_web(other.post(path, frame(data), headers).content, method.answer)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"\xff", "request: must be a message", id="no message at all"),
        pytest.param(b"\x0a\x05a", "request: must be a message", id="a message cut short"),
        pytest.param(b"\x0a\x01\xff", "request: must be a message", id="text that is no UTF-8"),
        pytest.param(b"\xa0\x06\x01", "100: is not the number of a field", id="an unknown field"),
        pytest.param(
            b"\x1a\x06\x10\x80\x94\xeb\xdc\x03", "timeout: must have nanos", id="no duration"
        ),
    ],
)
def test_what_is_no_message_of_the_method_is_refused(
    server: Server, data: bytes, message: str
) -> None:
    """The caller is told where it went wrong, and nothing else."""
    before = server.event_count()

    for outcome in both(server, CREATE_ACTION, data, list(server.bearer().items())):
        assert isinstance(outcome, Refused)
        assert outcome.code == 3
        assert outcome.message.startswith(message)

    assert server.event_count() == before


@pytest.mark.parametrize("data", [b"\xff", b"\xa0\x06\x01"])
def test_strangers_are_not_told_what_is_wrong_with_a_message(server: Server, data: bytes) -> None:
    """Who may not call learns nothing of how to."""
    for outcome in both(server, CREATE_ACTION, data, ()):
        assert outcome.code == 16


def test_a_missing_header_name_is_an_empty_one_over_grpc(server: Server) -> None:
    """Protobuf cannot tell the two apart; JSON can, and refuses (design 5.2)."""
    headers = list(server.bearer().items())
    config = {"jwtEndpoint": "https://a", "issuer": "i", "keysEndpoint": "https://k"}
    made = {}
    for transport, make in WIRES.items():
        with closing(make(server)) as wire:
            made[transport] = wire.call("AddOrgJWTIDP", {"name": transport, **config}, headers)

    assert made["json"].code == 3
    assert made["grpc"].code == made["grpc-web"].code == 0


def test_a_full_page_of_long_objects_has_them_all(server: Server) -> None:
    """A client that counts on as many as it asked for misses none, over any transport."""
    server.put_actions(server.known.other_organization, 1000, 10**15, script="é" * 1950)
    headers = [*server.bearer("stranger").items()]
    for transport in WIRES:
        with closing(WIRES[transport](server)) as wire:
            page = wire.call("ListActions", {"query": {"limit": 1000}}, headers)
        assert isinstance(page, Answered)
        assert len(page.fields["result"]) == 1000
