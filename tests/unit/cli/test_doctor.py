"""Checks that need a clock or a disk which a test of the whole program does not have."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any, cast

from reconciler.cli.connection import Connection
from reconciler.cli.doctor import Check, Result, Setup, Status, examine, look_at_clock, not_checked
from reconciler.errors import UsageError
from reconciler.service_client.http_wire import Reached
from tests.rows import each_row


def theirs(hours: int) -> str:
    """Return the time of a service whose clock is so many hours ahead."""
    return format_datetime(datetime.now(UTC) + timedelta(hours=hours), usegmt=True)


@each_row(
    ("date", "status", "words"),
    [
        (lambda: theirs(0), Status.OK, "as the service's"),
        (lambda: theirs(-1), Status.FAILED, "s ahead of the service's"),
        (lambda: theirs(1), Status.FAILED, "s behind the service's"),
        (lambda: theirs(0).replace("GMT", "-0000"), Status.OK, "as the service's"),
        (lambda: "", Status.NOT_CHECKED, "not reported by the service"),
        (lambda: "soon", Status.NOT_CHECKED, "not reported by the service"),
    ],
)
def test_the_clock_is_held_against_that_of_the_service(
    date: Callable[[], str], status: Status, words: str
) -> None:
    setup = SimpleNamespace(
        connection=Connection("https://id.example.com"), reached=Reached(date=date())
    )

    result = look_at_clock(cast("Setup", setup))

    assert result.status is status
    assert words in result.text
    assert bool(result.remedy) is (status is Status.FAILED)


def test_what_needs_a_check_that_failed_is_not_made_and_all_others_are() -> None:
    """Whatever a check raises, the reader is told what to do."""

    def fail(failure: Exception) -> Any:
        raise failure

    checks: list[Check] = [
        Check("a", lambda _: fail(UsageError("it is wrong", remedy="Correct it."))),
        Check("b", lambda _: Result("b"), ("a",)),
        Check("c", lambda _: Result("c"), ("b",)),
        Check("d", lambda _: fail(PermissionError(13, "Permission denied", "d.yaml"))),
        Check("e", lambda _: Result("e", status=Status.WARNING, remedy="Soon.")),
        Check("f", lambda _: not_checked("there is none"), ("e",)),
        Check("g", lambda _: Result("g"), ("f",)),
    ]

    lines = [(name, each.status, each.text) for name, each in examine(checks, None).items()]

    assert lines == [
        ("a", Status.FAILED, "it is wrong"),
        ("b", Status.NOT_CHECKED, "see a"),
        ("c", Status.NOT_CHECKED, "see a"),
        ("d", Status.FAILED, "cannot look at d.yaml: Permission denied"),
        ("e", Status.WARNING, "e"),
        ("f", Status.NOT_CHECKED, "there is none"),
        ("g", Status.NOT_CHECKED, "there is none"),
    ]
