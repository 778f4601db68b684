"""Objects by name, by id and in lists."""

from __future__ import annotations

import pytest

from reconciler.service.eventstore.errors import NameTakenError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import (
    NameFilter,
    ObjectQuery,
)
from tests.contract.event_store.stores import ADDED, an_object, append


def test_a_name_belongs_to_one_object_of_its_kind_and_owner(store: EventStore) -> None:
    """Two writers who both looked first still cannot both have it."""
    with store.transaction() as tx:
        tx.put(an_object())
        for other in (
            an_object("2", "greet", kind="Project"),
            an_object("3", "greet", parent="globex", organization="globex"),
            an_object("4", "other"),
        ):
            tx.put(other)

        for taken in (an_object("5", "GREET"), an_object("4", "Greet", version=2)):
            with pytest.raises(NameTakenError), tx.savepoint():
                tx.put(taken)

    with store.snapshot() as view:
        assert [row.id for row in view.all_objects()] == ["1", "2", "3", "4"]


def test_a_name_is_free_again_after_removal_and_renaming(store: EventStore) -> None:
    """Names are unique among what there is, not among what there ever was."""
    with store.transaction() as tx:
        tx.put(an_object("1", "one"))
        tx.put(an_object("2", "two"))
        tx.remove(an_object())
        tx.put(an_object("2", "three", version=2))
        tx.put(an_object("3", "one"))
        tx.put(an_object("4", "two"))

    with store.snapshot() as view:
        found = [view.find_object("Action", "acme", name) for name in ("one", "two", "three")]
        assert [row.id if row else None for row in found] == ["3", "4", "2"]
        assert view.get_object("1") is None


def test_an_object_changes_only_its_case(store: EventStore) -> None:
    """Its own name is not taken by itself."""
    with store.transaction() as tx:
        tx.put(an_object("1", "greet"))
        tx.put(an_object("1", "GREET", version=2))

    with store.snapshot() as view:
        assert [row.name for row in view.all_objects()] == ["GREET"]


def test_objects_of_an_organization_come_in_pages_without_itself(store: EventStore) -> None:
    """Whoever reads page after page sees each object once."""
    with store.transaction() as tx:
        tx.put(an_object("acme", "acme", kind="Organization", parent=""))
        for number in range(5):
            tx.put(an_object(str(number), f"a{number}"))
        tx.put(an_object("7", "a", organization="globex", parent="globex"))

    with store.snapshot() as view:
        first = view.objects_page("acme", limit=3)
        second = view.objects_page("acme", after=first[-1].id, limit=3)
        assert [row.id for row in (*first, *second)] == ["0", "1", "2", "3", "4"]


NAMES = ["Alpha", "alphabet", "ALP%", "a_pha", "Omega", "日本", "50%", "x\\y"]


@pytest.mark.parametrize(
    ("match", "text", "folded", "found"),
    [
        ("equals", "Alpha", False, {"Alpha"}),
        ("equals", "alpha", False, set()),
        ("equals", "alpha", True, {"Alpha"}),
        ("equals", "", False, set()),
        ("starts", "Al", False, {"Alpha"}),
        ("starts", "al", True, {"Alpha", "alphabet", "ALP%"}),
        ("starts", "", True, set(NAMES)),
        ("contains", "%", False, {"ALP%", "50%"}),
        ("contains", "_", False, {"a_pha"}),
        ("contains", "\\", False, {"x\\y"}),
        ("contains", "pha", True, {"Alpha", "alphabet", "a_pha"}),
        ("contains", "", False, set(NAMES)),
        ("ends", "ga", False, {"Omega"}),
        ("ends", "本", False, {"日本"}),
        ("ends", "ALPHA", True, set()),
        ("ends", "", False, set(NAMES)),
    ],
)
def test_names_are_filtered_as_they_are(
    store: EventStore, match: str, text: str, found: set[str], *, folded: bool
) -> None:
    """Signs that databases treat as wildcards are letters like any other."""
    with store.transaction() as tx:
        for number, name in enumerate(NAMES):
            tx.put(an_object(str(number), name))

    with store.snapshot() as view:
        query = ObjectQuery("Action", "acme", names=(NameFilter(match, text, folded),))
        total, rows = view.list_objects(query)

    assert {NAMES[int(number)] for number, _ in rows} == found
    assert total == len(found)


@pytest.mark.parametrize(
    ("query", "total", "found"),
    [
        (ObjectQuery("Action", "acme"), 4, "0123"),
        (ObjectQuery("Action", "acme", descending=True), 4, "3210"),
        (ObjectQuery("Action", "acme", by_name=True), 4, "3210"),
        (ObjectQuery("Action", "acme", by_name=True, descending=True), 4, "0123"),
        (ObjectQuery("Action", "acme", offset=1, limit=2), 4, "12"),
        (ObjectQuery("Action", "acme", offset=3), 4, "3"),
        (ObjectQuery("Action", "acme", offset=9, limit=2), 4, ""),
        (ObjectQuery("Action", "acme", ids=frozenset({"1", "3", "9"})), 2, "13"),
        (ObjectQuery("Action", "acme", ids=frozenset()), 0, ""),
        (ObjectQuery("Project", "acme"), 0, ""),
        (ObjectQuery("Action", "globex"), 0, ""),
    ],
)
def test_lists_are_filtered_sorted_and_cut(
    store: EventStore, query: ObjectQuery, total: int, found: str
) -> None:
    """The total counts what the filters find, not what the page holds."""
    with store.transaction() as tx:
        for number, name in enumerate("DcBa"):
            tx.put(an_object(str(number), name))

    with store.snapshot() as view:
        counted, rows = view.list_objects(query)

    assert (counted, "".join(number for number, _ in rows)) == (total, found)


def test_objects_are_found_by_their_ids(store: EventStore) -> None:
    """Those that are there, in any order."""
    with store.transaction() as tx:
        append(tx, "1", 0, ADDED)
        for number in ("1", "2"):
            tx.put(an_object(number, f"greet-{number}"))
        assert len(tx.get_objects(["1", "2", "3"])) == 2
    with store.snapshot() as view:
        assert sorted(view.get_objects(["3", "2"])) == [an_object("2", "greet-2")]
