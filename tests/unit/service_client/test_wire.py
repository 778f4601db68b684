"""Ids, and calls that write nothing."""

from __future__ import annotations

import pytest

from reconciler.resources.call import ADDRESSES, Call
from reconciler.service_client.wire import is_id, is_read


@pytest.mark.parametrize("object_id", ["1", "301234567890123456", "oid-shop-web", "A_b-9"])
def test_usual_ids_are_ids(object_id: str) -> None:
    """Decimal strings, and what others make."""
    assert is_id(object_id)


def test_reads_are_those_that_get_or_list() -> None:
    """The rest writes, and is held to more."""
    reads = {name for name in ADDRESSES if is_read(Call(name))}

    assert reads == {name for name in ADDRESSES if name.startswith(("Get", "List", "Healthz"))}
