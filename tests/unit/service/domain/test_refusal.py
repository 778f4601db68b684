"""Refusals: codes and their statuses."""

from __future__ import annotations

from reconciler.service.domain.refusal import HTTP_STATUS, Code, Refusal
from tests.rows import each_row


@each_row(
    ("code", "status"),
    [
        (3, 400), (16, 401), (7, 403), (5, 404), (6, 409), (9, 409), (10, 409), (8, 429),
        (12, 501), (13, 500), (14, 503),
    ],
)  # fmt: skip
def test_refusals_have_the_status_that_the_source_names(code: int, status: int) -> None:
    """Precondition failed is 409 here, in the source document's word."""
    refusal = Refusal(Code(code), "no", "reason", fact="1")

    assert refusal.http_status == status
    assert (str(refusal), refusal.reason, refusal.details) == ("no", "reason", {"fact": "1"})


def test_every_code_has_a_status() -> None:
    """No refusal reaches HTTP without one."""
    assert set(HTTP_STATUS) == set(Code)
    assert len(Code) == 11
