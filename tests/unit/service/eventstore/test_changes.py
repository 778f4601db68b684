"""Rows that a transaction knows: what is undone with a savepoint, and what is sent."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore.changes import UNKNOWN, Changes, Waiting

A, B, C = ("things", "a"), ("things", "b"), ("others", "c")


@pytest.fixture
def changes() -> Changes:
    return Changes()


def test_a_row_is_as_it_was_left_last(changes: Changes) -> None:
    """A change counts more than what is found, in whatever order the two are noted."""
    assert changes.get(A) is UNKNOWN
    changes.leave(A, "left")
    changes.learn(A, "found")
    changes.begin()
    assert changes.get(A) == "left"

    changes.leave(A, None)

    assert changes.get(A) is None
    assert changes.as_found(A) == "found"


def test_what_is_undone_was_never_changed(changes: Changes) -> None:
    """What the block found stays so."""
    changes.leave(A, 1)
    changes.begin()
    changes.leave(A, 2)
    changes.learn(B, 3)
    changes.undo()

    assert [changes.get(key) for key in (A, B)] == [1, 3]
    assert changes.count() == 1


def test_what_the_database_undoes_too_is_not_known_any_more(changes: Changes) -> None:
    """It gives up the locks under which the block found rows."""
    changes.leave(A, 1)
    changes.begin()
    changes.take()
    changes.is_held = True
    changes.leave(A, 2)
    changes.take(block=True)
    changes.learn(B, 3)
    changes.undo()

    assert [changes.get(key) for key in (A, B)] == [1, UNKNOWN]
    assert changes.as_found(A) == 1


def test_what_is_kept_goes_on(changes: Changes) -> None:
    """Also what was found under locks that the savepoint had."""
    changes.begin()
    changes.is_held = True
    changes.leave(A, 1)
    changes.learn(B, 2)
    changes.keep()

    assert [changes.get(key) for key in (A, B)] == [1, 2]
    assert (changes.is_open, changes.is_held, changes.count()) == (False, False, 1)


def test_rows_are_sent_once_with_what_the_database_had(changes: Changes) -> None:
    """What came before a savepoint is sent before it."""
    changes.learn(A, None)
    changes.leave(A, 1)
    changes.begin()
    assert not changes.has_block()
    changes.leave(A, 2)
    changes.leave(C, 3)
    assert changes.has_block()
    assert changes.count() == 3

    assert changes.take() == [Waiting(A, 1, None)]
    assert changes.take(block=True) == [Waiting(A, 2, 1), Waiting(C, 3, UNKNOWN)]

    assert changes.count() == 0
    assert changes.take() == changes.take(block=True) == []
    assert changes.get(A) == changes.as_found(A) == 2


def test_what_is_forgotten_is_looked_up_again_but_for_what_was_changed(changes: Changes) -> None:
    """How a change is sent depends on what the database has."""
    for key in (A, B, C):
        changes.learn(key, "found")
    changes.leave(A, "left")
    changes.forget("things")

    assert changes.get(B) is UNKNOWN
    assert changes.as_found(A) == "found"
    assert changes.get(C) == "found"

    changes.forget_one(C)

    assert changes.get(C) is UNKNOWN


def test_the_rows_there_are_leave_out_what_is_missing(changes: Changes) -> None:
    """Whether it was found so or removed."""
    changes.learn(A, 1)
    changes.learn(B, None)
    changes.begin()
    changes.leave(A, None)
    changes.leave(("things", "d"), 2)
    changes.leave(C, 3)

    assert changes.there_are("things") == [("things", "d")]
