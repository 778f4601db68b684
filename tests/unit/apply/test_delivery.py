"""Secrets are delivered by the one writer only, and reported where they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reconciler.apply.changes import ChangeRun, Outcome, Status
from reconciler.apply.delivery import (
    acknowledged,
    declared_applications,
    deliver_held,
    deliver_owed,
    missing_secrets,
    owed_for,
    rotate,
    unanswered_secrets,
)
from reconciler.apply.journal import Journal
from reconciler.apply.sink import Application, Delivery, Kept, never
from reconciler.errors import (
    LocalFileError,
    LockHeldError,
    NotDeliveredError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.plan.model import Change, Create, Delete, Update
from reconciler.resources.secret import Secret
from reconciler.service_client.port import Written
from tests.builders import (
    GREET,
    HOUSE,
    NONE,
    WEB,
    FakeService,
    FakeSink,
    Trouble,
    a_plan,
    a_ref,
    an_application,
    an_owed_secret,
    declared,
    held,
    id_of,
    lost,
    observed,
)
from tests.rows import each_row

TAKEN = LockHeldError("another run applies", remedy="Wait.")
OTHER = a_ref(name="other")


def raising(where: str, failure: ReconcilerError) -> Trouble:
    """Return a trouble that comes at one place."""

    def trouble(at: str) -> None:
        if at == where:
            raise failure

    return trouble


def owing() -> FakeService:
    """Return a service that owes the secrets of two applications."""
    service = FakeService(*HOUSE, held(WEB), held(OTHER))
    for ref in (WEB, OTHER):
        service.secrets[id_of(ref)] = f"secret of {ref.name}"
        service.owed[id_of(ref)] = an_owed_secret(ref)
    return service


def test_owed_secrets_are_delivered_and_then_acknowledged() -> None:
    service, sink = owing(), FakeSink()

    done = deliver_owed([*service.owed.values()], service, sink, {})

    assert set(sink.kept.values()) == {"secret of storefront", "secret of other"}
    assert (done.failure, service.owed) == (None, {})
    assert [each.error for each in done.delivered] == [None, None]


@pytest.mark.parametrize("where", ["renew", "claim"])
def test_without_the_lock_or_the_service_nothing_is_delivered(where: str) -> None:
    service, sink = owing(), FakeSink()
    service.trouble = raising(where, TAKEN if where == "renew" else lost())

    done = deliver_owed([*service.owed.values()], service, sink, {})

    assert done.failure is not None
    assert (sink.kept, len(service.owed)) == ({}, 2)
    assert all(each.error is done.failure for each in done.delivered)


def test_what_the_sink_does_not_take_stays_owed() -> None:
    service, sink = owing(), FakeSink()
    sink.trouble = raising("keep", LocalFileError("full", remedy="r"))

    done = deliver_owed([*service.owed.values()], service, sink, {})

    assert isinstance(done.failure, LocalFileError)
    assert len(service.owed) == 2


def test_a_batch_is_as_long_as_the_service_has_it_and_the_run_may_stop_between_two() -> None:
    service, sink = owing(), FakeSink()
    service.batch_size = 1

    deliver_owed([*service.owed.values()], service, sink, {}, lambda: bool(sink.kept))

    assert len(sink.kept) == 1


@pytest.mark.parametrize(
    ("where", "failure", "code"),
    [
        ("renew", TAKEN, "SECRET-DELIVERED-LATE"),
        ("acknowledge", TAKEN, "SECRET-DELIVERED-LATE"),
        ("acknowledge", lost(), "SECRET-NOT-ACKNOWLEDGED"),
    ],
)
def test_a_delivery_that_is_not_acknowledged_is_told(
    where: str, failure: ReconcilerError, code: str
) -> None:
    service = owing()
    service.trouble = raising(where, failure)

    found = acknowledged(service, {WEB: Written(id_of(WEB), 1)})

    assert [each.code for each in found] == [code]
    assert acknowledged(service, {}) == ()


def test_a_lock_that_was_lost_is_not_asked_for_again() -> None:
    service, asked = FakeService(), list[str]()

    def trouble(at: str) -> None:
        asked.append(at)
        if len(asked) > 1:
            raise TAKEN

    service.trouble = trouble
    deliveries = [Delivery(WEB, str(number), Secret("s")) for number in range(3)]

    first, *others = deliver_held(FakeSink(), deliveries, service, never)

    assert isinstance(first, Kept)
    assert others == [TAKEN, TAKEN]
    assert asked == ["renew", "renew"]


@pytest.mark.parametrize("follows", [True, False])
def test_a_sink_that_follows_no_rename_gets_the_new_name(
    monkeypatch: pytest.MonkeyPatch, *, follows: bool
) -> None:
    owed, sink = an_owed_secret(), FakeSink()
    monkeypatch.setattr(sink, "follows", follows)
    plan = a_plan(Update(declared(OTHER), replace(held(WEB), id=owed.id)), owed=(owed,))

    (named,) = owed_for(sink, plan)

    assert named.ref == (WEB if follows else OTHER)
    assert owed_for(None, plan) == plan.deliverable


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """Return an empty journal."""
    return Journal(tmp_path / "apply.jsonl")


@pytest.mark.parametrize("custody", [True, False])
def test_a_rotated_secret_is_delivered_and_its_intent_ended(
    journal: Journal, custody: object
) -> None:
    service, sink = owing(), FakeSink()
    found = service.objects[id_of(WEB)]

    with journal:
        kept = rotate(found, service, journal, sink, {}, custody=bool(custody))

        assert journal.open_intents == ()
    assert sink.kept[WEB.key, found.client_id] == service.secrets[found.id]
    assert kept.notes == ()
    assert found.id not in service.owed


@pytest.mark.parametrize(
    ("where", "failure", "told"),
    [
        ("keep", LocalFileError("full", remedy="r"), NotDeliveredError),
        ("send", lost(), ServiceError),
    ],
)
def test_a_rotation_that_was_cut_short_stays_open(
    journal: Journal, where: str, failure: ReconcilerError, told: type[ReconcilerError]
) -> None:
    service, sink = owing(), FakeSink()
    service.trouble = sink.trouble = raising(where, failure)

    with journal:
        with pytest.raises(told):
            rotate(service.objects[id_of(WEB)], service, journal, sink, {}, custody=False)

        assert len(journal.open_intents) == 1


def test_a_rotation_that_was_cut_short_is_owed_by_a_service_with_custody(journal: Journal) -> None:
    """Any later run of the tree delivers it, on any machine: no journal has to tell."""
    service, sink = owing(), FakeSink()
    sink.trouble = raising("keep", LocalFileError("full", remedy="r"))

    with journal:
        with pytest.raises(NotDeliveredError) as caught:
            rotate(service.objects[id_of(WEB)], service, journal, sink, {}, custody=True)

        assert journal.open_intents == ()
    assert caught.value.problem == (
        "the client secret of OidcApplication acme/shop/storefront was replaced, and the new one "
        "is not in the sink: full"
    )
    assert caught.value.remedy == (
        "The old one has ended. r The new one is owed: `reconciler secret deliver` delivers it as "
        "well."
    )
    assert id_of(WEB) in service.owed


OWED = (
    "is owed: `reconciler secret deliver` delivers it. Running the command again replaces it once "
    "more."
)


@pytest.mark.parametrize(
    ("custody", "after"),
    [(True, OWED), (False, "is lost: run the command again for another.")],
)
def test_a_rotation_without_an_answer_says_what_may_have_happened(
    journal: Journal, custody: object, after: str
) -> None:
    """A second rotation is no repeat of the first one, as other writes are."""

    class Silent(FakeService):
        def write(self, *_: object) -> list[Written | ServiceError]:
            return [lost()]

    with journal, pytest.raises(ServiceUnavailableError) as caught:
        rotate(held(WEB), Silent(), journal, FakeSink(), {}, custody=bool(custody))

    assert caught.value.problem == "the service did not answer"
    assert caught.value.remedy == (
        "If the client secret was replaced all the same, the old one has ended and the new one "
        f"{after}"
    )


def test_a_rotation_that_was_not_understood_keeps_its_remedy(journal: Journal) -> None:
    """Only a service that did not answer may have carried it out."""
    lacking = ServiceError("the service has no such call", remedy="Upgrade the service.")

    class Old(FakeService):
        def write(self, *_: object) -> list[Written | ServiceError]:
            return [lacking]

    with journal, pytest.raises(ServiceError) as caught:
        rotate(held(WEB), Old(), journal, FakeSink(), {}, custody=True)

    assert caught.value is lacking


def test_a_refused_rotation_leaves_nothing_open(journal: Journal) -> None:
    service = owing()

    with journal:
        with pytest.raises(ServiceError):
            rotate(held(a_ref(name="gone")), service, journal, FakeSink(), {}, custody=False)

        assert journal.open_intents == ()


def test_an_application_without_a_secret_has_none_to_rotate(journal: Journal) -> None:
    public = held(WEB, an_application(authMethodType=NONE))

    with journal, pytest.raises(UsageError, match="without a client secret"):
        rotate(public, owing(), journal, FakeSink(), {}, custody=False)


def test_a_secret_of_another_tree_is_not_mistaken_for_a_delivered_one() -> None:
    """Only what is owed at the same sequence is acknowledged."""
    service = owing()

    acknowledged(service, {WEB: Written(id_of(WEB), 99, "x", Secret("y"))})

    assert len(service.owed) == 2


ONE = Application(WEB, "7")


@dataclass
class Sink(FakeSink):
    """A sink that gives one answer about every application."""

    answer: bool | None

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return the answer for each."""
        return [self.answer for _ in applications]


@each_row(
    ("answer", "made", "required", "codes"),
    [
        (True, ["7"], True, []),
        (False, [], False, [("warning", "SECRET-NOT-IN-SINK")]),
        (False, ["7"], False, [("error", "SECRET-NOT-IN-SINK")]),
        (False, [], True, [("error", "SECRET-NOT-IN-SINK")]),
        (None, ["7"], False, []),
        (None, [], True, [("error", "SECRET-SINK-CANNOT-TELL")]),
    ],
)
def test_what_is_missing_is_an_error_where_it_was_made_or_is_required(
    made: list[str], codes: list[tuple[str, str]], *, answer: bool | None, required: bool
) -> None:
    found = missing_secrets([ONE], made, Sink(answer), required=required)

    assert [(str(each.severity), each.code) for each in found] == codes


@each_row(
    ("change", "result", "answer", "missing"),
    [
        (Create(declared()), Written("7", 1, "7"), False, True),
        (Create(declared()), Written("7", 1, "7"), True, False),
        (Create(declared()), Written("7", 1, "7", Secret("x")), False, False),
        (Create(declared()), lost(), False, False),
        (Create(declared(GREET)), Written("7", 1), False, False),
        (Update(declared(), held()), Written("7", 1, "7"), False, False),
    ],
)
def test_a_create_without_its_secret_is_an_error(
    change: Change, result: Written | ReconcilerError, *, answer: bool, missing: bool
) -> None:
    """Its answer was lost, and the service keeps none."""
    found = [
        each.is_error
        for each in unanswered_secrets([ChangeRun(change, result=result)], Sink(answer))
    ]

    assert found == [True] * missing


def test_a_secret_that_the_sink_may_hold_is_looked_for_before_a_new_one_is_made() -> None:
    """A new one ends the old one where it is deployed."""
    run = ChangeRun(Create(declared()), result=Written("7", 1, "7"))

    (found,) = unanswered_secrets([run], Sink(None))

    assert (found.is_error, found.code) == (True, "SECRET-NOT-IN-SINK")
    assert found.summary.startswith("it is not known whether the sink holds")
    assert "Look for it in the sink, also in files that this user cannot read." in found.remedy


def test_applications_are_taken_as_they_are_after_the_run() -> None:
    """One that failed to change keeps the way it signs in; one of a shared name is left out."""
    kept, public = a_ref(name="kept"), an_application(authMethodType=NONE)
    new, gone, failed = a_ref(name="new"), a_ref(name="gone"), a_ref(name="failed")
    plan = a_plan(in_step=(WEB, kept, GREET))
    outcomes = [
        Outcome(Create(declared(new)), Status.MADE, client_id="n"),
        Outcome(Delete(held(gone)), Status.MADE),
        Outcome(Update(declared(failed, public), held(failed)), Status.FAILED),
        Outcome(Update(declared(GREET), held(GREET)), Status.MADE),
    ]
    seen = observed(*HOUSE, held(WEB), held(kept), held(GREET))

    found = declared_applications(plan, seen, outcomes)

    assert [each.ref for each in found] == [WEB, kept, new, failed]
    assert found[2].client_id == "n"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [(lost(), "did not answer"), (Written("7", 8, "client-7"), "the service gave no secret for")],
)
def test_a_rotation_that_may_have_made_a_secret_stays_open(
    journal: Journal, answer: Written | ServiceError, problem: str
) -> None:
    """The next run makes another one: the one before may count already."""
    service = owing()

    class Answering(FakeService):
        def write(self, *_: object) -> list[Written | ServiceError]:
            return [answer]

    with journal:
        with pytest.raises(ServiceError, match=problem):
            rotate(service.objects[id_of(WEB)], Answering(), journal, FakeSink(), {}, custody=False)

        assert [intent.purpose for intent in journal.open_intents] == ["secret"]
