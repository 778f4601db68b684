"""New calls over gRPC take turns by connection, and strangers have few places."""

from __future__ import annotations

from reconciler.service.transport.grpc_front_end import SOCKET
from reconciler.service.transport.grpc_intake import NAMES, NewCalls, NewCallsOfOne
from reconciler.service.transport.limits import Limits

LIMITS = Limits(grpc_new_of_one=3, grpc_new_of_strangers=2, grpc_held_bytes=100)


class Connection:
    """A connection on which calls wait, and begin as soon as they may."""

    def __init__(self, calls: NewCalls) -> None:
        self.all = calls
        self.calls = calls.of_connection(self.go_on, self.end)
        calls.add(self.calls)
        self.begun: list[int] = []
        self.waiting: list[int] = []
        self.has_ended = False

    def ask(self, *streams: int) -> None:
        self.waiting += streams
        self.go_on()

    def go_on(self) -> None:
        while self.waiting and self.all.may_begin(self.calls, self.waiting[0]):
            self.begun.append(self.waiting.pop(0))

    def end(self) -> None:
        self.has_ended = True


def known(calls: NewCalls) -> Connection:
    """Return a connection on which a call had a valid token."""
    connection = Connection(calls)
    connection.ask(1)
    calls.begun(connection.calls.name)
    calls.judged(connection.calls.name, is_known=True)
    return connection


def test_names_stay_as_short_as_the_one_that_grpc_listens_at_and_none_is_used_twice() -> None:
    """They are names of sockets in one folder; a path that is too long ends a connection."""
    calls = NewCalls(LIMITS)
    lasting = Connection(calls).calls.name
    names = [calls.of_connection(print, print).name for _ in range(NAMES + 10)]

    assert {len(name) for name in [lasting, *names]} == {len(SOCKET)}
    assert lasting not in names
    assert len(set(names[: NAMES - 1])) == NAMES - 1


def test_a_connection_has_a_few_new_calls_at_one_time() -> None:
    """One more begins for each that the server has begun."""
    calls = NewCalls(LIMITS)
    caller = known(calls)
    caller.ask(3, 5, 7, 9, 11)
    assert caller.begun == [1, 3, 5, 7]

    calls.begun(caller.calls.name)
    assert caller.begun == [1, 3, 5, 7, 9]


def test_strangers_take_turns_for_their_places() -> None:
    """Each has one call there, and a call of each other one comes before its next."""
    calls = NewCalls(LIMITS)
    strangers = [Connection(calls) for _ in range(3)]
    for stranger in strangers:
        stranger.ask(1, 3, 5)
    assert [stranger.begun for stranger in strangers] == [[1], [1], []]

    for each in (0, 1, 0):
        calls.begun(strangers[each].calls.name)
    assert [stranger.begun for stranger in strangers] == [[1, 3], [1, 3], [1]]


def test_strangers_keep_no_caller_waiting() -> None:
    """However many calls of theirs wait, one with a token finds its places."""
    calls = NewCalls(LIMITS)
    caller = known(calls)
    for _ in range(10):
        Connection(calls).ask(1, 3)
    caller.ask(3, 5)
    assert caller.begun == [1, 3, 5]


def test_a_caller_becomes_a_stranger_with_a_call_that_is_refused() -> None:
    """And is none with the next call that has a token."""
    calls = NewCalls(LIMITS)
    caller = known(calls)
    for is_known in (False, True):
        calls.judged(caller.calls.name, is_known=is_known)
        assert caller.calls.is_known is is_known


def test_a_call_that_ended_before_it_began_gives_its_place_back() -> None:
    """The caller gave it up, or the server knows no such method."""
    calls = NewCalls(LIMITS)
    first, second = Connection(calls), Connection(calls)
    first.ask(1, 3)
    calls.ended(first.calls, 1)
    calls.ended(first.calls, 1)
    assert first.begun == [1, 3]
    second.ask(1)
    calls.ended(second.calls, 5)
    assert second.calls.streams == [1]


def test_a_connection_that_is_lost_gives_its_places_back() -> None:
    """To those that wait; and it waits no longer itself."""
    calls = NewCalls(LIMITS)
    first, second, third, fourth = (Connection(calls) for _ in range(4))
    for stranger in (first, second, third, fourth):
        stranger.ask(1)
    calls.remove(third.calls)
    calls.remove(first.calls)
    calls.begun(first.calls.name)
    calls.judged(first.calls.name, is_known=True)

    assert [each.begun for each in (first, second, third, fourth)] == [[1], [1], [], [1]]


def test_the_connection_of_which_most_waits_is_the_fullest() -> None:
    """It is named once all together is too much."""
    calls = NewCalls(LIMITS)
    small, large = Connection(calls), Connection(calls)
    small.calls.held_bytes, large.calls.held_bytes = 40, 60
    assert calls.fullest() is None
    small.calls.held_bytes = 41

    fullest = calls.fullest()
    assert isinstance(fullest, NewCallsOfOne)
    fullest.end()
    assert large.has_ended
