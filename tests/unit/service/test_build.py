"""Services over a file: made when that is asked for, and only then."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import (
    IdentityService,
    open_sqlite,
    since_boot,
)
from reconciler.service.domain.refusal import Refusal
from tests.examples import Clock
from tests.unit.service.asking import Asking


@pytest.fixture
def service(filled: Path) -> IdentityService:
    return open_sqlite(filled, now=Clock())


def test_one_call_raises_what_many_answer(service: IdentityService) -> None:
    """A refused call keeps no other from being carried out."""
    with closing(service):
        ask = Asking(service, Clock())
        twice = ask.request("AddOrg", {"name": "acme"})
        new = ask.request("AddOrg", {"name": "globex"})

        with pytest.raises(Refusal):
            service.call(twice)
        refused, made = service.call_many([twice, new])
        (only,) = service.call_until_refused([twice, new])

    assert isinstance(refused, Refusal)
    assert isinstance(made, dict)
    assert isinstance(only, Refusal)


def test_the_clock_does_not_go_back() -> None:
    assert 0 < since_boot() <= since_boot()
