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
from reconciler.service.eventstore.errors import StoreReadOnlyError, StoreUnusableError
from tests.examples import Clock
from tests.unit.service.asking import Asking


@pytest.fixture
def service(filled: Path) -> IdentityService:
    return open_sqlite(filled, now=Clock())


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_is_made_only_where_that_is_asked_for(tmp_path: Path, *, read_only: bool) -> None:
    with pytest.raises(StoreUnusableError):
        open_sqlite(tmp_path / "identity.db", read_only=read_only)
    assert list(tmp_path.iterdir()) == []

    open_sqlite(tmp_path / "identity.db", create=True).close()
    assert [path.name for path in tmp_path.iterdir()] == ["identity.db"]


def test_a_service_that_only_reads_refuses_to_write(filled: Path) -> None:
    with closing(open_sqlite(filled, read_only=True)) as service:
        ask = Asking(service, Clock())
        assert [found["name"] for found in ask("ListOrgs")["result"]] == ["acme"]
        with pytest.raises(StoreReadOnlyError):
            ask("AddOrg", name="globex")


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


def test_the_key_is_made_beside_the_store_and_remembered(
    service: IdentityService, filled: Path
) -> None:
    with closing(service):
        service.hold_seal_key()
        with service.store.snapshot() as view:
            known = view.meta("seal_key")

    assert len(known) == 32
    assert filled.with_name("identity.db.seal-key").is_file()


def test_the_clock_does_not_go_back() -> None:
    assert 0 < since_boot() <= since_boot()
