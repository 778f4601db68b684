"""Secrets in custody: owed until their delivery is acknowledged, or until they are lost."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.secret import Secret
from reconciler.service.eventstore.rows import OwedRow
from reconciler.service.operations.custody import AT_ONCE, is_lost, with_secret_shown
from tests.unit.service.asking import Asking

OWED = OwedRow("7", "1", 5, "ci", "default", "run", "9", 0, expires_at=100)


@pytest.mark.parametrize(
    ("row", "now", "lost"),
    [(OWED, 99, False), (OWED, 100, True), (OWED._replace(seal=None), 0, True)],
)
def test_a_secret_is_lost_once_its_time_is_over(row: OwedRow, now: int, *, lost: bool) -> None:
    assert is_lost(row, now) is lost


def test_secrets_become_text_wherever_an_answer_has_them() -> None:
    secret = {"id": "1", "clientSecret": Secret("s")}

    assert with_secret_shown(secret) == {"id": "1", "clientSecret": "s"}
    assert with_secret_shown({"secrets": [secret, {"id": "2"}]}) == {
        "secrets": [{"id": "1", "clientSecret": "s"}, {"id": "2"}]
    }
    assert with_secret_shown({"id": "1"}) == {"id": "1"}


def owed(ask: Asking) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask("ListOwedSecrets", organizationId=ask.organization)[
        "owedSecrets"
    ]
    return found


def test_a_claimed_secret_stays_owed_until_it_is_acknowledged(ask: Asking) -> None:
    made = ask.an_app(custody="run", context='{"tree": "shop"}')
    lease = ask("AcquireLease", named="acme", holder="me", seconds=60)["lease"]
    (row,) = owed(ask)
    assert (row["id"], row["run"], row["tree"]) == (made["appId"], "run", "shop")
    named = {"organizationId": ask.organization, "secrets": [
        {"id": row["id"], "madeAt": row["madeAt"]}, {"id": "7", "madeAt": "1"},
    ]}  # fmt: skip

    claimed, unknown = ask("ClaimSecrets", under=lease, **named)["secrets"]
    assert claimed["clientSecret"] == made["clientSecret"]
    assert unknown["error"]["code"] == 5
    assert owed(ask) == [row]

    ask("AcknowledgeSecrets", **named)
    assert owed(ask) == []


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ([], "secrets"),
        ([{"id": "1", "madeAt": 1}] * (AT_ONCE + 1), "secrets"),
        ([{"id": "1"}], "secrets[0].madeAt"),
    ],
)
def test_a_wrong_list_of_secrets_is_refused(
    ask: Asking, asked: list[dict[str, Any]], field: str
) -> None:
    refused = ask.refused("AcknowledgeSecrets", organizationId=ask.organization, secrets=asked)

    assert refused.details["field"] == field


def test_a_claim_needs_a_lease(ask: Asking) -> None:
    named = {"organizationId": ask.organization, "secrets": [{"id": "1", "madeAt": 1}]}

    assert ask.refused("ClaimSecrets", **named).reason == "lease.lost"
