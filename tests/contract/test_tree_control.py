"""Feed, pauses, leadership and records through the client: in process, over HTTP, a ZITADEL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from reconciler.errors import (
    LockHeldError,
    NoHistoryError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
)
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.locks import ProcessIdentity, this_process
from reconciler.service_client.port import DeleteOrder, ServiceClient, TreeControl
from reconciler.state import FeedEvent, Head
from tests.contract.houses import CONTEXT, IN_PROCESS, OVER_HTTP, House
from tests.zitadel.stand_in import GENERATIONS

OTHER = ProcessIdentity("ben", "build-7", "b", 42, "s", "n")
DEAD = replace(this_process(), process=2**22 + 1)
COMMIT, NEXT = "a" * 40, "b" * 64
OURS = [IN_PROCESS, OVER_HTTP]


@pytest.fixture(params=[*OURS, *GENERATIONS])
def service_kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of service that a client is open to."""
    return str(request.param)


ours = pytest.mark.parametrize("service_kind", OURS)


def trees(client: ServiceClient) -> TreeControl:
    control = client.trees()
    assert control is not None
    return control


def head(house: House) -> Head:
    found = house.client.heads()
    assert found is not None
    return found.organizations[fold(house.organization)]


def changes(house: House, after: int = 0) -> Sequence[FeedEvent]:
    """Return the events of the organization past a sequence."""
    return dict(house.client.changes_of({house.organization_id: after}))[house.organization_id]


@pytest.mark.parametrize("service_kind", [*GENERATIONS])
def test_a_zitadel_has_none_of_it(house: House) -> None:
    """Callers ask for it, and do without."""
    assert house.client.heads() is None
    assert house.client.trees() is None
    with pytest.raises(NoHistoryError):
        changes(house)


@ours
def test_a_head_moves_with_what_is_written(house: House) -> None:
    before = head(house)
    assert (before.id, before.name) == (house.organization_id, house.organization)
    assert (before.owed, before.pauses, before.applied) == (0, (), ())

    made = house.made(house.create(Kind.OIDC_APPLICATION, "web"))

    after = head(house)
    assert after.sequence == made.sequence > before.sequence
    assert after.owed == 1
    found = house.client.heads()
    assert found is not None
    assert found.instance == house.client.observe([house.organization]).instance


@ours
def test_changes_since_a_head_are_what_happened(house: House) -> None:
    before = head(house).sequence
    held = house.made(house.create(Kind.ACTION, "greet"))
    house.write(DeleteOrder(held))

    made, removed = changes(house, before)

    assert (made.kind, made.id, made.name, made.project_id) == ("Action", held.id, "greet", "")
    assert (made.type, removed.type) == ("action.added", "action.removed")
    assert {name: made.context[name] for name in CONTEXT} == CONTEXT
    assert made.sequence == held.sequence < removed.sequence == head(house).sequence
    every = changes(house)
    assert [*every[-2:]] == [made, removed]
    assert all(one.sequence < other.sequence for one, other in pairwise(every))
    with pytest.raises(ObjectNotFoundError):
        dict(house.client.changes_of({"1": 0}))


@ours
def test_a_pause_is_seen_by_heads_and_by_what_is_observed(house: House) -> None:
    """Every run has it within one round, and every plan."""
    names = [house.organization]
    trees(house.client).pause("shop", names, "incident 7", 60)

    (pause,) = head(house).pauses

    assert (pause.tree, pause.reason) == ("shop", "incident 7")
    assert pause.until > pause.since
    assert house.client.observe(names).pauses == {house.organization: (pause,)}
    trees(house.client).resume("shop", names)
    trees(house.client).resume("shop", names)
    assert head(house).pauses == ()
    assert house.client.observe(names).pauses == {}
    with pytest.raises(ObjectNotFoundError):
        trees(house.client).pause("shop", ["nowhere"], "x", 60)


@ours
def test_one_run_leads_a_tree_and_the_others_watch(house: House) -> None:
    """Neither holds up a manual apply, nor another tree."""
    names, mine = [house.organization], trees(house.client)
    with house.open(OTHER) as other:
        theirs = trees(other)
        theirs.lead("shop", names, 60)
        with pytest.raises(LockHeldError, match=r"tree shop of organization .* by ben on build-7"):
            mine.lead("shop", names, 60)
        mine.lead("blog", names, 60)
        house.client.acquire(names)
        house.client.release()
        theirs.renew(at_once=True)
        theirs.resign()
    mine.lead("shop", names, 60)
    mine.resign()


@ours
def test_the_leader_alone_records_and_each_commit_once(house: House) -> None:
    names, mine = [house.organization], trees(house.client)
    mine.lead("shop", names, 60)
    mine.record_commit(COMMIT, "changed", CONTEXT)
    moved = head(house).sequence
    mine.record_commit(COMMIT, "unchanged", CONTEXT)
    mine.resign()
    mine.record_commit(NEXT, "changed", CONTEXT)  # led nowhere: recorded nowhere

    (record,) = head(house).applied

    assert (record.tree, record.commit) == ("shop", COMMIT)
    assert head(house).sequence == moved
    (event,) = changes(house, moved - 1)
    assert (event.type, event.kind) == ("organization.tree.applied", "Organization")


@ours
def test_a_leader_that_was_taken_over_records_nothing(house: House) -> None:
    """It was stopped between its lease and its write, and goes on much later."""
    names, mine = [house.organization], trees(house.client)
    with house.open(DEAD) as late:
        theirs = trees(late)
        theirs.lead("shop", names, 60)
        mine.lead("shop", names, 60)  # of a process of this machine that is gone
        mine.record_commit(COMMIT, "changed", CONTEXT)

        with pytest.raises(LockHeldError, match="another run leads tree shop"):
            theirs.record_commit(NEXT, "changed", CONTEXT)
        with pytest.raises(LockHeldError, match="is locked by"):
            theirs.renew(at_once=True)
    assert [record.commit for record in head(house).applied] == [COMMIT]
    mine.resign()


@ours
def test_the_one_writer_may_take_leadership_for_a_record(house: House) -> None:
    """A job of CI writes its record although a controller leads, which then looks again."""
    names, mine = [house.organization], trees(house.client)
    with house.open(OTHER) as other:
        theirs = trees(other)
        theirs.lead("shop", names, 60)
        mine.lead("shop", names, 60, take=True)
        mine.record_commit(COMMIT, "changed", CONTEXT)
        mine.resign()

        with pytest.raises(PreconditionFailedError, match="another run has locked tree shop"):
            theirs.renew(at_once=True)

        theirs.renew(at_once=True)
        theirs.record_commit(NEXT, "unchanged", CONTEXT)
        theirs.resign()
    assert [record.commit for record in head(house).applied] == [NEXT]


@ours
def test_an_apply_that_was_stopped_before_its_record_does_not_write_it_later(house: House) -> None:
    """Another apply came after it, and the last commit is that one's."""
    names = [house.organization]
    with house.open(DEAD) as late:
        late.acquire(names)
        house.client.acquire(names)  # of a process of this machine that is gone
        mine = trees(house.client)
        mine.lead("shop", names, 60)
        mine.record_commit(NEXT, "changed", CONTEXT)
        mine.resign()
        house.client.release()

        theirs = trees(late)
        theirs.lead("shop", names, 60, take=True)
        with pytest.raises(LockHeldError):
            theirs.record_commit(COMMIT, "changed", CONTEXT)
        theirs.resign()
    assert [record.commit for record in head(house).applied] == [NEXT]


@ours
def test_leadership_of_several_organizations_is_had_of_all_or_none(house: House) -> None:
    """In order of name, so that two runs never wait for each other."""
    more = f"{house.organization}-z"  # still to be made
    names, mine = [more, house.organization], trees(house.client)
    with house.open(OTHER) as other:
        trees(other).lead("shop", [more], 60)
        with pytest.raises(LockHeldError):
            mine.lead("shop", names, 60)
        trees(other).lead("shop", [house.organization], 60)  # given back by the one refused
        trees(other).resign()
    mine.lead("shop", names, 60)
    with pytest.raises(ServiceError):  # one of them is not there: no organization, no record
        mine.record_commit(COMMIT, "changed", CONTEXT)
    mine.resign()
