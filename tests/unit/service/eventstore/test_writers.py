"""Which writers a store takes, by the number that it keeps."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore.errors import StoreReadOnlyError
from reconciler.service.eventstore.writers import require_current


@pytest.mark.parametrize("found", ["", "1", "2"])
def test_a_store_of_earlier_writers_or_the_same_is_written_to(found: str) -> None:
    require_current(found, 2)


def test_the_refusal_names_both_versions_and_what_to_do() -> None:
    with pytest.raises(StoreReadOnlyError) as caught:
        require_current("10", 9)

    assert "its writers have version 10, this program has 9" in caught.value.problem
    assert "Install the newest version" in caught.value.remedy
