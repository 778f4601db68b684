"""The rows of objects and the log that they are made from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from reconciler.service.projections import maintenance
from tests.examples import JWT, Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import Asking


@pytest.fixture
def ask() -> Iterator[Asking]:
    """Return a service whose objects have histories of one to three events."""
    clock = Clock()
    with closing(open_memory(now=clock)) as service:
        asking = Asking(service, clock)
        asking.prepare()
        idp = {"idpId": asking.an_idp()["idpId"], **JWT}
        asking("UpdateOrgIDPJWTConfig", **{**idp, "issuer": "a"}, context='{"tree":"b"}')
        asking("UpdateOrgIDPJWTConfig", **{**idp, "issuer": "c"})
        asking("DeleteAction", id=asking.an_action("gone")["id"])
        asking.an_action()
        asking.an_app()
        yield asking


def test_a_row_says_which_event_its_object_is_at(ask: Asking) -> None:
    """Who expects a sequence, or reads who wrote last, is told of an event that is in the log."""
    with ask.service.store.snapshot() as view:
        last = {event.stream: event for event in view.read_all()}
        rows = {row.id: row for row in view.all_objects()}

    assert len(rows) == 5
    assert {
        key: (row.version, row.sequence, row.changed_by, row.context) for key, row in rows.items()
    } == {
        key: (last[key].version, last[key].sequence, last[key].writer, last[key].context)
        for key in rows
    }


@pytest.mark.parametrize("page", [1, 2, 3, 1000])
def test_however_the_log_is_cut_into_pages_it_makes_the_same_rows(
    ask: Asking, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """An event at the edge of a page is replayed once, neither never nor twice."""
    monkeypatch.setattr(maintenance, "PAGE", page)

    with ask.service.store.snapshot() as view:
        assert list(maintenance.replayed(view).values()) == list(view.all_objects())
