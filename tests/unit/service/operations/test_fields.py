"""Fields that a handler reads itself."""

from __future__ import annotations

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.fields import Fields


@pytest.mark.parametrize(
    ("sent", "length"),
    [({}, 7), ({"limit": None}, 7), ({"limit": 0}, 7), ({"limit": 6}, 6), ({"limit": "8"}, 7)],
)
def test_a_page_is_at_most_as_long_as_pages_are(sent: dict[str, object], length: int) -> None:
    """A client that asks for more gets what there is room for."""
    assert Fields(sent).limit(7) == length


def test_a_length_that_is_no_number_is_refused() -> None:
    with pytest.raises(Refusal, match="limit: must be a whole number, 0 or more"):
        Fields({"limit": -1}).limit(7)
