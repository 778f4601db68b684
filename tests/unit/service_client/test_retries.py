"""Calls that may be sent again, and the pauses before that."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.resources.call import Call
from reconciler.service_client.retries import asked_pause, may_repeat, pause


@pytest.mark.parametrize(
    ("call", "may"),
    [
        (Call("ListApps"), True),
        (Call("AddOIDCApp"), False),
        (Call("AddOIDCApp", idempotency_key="k"), True),
        (Call("UpdateAction"), False),
        (Call("UpdateAction", expected_sequence=0), True),
        (Call("DeleteAction", expected_sequence=7), True),
        (Call("RegenerateOIDCClientSecret"), False),
        (Call("RenewLease"), True),
        (Call("AcquireLease"), False),
    ],
)
def test_what_counts_twice_is_not_repeated(call: Call, *, may: bool) -> None:
    """Only where the service itself keeps a second one from counting."""
    assert may_repeat(call) is may


NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 7 ", 7.0),
        ("60", 60.0),
        ("61", 60.0),
        ("9999999999", 60.0),
        ("99999999999999999999", 0.0),
        ("-1", 0.0),
        ("1.5", 0.0),
        ("\u0667", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("Thu, 01 Jan 2026 12:00:09 GMT", 9.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("Thu, 01 Jan 2099 12:00:00 GMT", 60.0),
        ("Thu, 01 Jan 2026 12:00:09 -0000", 9.0),
        ("Thu, 99 Foo 2026 12:00:09 GMT", 0.0),
    ],
)
def test_what_a_service_asks_for_is_read_and_bounded(told: str, seconds: float) -> None:
    """Seconds or a date; nonsense is nothing, and nobody is waited for longer than a minute."""
    assert asked_pause(told, NOON) == seconds


def test_pauses_grow_are_random_and_never_shorter_than_asked() -> None:
    """Many clients that fail together must not come back together."""
    longest = [pause(tries, 1.0, 0.0) for tries in range(1, 9)]

    assert longest == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert pause(1000, 1.0, 0.0) == 5.0
    assert pause(5, 0.25, 0.0) == 0.4
    assert pause(5, 0.0, 0.0) == 0.0
    assert pause(1, 0.5, 7.0) == 7.0
