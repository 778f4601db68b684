"""Steps of orders: what is asked again, which errors end an order, and which orders wait."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from reconciler.errors import PreconditionFailedError, ServiceError
from reconciler.resources.call import Call
from reconciler.service_client.port import Written
from reconciler.service_client.wire import Answer, Reply, WireRefusal, lost, unsent
from reconciler.service_client.zitadel.steps import (
    CATCH_UP,
    ONCE_MORE,
    TRIES,
    OrderSteps,
    Pause,
    Step,
    Steps,
    changed_since,
    despite_conflicts,
    is_conflict,
    is_unknown_address,
    repeated,
    run,
)
from tests.builders import GREET
from tests.rows import each_row
from tests.unit.service_client.zitadel.driven import driven

CALL, READ = Call("UpdateAction"), Call("GetAction")
DONE = Answer({})
GONE = WireRefusal(5, "no such object")
CONFLICT = WireRefusal(13, "ERROR: restart transaction (SQLSTATE CR000)", unsure=True)
LOST = lost("no answer")


@each_row(
    ("refusal", "is_one"),
    [
        (CONFLICT, True),
        (WireRefusal(2, "duplicate key value violates events2_pkey"), True),
        (WireRefusal(10, "aborted"), True),
        (WireRefusal(10, "aborted", unsure=True), False),
        (WireRefusal(13, "SQLSTATE 400012"), False),
        (WireRefusal(3, "SQLSTATE 40001"), False),
    ],
)
def test_a_conflict_is_told_by_code_and_words(refusal: WireRefusal, *, is_one: bool) -> None:
    """Nothing was written then, unless the answer may come from somewhere on the way."""
    assert is_conflict(refusal) is is_one


@each_row(
    ("replies", "result", "steps"),
    [
        ([DONE], DONE, [CALL]),
        ([LOST, DONE], DONE, [CALL, ONCE_MORE, CALL]),
        ([CONFLICT], CONFLICT, [CALL]),
        ([GONE], GONE, [CALL]),
        ([LOST, GONE], WireRefusal(5, "no such object", unsure=True), [CALL, ONCE_MORE, CALL]),
        ([LOST] * TRIES, LOST, [CALL, ONCE_MORE] * TRIES),
    ],
)
def test_a_call_without_an_answer_is_asked_again(
    replies: list[Reply], result: Reply, steps: list[Step]
) -> None:
    assert driven(repeated(CALL), *replies) == (result, steps)


def look(found: ServiceError | None) -> Generator[Step, Reply, ServiceError | None]:
    """Read the object once, and return this."""
    yield READ
    return found


def test_after_a_conflict_the_object_is_read_before_the_call_is_repeated() -> None:
    result, steps = driven(despite_conflicts(CALL, lambda: look(None)), CONFLICT, DONE, DONE)

    assert (result, steps) == (DONE, [CALL, ONCE_MORE, READ, CALL])


def test_what_another_writer_changed_is_not_written_over() -> None:
    moved = changed_since(GREET)

    result, steps = driven(despite_conflicts(CALL, lambda: look(moved)), CONFLICT, DONE)

    assert (result, steps) == (moved, [CALL, ONCE_MORE, READ])
    assert isinstance(moved, PreconditionFailedError)


def test_conflicts_without_an_end_are_a_refusal() -> None:
    result, steps = driven(despite_conflicts(CALL), *[CONFLICT] * TRIES)

    assert isinstance(result, WireRefusal)
    assert result.message.startswith(f"another writer was quicker {TRIES} times in a row: ERROR")
    assert steps == [CALL, ONCE_MORE] * TRIES


class Turns:
    """A wire that answers every call, and keeps the operations that were sent together."""

    def __init__(self) -> None:
        self.sent: list[list[str]] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        self.sent.append([call.operation for call in calls])
        return [unsent(call.operation) for call in calls]


def steps(name: str, *pauses: Pause) -> Steps:
    """Make a call before each pause and one at the end; return the order's name."""
    for number, pause in enumerate(pauses):
        yield Call(f"{name}{number}")
        yield pause
    reply = yield Call(name)
    assert isinstance(reply, WireRefusal)
    return Written(reply.message, 1)


def failing() -> Steps:
    """Fail as an answer does that cannot be used."""
    yield Call("F")
    raise ServiceError("unsound", remedy="-")


def test_orders_with_the_same_key_are_under_way_one_after_the_other() -> None:
    wire, waits = Turns(), list[Pause]()
    orders = [
        OrderSteps("shop", steps("A", ONCE_MORE)),
        OrderSteps("shop", steps("B")),
        OrderSteps("acme", steps("C", CATCH_UP)),
        OrderSteps("4", failing()),
    ]

    first, second, third, failed = run(wire, orders, waits.append)

    assert (first, second, third) == (Written("A", 1), Written("B", 1), Written("C", 1))
    assert isinstance(failed, ServiceError)
    # B begins when A pauses; everything that pauses does so together.
    assert wire.sent == [["A0", "C0", "F"], ["B"], ["A", "C"]]
    assert waits == [CATCH_UP]


def test_no_orders_are_nothing_sent() -> None:
    wire = Turns()

    assert run(wire, [], list[Pause]().append) == []
    assert wire.sent == []


NOT_THERE = WireRefusal(5, "Not Found", is_code_told=True)


@each_row(
    ("refusal", "is_one"),
    [
        (NOT_THERE, True),
        (replace(NOT_THERE, code=12), True),
        (replace(NOT_THERE, code=7), False),
        (replace(NOT_THERE, is_code_told=False), False),
        (replace(NOT_THERE, unsure=True), False),
        (replace(NOT_THERE, details={"id": "QUERY-1"}), False),
    ],
)
def test_an_address_is_unknown_only_where_the_gateway_says_so(
    refusal: WireRefusal, *, is_one: bool
) -> None:
    assert is_unknown_address(refusal) is is_one
