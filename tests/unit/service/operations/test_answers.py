"""Parts of answers: times, details, and the body of a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.kinds.action.operations import action_view
from reconciler.kinds.idp_jwt_config.operations import idp_view, provider_view
from reconciler.kinds.organization.operations import organization_view
from reconciler.kinds.project.operations import project_view
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import (
    Answer,
    details_at,
    details_read,
    error_body,
    made_id,
    timestamp,
)


def a_row(**changes: Any) -> ObjectRow:
    row = ObjectRow(
        "9", "Action", "7", "7", "Greet", "greet", '{"script":"x"}', "c", "", 2,
        1_700_000_000_000_001, 1_600_000_000_000_000, "ci", "", "{}",
    )  # fmt: skip
    return row._replace(**changes)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_000_001, "2023-11-14T22:13:20.000001Z"),
        (1_699_999_999_999_999, "2023-11-14T22:13:19.999999Z"),
    ],
)
def test_a_time_is_told_to_the_microsecond(microseconds: int, text: str) -> None:
    assert timestamp(microseconds) == text


def test_a_create_answers_both_dates_and_a_change_one() -> None:
    assert details_read(a_row()) == {
        "sequence": "1700000000000001",
        "creationDate": "2020-09-13T12:26:40.000000Z",
        "changeDate": "2023-11-14T22:13:20.000001Z",
        "resourceOwner": "7",
    }
    assert set(details_at("7", 1)) == {"sequence", "changeDate", "resourceOwner"}


@pytest.mark.parametrize(
    ("answer", "made"),
    [
        ({"appId": "1", "clientId": "2"}, "1"),
        ({"details": {}, "idpId": "3"}, "3"),
        ({"id": "4"}, "4"),
        ({"details": {}}, ""),
    ],
)
def test_the_id_of_a_new_object_is_found_in_every_answer(answer: Answer, made: str) -> None:
    assert made_id(answer) == made


def test_a_refusal_has_one_detail_with_what_is_known() -> None:
    refusal = Refusal(Code.NOT_FOUND, "there is no such action", "action.missing", field="id")

    assert error_body(refusal) == {
        "code": 5,
        "message": "there is no such action",
        "details": [
            {
                "@type": "type.googleapis.com/zitadel.v1.ErrorDetail",
                "id": "action.missing",
                "message": "there is no such action",
                "field": "id",
            }
        ],
    }


@pytest.mark.parametrize("view", [organization_view, project_view, idp_view, action_view])
def test_an_object_is_answered_with_its_name_and_its_details(view: Any) -> None:
    answer = view(a_row())

    assert (answer["id"], answer["name"]) == ("9", "Greet")
    assert answer["details"] == details_read(a_row())
    assert answer["state"].endswith("_STATE_ACTIVE")


@pytest.mark.parametrize(
    ("view", "members"),
    [
        (organization_view, ["id", "details", "state", "name"]),
        (project_view, ["id", "details", "name", "state"]),
        (idp_view, ["id", "details", "state", "name"]),
        (provider_view, ["id", "details", "state", "name"]),
        (action_view, ["id", "details", "state", "name"]),
    ],
)
def test_the_members_of_an_object_stay_in_their_order(view: Any, members: list[str]) -> None:
    """Answers are compared as text, too."""
    assert list(view(a_row()))[:4] == members
