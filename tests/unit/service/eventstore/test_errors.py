"""Errors of a store: which of them another try may undo."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore import errors
from reconciler.service.eventstore.errors import (
    ConflictError,
    NameTakenError,
    StoreBusyError,
    StoreConflictError,
    StoreDamagedError,
    StoreError,
    StoreMissingError,
    StoreUnreachableError,
    StoreUnusableError,
    StreamConflictError,
)
from tests.rows import each_row


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (StoreMissingError, (StoreUnusableError, StoreError)),
        (StoreDamagedError, (StoreUnusableError, StoreError)),
        (StoreUnreachableError, (StoreError,)),
        (StoreConflictError, (StoreBusyError, ConflictError)),
        (StreamConflictError, (ConflictError,)),
        (NameTakenError, (ConflictError,)),
    ],
)
def test_an_error_is_handled_as_what_it_is(
    error: type[Exception], bases: tuple[type[Exception], ...]
) -> None:
    assert issubclass(error, bases)
    assert all(issubclass(error, base) for base in bases)


@each_row(
    "error",
    [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, StoreError)
    ],
)
def test_every_error_of_a_store_says_what_to_do(error: type[StoreError]) -> None:
    made = error("the store is away", "Wait.")

    assert (str(made), made.remedy) == ("the store is away", "Wait.")
    assert made.problem == str(made)
