"""The sink as a witness: secrets that are not in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.apply.missing_secrets import (
    declared_applications,
    missing_secrets,
    unanswered_secrets,
)
from reconciler.apply.outcome import Outcome, Status
from reconciler.apply.sink import Application
from reconciler.plan.model import Create, Delete, Update
from reconciler.resources.secret import Secret
from reconciler.service_client.port import Written
from tests.builders import (
    GREET,
    HOUSE,
    NONE,
    WEB,
    FakeSink,
    a_plan,
    a_ref,
    an_application,
    declared,
    held,
    observed,
)

ONE = Application(WEB, "7")


@dataclass
class Sink(FakeSink):
    """A sink that gives one answer about every application."""

    answer: bool | None

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return the answer for each."""
        return [self.answer for _ in applications]


@pytest.mark.parametrize(
    ("answer", "made", "required", "codes"),
    [
        (True, ["7"], True, []),
        (False, [], False, [("warning", "SECRET-NOT-IN-SINK")]),
        (False, ["7"], False, [("error", "SECRET-NOT-IN-SINK")]),
        (False, [], True, [("error", "SECRET-NOT-IN-SINK")]),
        (None, ["7"], False, []),
        (None, [], True, [("error", "SECRET-SINK-CANNOT-TELL")]),
    ],
)
def test_what_is_missing_is_an_error_where_it_was_made_or_is_required(
    made: list[str], codes: list[tuple[str, str]], *, answer: bool | None, required: bool
) -> None:
    found = missing_secrets([ONE], made, Sink(answer), required=required)

    assert [(str(each.severity), each.code) for each in found] == codes


@pytest.mark.parametrize(
    ("change", "result", "answer", "missing"),
    [
        (Create(declared()), Written("7", 1, "7"), False, True),
        (Create(declared()), Written("7", 1, "7"), True, False),
        (Create(declared()), Written("7", 1, "7", Secret("x")), False, False),
        (Create(declared()), OSError(), False, False),
        (Create(declared(GREET)), Written("7", 1), False, False),
        (Update(declared(), held()), Written("7", 1, "7"), False, False),
    ],
)
def test_a_create_without_its_secret_is_an_error(
    change: Any, result: object, *, answer: bool, missing: bool
) -> None:
    """Its answer was lost, and the service keeps none."""
    found = [each.is_error for each in unanswered_secrets([change], [result], Sink(answer))]

    assert found == [True] * missing


def test_without_a_sink_a_lost_secret_is_an_error_too() -> None:
    found = unanswered_secrets([Create(declared())], [Written("7", 1, "7")], None)

    assert [each.ref for each in found] == [WEB]


def test_applications_are_taken_as_they_are_after_the_run() -> None:
    """One that failed to change keeps the way it signs in; one of a shared name is left out."""
    kept, public = a_ref(name="kept"), an_application(authMethodType=NONE)
    new, gone, failed = a_ref(name="new"), a_ref(name="gone"), a_ref(name="failed")
    plan = a_plan(in_step=(WEB, kept, GREET))
    outcomes = [
        Outcome(Create(declared(new)), Status.MADE, client_id="n"),
        Outcome(Delete(held(gone)), Status.MADE),
        Outcome(Update(declared(failed, public), held(failed)), Status.FAILED),
        Outcome(Update(declared(GREET), held(GREET)), Status.MADE),
    ]
    seen = observed(*HOUSE, held(WEB), held(kept), held(GREET))

    found = declared_applications(plan, seen, outcomes)

    assert [each.ref for each in found] == [WEB, kept, new, failed]
    assert found[2].client_id == "n"
