"""A secret shows itself to nobody but who asks for it by name."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from reconciler.apply.changes import ApplyReport, Outcome, Status
from reconciler.apply.sink import Delivery
from reconciler.plan.model import Create
from reconciler.resources.secret import Secret
from reconciler.service_client.port import Written
from tests.builders import PLACE, WEB, declared
from tests.drawings import report_as_json, report_as_text

VALUE = "geheim" * 10
SECRET = Secret(VALUE)
ANYTHING: Any = SECRET  # so that type checkers let a test do what they forbid
WRITTEN = Written("7", 1, "7@shop", SECRET)
DELIVERY = Delivery(WEB, "7@shop", SECRET)


def fail() -> None:
    raise ValueError(SECRET, WRITTEN)


def in_a_traceback() -> str:
    try:
        fail()
    except ValueError:
        return traceback.format_exc()
    return ""


def in_a_log_line() -> str:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "%s %r", (SECRET, DELIVERY), None)
    return logging.Formatter().format(record)


@pytest.mark.parametrize(
    ("show", "expected"),
    [
        pytest.param(lambda: str(SECRET), "***", id="str"),
        pytest.param(lambda: repr(SECRET), "Secret(***)", id="repr"),
        pytest.param(lambda: f"{SECRET}", "***", id="f-string"),
        pytest.param(lambda: f"{SECRET!r:>20}", "         Secret(***)", id="f-string of the repr"),
        pytest.param(lambda: f"{SECRET:>80}", "***", id="f-string with a width"),
        pytest.param(lambda: format(SECRET, "s"), "***", id="format"),
        pytest.param(lambda: repr([SECRET, {"a": SECRET}]), "[Secret(***), {'a': Secret(***)}]",
                     id="within others"),
    ],
)  # fmt: skip
def test_a_secret_as_text_is_stars(show: Callable[[], str], expected: str) -> None:
    """Also where nobody thought of it: in a message, a debugger, a crash report."""
    assert show() == expected


@pytest.mark.parametrize(
    "show",
    [
        pytest.param(lambda: repr(WRITTEN), id="what the service answered"),
        pytest.param(lambda: repr(DELIVERY), id="what is on its way to the sink"),
        pytest.param(in_a_traceback, id="a traceback"),
        pytest.param(in_a_log_line, id="a log line"),
    ],
)
def test_what_holds_a_secret_does_not_show_it(show: Callable[[], str]) -> None:
    """The value is in none of them; that there is one may be seen."""
    text = show()

    assert VALUE not in text
    assert "***" in text


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda: json.dumps({"secret": SECRET}), id="JSON"),
        pytest.param(lambda: pickle.dumps(SECRET), id="pickle"),
        pytest.param(lambda: pickle.dumps(WRITTEN), id="pickle of what holds it"),
        pytest.param(lambda: copy.deepcopy(SECRET), id="a copy"),
        pytest.param(lambda: asdict(DELIVERY), id="a dataclass as fields"),
        pytest.param(lambda: vars(SECRET), id="its variables"),
        pytest.param(lambda: bytes(ANYTHING), id="bytes"),
        pytest.param(lambda: "Bearer " + ANYTHING, id="a sum"),
        pytest.param(lambda: "".join([*"Bearer ", ANYTHING]), id="a join"),
    ],
)
def test_a_secret_is_not_written_by_accident(write: Callable[[], object]) -> None:
    """What would need its value fails, instead of storing it where it does not belong."""
    with pytest.raises(TypeError) as refused:
        write()

    assert VALUE not in str(refused.value)


def test_reports_show_where_a_secret_is_and_never_the_secret() -> None:
    """Both forms are kept by CI for a long time."""
    outcome = Outcome(Create(declared(WEB)), Status.MADE, "7", "7@shop", "secrets/a.json")
    report = ApplyReport((outcome,))

    for text in (
        report_as_text(report, PLACE),
        json.dumps(report_as_json(report, PLACE)),
        repr(report),
    ):
        assert VALUE not in text
        assert "secrets/a.json" in text


def test_secrets_are_compared_by_value() -> None:
    """So that tests and deliveries can, without anybody seeing them."""
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert SECRET.reveal() == VALUE
