"""The records of an apply: typed, complete, on one line each, and without a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.apply.outcome import ApplyReport, Outcome, Status
from reconciler.diagnostics import warning
from reconciler.errors import ServiceError
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Update
from reconciler.report.stream import (
    end_record,
    error_record,
    plan_records,
    report_records,
    start_record,
    version_record,
)
from tests.builders import GREET, NONE, PLACE, WEB, a_plan, an_application, declared, held
from tests.hostile import PAYLOADS, hostile_plan

CHANGE = Update(declared(WEB, an_application(authMethodType=NONE)), held(WEB))
MADE = Outcome(CHANGE, Status.MADE, "7", "7@shop", "file:x")
FAILED = Outcome(CHANGE, Status.FAILED, error=ServiceError("no answer", remedy="Try again."))
REF = {"kind": "OidcApplication", "organization": "acme", "project": "shop", "name": "storefront"}


def test_the_first_record_says_the_version() -> None:
    """A reader that knows another one stops there."""
    record = version_record()

    assert (record["type"], record["version"]) == ("version", "1.0")


def test_a_plan_is_its_findings_its_changes_and_its_summary() -> None:
    """In this order, so that a summary means that all of it was told."""
    plan = a_plan(CHANGE, Create(declared(GREET)), warnings=(warning("W-X", "s", "r"),))

    records = list(plan_records(plan, [warning("V-X", "s", "r")]))

    assert [record["type"] for record in records] == [
        "diagnostic", "diagnostic", "planned_change", "planned_change", "change_summary",
    ]  # fmt: skip
    assert records[0]["diagnostic"]["code"] == "V-X"
    assert records[2]["ref"] == REF
    assert [risk["class"] for risk in records[2]["risks"]] == ["credential-weaker"]
    summary = records[-1]
    assert (summary["operation"], summary["digest"]) == ("plan", plan_digest(plan))
    assert (summary["summary"]["create"], summary["summary"]["update"]) == (1, 1)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (start_record(CHANGE), {"type": "apply_start", "@level": "info", "change": "update"}),
        (
            end_record(MADE),
            {"type": "apply_complete", "@level": "info", "id": "7", "client_id": "7@shop",
             "secret_at": "file:x", "error": None},
        ),
        (
            end_record(FAILED),
            {"type": "apply_errored", "@level": "error", "error": "no answer. Try again."},
        ),
        (
            end_record(Outcome(CHANGE, Status.NOT_TRIED)),
            {"type": "apply_skipped", "@level": "warn", "status": "not_tried"},
        ),
    ],
)  # fmt: skip
def test_each_change_has_a_beginning_and_an_end(
    record: dict[str, Any], expected: dict[str, Any]
) -> None:
    """By its ref, so that a reader can put them together."""
    assert record["ref"] == REF
    assert expected.items() <= record.items()


def test_the_end_of_a_run_counts_and_says_what_else_to_know() -> None:
    """What an interrupted run had left open, above all."""
    note, summary = report_records(
        ApplyReport((MADE, FAILED), notes=(warning("N-X", "s", "r"),), remaining=1), PLACE
    )

    assert note["diagnostic"]["code"] == "N-X"
    assert (summary["type"], summary["operation"]) == ("change_summary", "apply")
    counts = {"made": 1, "failed": 1, "not_tried": 0, "remaining": 1}
    assert summary["summary"] == {**counts, "delivered": 0}
    assert [summary[key] for key in ("service", "instance", "tree")] == [*PLACE[:3]]
    assert summary["@message"] == "1 made, 1 failed, 0 not tried, 1 remaining"


def test_a_run_that_ends_early_says_why() -> None:
    """The last record of a stream without a summary."""
    record = error_record(ServiceError("no answer", remedy="Try again."))

    assert (record["type"], record["@level"]) == ("diagnostic", "error")
    assert record["diagnostic"]["summary"] == "no answer"


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_every_record_is_one_line_of_plain_ascii(payload: str) -> None:
    """Whatever a name holds, a line is a record, and a log that shows it obeys nothing."""
    for record in plan_records(hostile_plan([payload]), []):
        line = json.dumps(record)

        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line) == record
        assert "\n" not in record["@message"]
