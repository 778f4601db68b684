"""Answers that wait to be read: counted until they are taken, and some are left for each caller."""

from __future__ import annotations

from contextlib import ExitStack

from reconciler.service.transport.unread import UNCOUNTED, Unread

A, B, C = b"a", b"b", b"c"
LONG = 10 * UNCOUNTED


def test_a_caller_leaves_as_much_as_it_has() -> None:
    """However many callers take all they can, the next one still gets an answer."""
    unread = Unread(lambda: None, 12 * LONG)
    with ExitStack() as delivery:
        counts = []
        for caller in (A, B, C):
            count = 0
            while unread.has_room(caller):
                unread.count(caller, LONG, delivery)
                count += 1
            counts.append(count)

        assert counts == [6, 3, 2]


def test_answers_that_are_taken_make_room_again() -> None:
    """And what waits for that is told."""
    told: list[bool] = []
    unread = Unread(lambda: told.append(unread.has_room(A)), LONG)
    with ExitStack() as delivery:
        unread.count(A, LONG, delivery)
        assert not unread.has_room(A)
        assert not unread.has_room(B)

    assert told == [True]
    assert not unread._held


def test_short_answers_are_not_counted() -> None:
    """There are as many of them as connections and calls, at most."""
    unread = Unread(lambda: None, LONG)
    with ExitStack() as delivery:
        for _ in range(100):
            unread.count(A, UNCOUNTED, delivery)

        assert unread.has_room(A)
