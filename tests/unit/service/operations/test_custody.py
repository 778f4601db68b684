"""Secrets in custody: owed until their delivery is acknowledged, or until they are lost."""

from __future__ import annotations

import pytest

from reconciler.resources.secret import Secret
from reconciler.service.eventstore.rows import OwedRow
from reconciler.service.operations.custody import is_lost, with_secret_shown

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
