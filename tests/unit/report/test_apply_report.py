"""What came of a plan, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reconciler.apply.changes import ApplyReport, Delivered, Outcome, Status
from reconciler.diagnostics import warning
from reconciler.errors import AlreadyExistsError, LocalFileError, ServiceError
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Adopt, Create, Delete, Update
from reconciler.report.apply_report import (
    end_record,
    error_record,
    progress_bar,
    start_record,
    version_record,
)
from tests.builders import (
    GREET,
    NONE,
    PARTNER,
    PLACE,
    WEB,
    a_plan,
    a_ref,
    an_application,
    declared,
    held,
)
from tests.drawings import plan_records, report_as_json, report_as_text, report_records
from tests.hostile import COMMANDS, hostile_plan, payloads
from tests.rows import each_row

CREATED = Outcome(
    Create(declared(WEB)), Status.MADE, "7", "7@shop", "secrets/acme.shop.storefront.json"
)
UPDATED = Outcome(Update(declared(GREET), held(GREET)), Status.MADE, "8")
ADOPTED = Outcome(Adopt(declared(PARTNER), held(PARTNER)), Status.MADE, "9")
DELETED = Outcome(Delete(held(PARTNER)), Status.MADE, "9")
FAILED = Outcome(
    Create(declared(a_ref(name="admin"))),
    Status.FAILED,
    error=AlreadyExistsError("the name is taken", remedy="Choose another."),
)
NO_SPACE = Outcome(
    Create(declared(PARTNER)),
    Status.FAILED,
    error=ServiceError("the store is full", remedy="Make room."),
)
SKIPPED = Outcome(Delete(held(WEB)), Status.NOT_TRIED)
NOTE = warning("SECRET-MOVED", "a secret was moved", "It is in the sink.", ref=WEB)
HOSTILE = Outcome(
    Create(declared(a_ref(name="a\x1b[2J"))),
    Status.FAILED,
    error=AlreadyExistsError("taken by ##[x\n::error::", remedy="::stop"),
)


HEAD = "Service sqlite:x.db (instance instance-1), tree default\n\n"


@each_row(
    ("report", "text"),
    [
        pytest.param(
            ApplyReport((CREATED, UPDATED, DELETED), remaining=0),
            "created  OidcApplication acme/shop/storefront  client id 7@shop  "
            "secret in secrets/acme.shop.storefront.json\n"
            "updated  Action acme/greet\n"
            "deleted  IdpJwtConfig acme/partner\n"
            "\n"
            "Apply complete! 1 created, 1 updated, 1 deleted. 0 remaining.",
            id="all made",
        ),
        pytest.param(
            ApplyReport((ADOPTED,), remaining=2),
            "adopted  IdpJwtConfig acme/partner\n"
            "\n"
            "Apply incomplete. 0 created, 0 updated, 1 adopted, 0 deleted; 0 failed, 0 not tried. "
            "2 remaining.",
            id="adopted, and the service made something else of it",
        ),
        pytest.param(
            ApplyReport((UPDATED, FAILED, SKIPPED), remaining=2),
            "failed  OidcApplication acme/shop/admin: the name is taken\n"
            "    Choose another.\n"
            "updated  Action acme/greet\n"
            "\n"
            "Apply incomplete. 0 created, 1 updated, 0 deleted; 1 failed, 1 not tried. "
            "2 remaining.",
            id="failures first; what was not tried is a count",
        ),
        pytest.param(
            ApplyReport((UPDATED, SKIPPED), interrupted=2),
            "updated  Action acme/greet\n"
            "\n"
            "Apply interrupted. 0 created, 1 updated, 0 deleted; 0 failed, 1 not tried.",
            id="interrupted: what remains was not looked at",
        ),
        pytest.param(
            ApplyReport((), (NOTE,), remaining=0),
            "warning SECRET-MOVED: a secret was moved\n"
            "    It is in the sink.\n"
            "\n"
            "Apply complete! 0 created, 0 updated, 0 deleted. 0 remaining.",
            id="what an earlier run had left open comes first",
        ),
        pytest.param(
            ApplyReport(
                (FAILED, UPDATED, replace(FAILED, change=Create(declared(GREET))), NO_SPACE)
            ),
            "failed  OidcApplication acme/shop/admin\n"
            "failed  Action acme/greet: the name is taken\n"
            "    Choose another.\n"
            "failed  IdpJwtConfig acme/partner: the store is full\n"
            "    Make room.\n"
            "updated  Action acme/greet\n"
            "\n"
            "Apply incomplete. 0 created, 1 updated, 0 deleted; 3 failed, 0 not tried.",
            id="a reason that several failures share is said once",
        ),
        pytest.param(
            ApplyReport((HOSTILE,), remaining=1),
            "failed  OidcApplication acme/shop/a\\u{1b}[2J: taken by ##\\u{5b}x\\n::error::\n"
            "    :\\u{3a}stop\n"
            "\n"
            "Apply incomplete. 0 created, 0 updated, 0 deleted; 1 failed, 0 not tried. "
            "1 remaining.",
            id="what a service says commands nobody",
        ),
    ],
)
def test_a_report_says_what_was_done_and_what_was_not(report: ApplyReport, text: str) -> None:
    """Whoever reads it knows whether anything is left to do, and where the secrets are."""
    assert report_as_text(report, PLACE) == HEAD + text


def test_a_folded_report_counts_what_was_made_above_fifty() -> None:
    """Failures stay in sight on a terminal."""
    report = ApplyReport((*[UPDATED] * 53, FAILED))

    folded = report_as_text(report, PLACE, folded=True).splitlines()

    assert folded[2:4] == [
        "failed  OidcApplication acme/shop/admin: the name is taken",
        "    Choose another.",
    ]
    assert folded.count("updated  Action acme/greet") == 50
    assert folded[54] == "and 3 more. Show them with --full."
    assert report_as_text(report, PLACE).count("updated  Action") == 53


def test_a_folded_report_counts_notes_of_one_code_above_ten() -> None:
    """As a plan does with its findings."""
    report = ApplyReport((FAILED,), notes=(warning("N-X", "kept", "Look."),) * 11, remaining=1)

    folded = report_as_text(report, PLACE, folded=True)

    assert folded.count("warning N-X: kept\n    Look.\n") == 3
    assert "\nand 8 more of N-X. Show them with --full.\n" in folded
    assert report_as_text(report, PLACE).count("warning N-X") == 11


def ref(kind: str, name: str, project: str = "") -> dict[str, str]:
    return {"kind": kind, "organization": "acme", "project": project, "name": name}


def outcome(**fields: Any) -> dict[str, Any]:
    return {"id": None, "client_id": None, "secret_at": None, "error": None, **fields}


def test_a_report_is_json_with_stable_keys() -> None:
    """Scripts take ids and places of secrets from here."""
    deliveries = (
        Delivered(WEB, "7", "7@shop", "secrets/web.json"),
        Delivered(WEB, "8", "8@shop", error=LocalFileError("it is full", remedy="Make room.")),
    )
    report = ApplyReport((CREATED, FAILED, SKIPPED), (NOTE,), remaining=2, delivered=deliveries)

    found = report_as_json(report, PLACE)

    assert json.loads(json.dumps(found)) == found == {
        "format_version": "1.0",
        "service": "sqlite:x.db",
        "instance": "instance-1",
        "tree": "default",
        "run": None,
        "summary": {
            "made": 1,
            "failed": 1,
            "not_tried": 1,
            "untouched": 0,
            "left_out": 0,
            "remaining": 2,
            "delivered": 1,
        },
        "outcomes": [
            outcome(
                ref=ref("OidcApplication", "storefront", "shop"),
                change="create",
                status="made",
                id="7",
                client_id="7@shop",
                secret_at=CREATED.secret_at,
            ),
            outcome(
                ref=ref("OidcApplication", "admin", "shop"),
                change="create",
                status="failed",
                error="the name is taken. Choose another.",
            ),
            outcome(
                ref=ref("OidcApplication", "storefront", "shop"),
                change="delete",
                status="not_tried",
            ),
        ],
        "delivered": [
            {
                "ref": ref("OidcApplication", "storefront", "shop"),
                "id": "7",
                "client_id": "7@shop",
                "secret_at": "secrets/web.json",
                "error": None,
            },
            {
                "ref": ref("OidcApplication", "storefront", "shop"),
                "id": "8",
                "client_id": "8@shop",
                "secret_at": None,
                "error": "it is full. Make room.",
            },
        ],
        "diagnostics": [
            {
                "severity": "warning",
                "code": "SECRET-MOVED",
                "summary": "a secret was moved",
                "remedy": "It is in the sink.",
                "file": None,
                "line": None,
                "column": None,
            }
        ],
    }  # fmt: skip


def test_a_report_names_what_was_delivered_and_what_is_owed_still() -> None:
    """A person looks for the secret where it says."""
    report = ApplyReport(
        (),
        remaining=0,
        delivered=(
            Delivered(WEB, "7", "7@shop", "secrets/web.json"),
            Delivered(WEB, "8", "8@shop", error=LocalFileError("it is full", remedy="Make room.")),
        ),
    )

    assert report_as_text(report, PLACE).partition("\n\n")[2] == (
        "still owed  OidcApplication acme/shop/storefront: it is full\n    Make room.\n"
        "delivered  OidcApplication acme/shop/storefront  client id 7@shop  "
        "secret in secrets/web.json\n\n"
        "Apply incomplete. 0 created, 0 updated, 0 deleted; 1 of 2 owed secrets delivered; "
        "0 failed, 0 not tried. 0 remaining."
    )


@each_row(
    ("done", "total", "seconds", "columns", "line"),
    [
        (300, 1200, 2.0, 80, "applying [######------------------] 300 of 1200, 150/s, 6 s left"),
        (0, 10, 3.0, 80, "applying [------------------------] 0 of 10"),
        (5, 10, 0.2, 80, "applying [############------------] 5 of 10"),
        (10, 10, 1.0, 80, "applying [########################] 10 of 10, 10/s, 0 s left"),
        (1, 10, 4.0, 80, "applying [##----------------------] 1 of 10, 36 s left"),
        (300, 1200, 2.0, 40, "applying 300 of 1200, 150/s, 6 s left"),
        (300, 1200, 2.0, 20, "applying 300 of 120"),
        (0, 0, 1.0, 80, "applying [########################] 0 of 0"),
    ],
)
def test_a_bar_fits_the_terminal(
    done: int, total: int, seconds: float, columns: int, line: str
) -> None:
    """A line that wraps could not be written over."""
    assert progress_bar(done, total, seconds, columns) == line
    assert len(line) < columns


CHANGE = Update(declared(WEB, an_application(authMethodType=NONE)), held(WEB))
MADE = Outcome(CHANGE, Status.MADE, "7", "7@shop", "file:x")
ERRORED = Outcome(CHANGE, Status.FAILED, error=ServiceError("no answer", remedy="Try again."))
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
            end_record(ERRORED),
            {"type": "apply_errored", "@level": "error", "error": "no answer. Try again."},
        ),
        (
            end_record(Outcome(CHANGE, Status.NOT_TRIED)),
            {"type": "apply_skipped", "@level": "warn", "status": "not_tried"},
        ),
        (
            end_record(Outcome(CHANGE, Status.UNTOUCHED)),
            {"type": "apply_skipped", "@level": "warn", "status": "untouched"},
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
        ApplyReport((MADE, ERRORED), notes=(warning("N-X", "s", "r"),), remaining=1), PLACE
    )

    assert note["diagnostic"]["code"] == "N-X"
    assert (summary["type"], summary["operation"]) == ("change_summary", "apply")
    counts = {"made": 1, "failed": 1, "not_tried": 0, "remaining": 1}
    assert summary["summary"] == {**counts, "untouched": 0, "delivered": 0, "left_out": 0}
    assert [summary[key] for key in ("service", "instance", "tree")] == [*PLACE[:3]]
    assert summary["@message"] == "1 made, 1 failed, 0 not tried, 1 remaining"


def test_a_run_that_ends_early_says_why() -> None:
    """The last record of a stream without a summary."""
    record = error_record(ServiceError("no answer", remedy="Try again."))

    assert (record["type"], record["@level"]) == ("diagnostic", "error")
    assert record["diagnostic"]["summary"] == "no answer"


@pytest.mark.parametrize("payload", payloads(*COMMANDS))
def test_every_record_is_one_line_of_plain_ascii(payload: str) -> None:
    """Whatever a name holds, a line is a record, and a log that shows it obeys nothing."""
    for record in plan_records(hostile_plan([payload]), []):
        line = json.dumps(record)

        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line) == record
        assert "\n" not in record["@message"]
