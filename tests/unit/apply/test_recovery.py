"""What an interrupted run began is brought to its end: its secrets, and what the sink follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.changes import ChangeRun, Delivered, secret_order
from reconciler.apply.delivery import DeliveryResult
from reconciler.apply.journal import Intent, Journal
from reconciler.apply.recovery import Recovery, SinkSync
from reconciler.apply.sink import Stops, never
from reconciler.diagnostics import Diagnostic, Severity, warning
from reconciler.errors import (
    AccessDeniedError,
    LocalFileError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.plan.model import Change, Create, Delete, Update
from reconciler.service_client.port import CreateOrder, Order, SecretOrder, Written
from reconciler.state import ObservedObject, ObservedState
from tests.builders import (
    ACME,
    HOUSE,
    PARTNER,
    SHOP,
    WEB,
    FakeService,
    FakeSink,
    a_public_application,
    a_ref,
    an_application,
    declared,
    held,
    id_of,
    lost,
    observed,
)

CONTEXT = {"tree": "default"}
SPEC = declared(WEB).spec
CREATE = Intent("create", "key-1", WEB, owes_secret=True, spec=SPEC)
SAME = "it is the same secret, and it is now in the sink."


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return the journal that an interrupted run left."""
    with Journal(tmp_path / "apply.jsonl") as opened:
        yield opened


@pytest.fixture
def service() -> FakeService:
    """Return a service without custody, with an organization and a project."""
    made = FakeService(*HOUSE)
    made.custody = False
    return made


@pytest.fixture
def sink() -> FakeSink:
    """Return an empty sink."""
    return FakeSink()


def made(service: FakeService, intent: Intent = CREATE) -> ObservedObject:
    """Return what the interrupted run made by an intent; nobody saw the answer."""
    order = CreateOrder(intent.ref, intent.spec or {}, intent.key, id_of(ACME), id_of(SHOP))
    (result,) = service.write([order], CONTEXT)
    assert not isinstance(result, ServiceError)
    service.written.clear()
    return service.objects[result.id]


def recover(
    service: FakeService, journal: Journal, sink: FakeSink | None, stops: Stops = never
) -> DeliveryResult:
    """Heal in the scope of the organization acme."""
    recovery = Recovery(service, journal, sink, CONTEXT, stops)
    return recovery.recover(service.observe(["acme"]), ["ACME"])


def delivered_owed(found: ObservedObject) -> Delivered:
    """Return that a secret was delivered."""
    return Delivered(found.ref, found.id, found.client_id, f"fake:{found.ref.path}")


def note(code: str, summary: str, remedy: str, found: ObservedObject | None = None) -> Diagnostic:
    return warning(code, summary, remedy, ref=found.ref if found else WEB)


DELIVERED = note(
    "HEAL-SECRET-DELIVERED",
    "a secret of an interrupted run was delivered",
    f"The client secret of {WEB} was made by a run that was cut short; {SAME}",
)
MISSING = replace(
    note(
        "SECRET-NOT-IN-SINK",
        "the sink does not hold the secret of an application",
        f"{WEB} signs in with a secret that is not in this sink. If no deployment has it, make a "
        "new one: reconciler apply --rotate-missing OidcApplication/acme/shop/storefront",
    ),
    severity=Severity.ERROR,
)
TAKEN = "HEAL-NAME-TAKEN"
OWED = note(
    "HEAL-SECRET-OWED",
    "a secret of an interrupted run was not delivered yet",
    f"The client secret of {WEB} has no destination. Give --secrets-to and run the command again.",
)


def test_without_open_intents_nothing_is_asked(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """Every usual apply."""
    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.contexts, sink.kept) == ([], {})


def test_a_signal_stops_between_deliveries(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The secret that was given is done; the other one stays open for the next run."""
    other = replace(CREATE, key="key-2", ref=a_ref(name="other"))
    journal.begin([CREATE, other])
    first, _ = made(service), made(service, other)

    recovered = recover(service, journal, sink, lambda: bool(sink.kept))

    assert recovered == DeliveryResult([DELIVERED], [delivered_owed(first)])
    assert list(journal.open_intents) == [other]
    assert recover(service, journal, sink).notes != []
    assert len(sink.kept) == 2
    assert journal.open_intents == ()


def test_the_same_secret_is_had_again_and_delivered(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The create is sent once more with its key; no second application, no other secret."""
    found = made(service)
    secret = service.secrets[found.id]
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult([DELIVERED], [delivered_owed(found)])
    assert sink.kept == {(WEB, found.client_id): secret}
    assert list(sink.proven) == [WEB]
    assert (service.secrets, service.written) == ({found.id: secret}, [])
    assert journal.open_intents == ()


@pytest.mark.parametrize("keeps_answers", [True, False])
def test_a_secret_that_cannot_be_had_again_is_reported_and_left_as_it_is(
    service: FakeService, journal: Journal, sink: FakeSink, keeps_answers: object
) -> None:
    """A person decides; the next run is not stopped by it for ever."""
    made(service)
    before = dict(service.secrets)
    service.keeps_answers = bool(keeps_answers)
    service.forget_keys()
    journal.begin([CREATE])

    recovered = recover(service, journal, sink)

    if keeps_answers:
        assert [note.code for note in recovered.notes] == [TAKEN]
    else:
        assert recovered == DeliveryResult([MISSING])
    assert (service.secrets, sink.kept, journal.open_intents) == (before, {}, ())


def test_a_secret_that_the_sink_holds_is_delivered(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """Only the journal's last line is missing; somebody may sign in with the secret already."""
    found = made(service)
    sink.kept[WEB, found.client_id] = service.secrets[found.id]
    service.keeps_answers = False
    before = dict(service.secrets), dict(sink.kept)
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.secrets, sink.kept) == before
    assert journal.open_intents == ()


def test_a_first_answer_that_no_longer_counts_is_not_delivered(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """What has happened to the application since may have been a new secret."""
    found = made(service)
    service.objects[found.id] = replace(found, sequence=found.sequence + 1)
    journal.begin([CREATE])

    assert recover(service, journal, sink).notes == [MISSING]
    assert sink.kept == {}


def test_the_secret_of_somebody_elses_application_is_left_alone(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """What the run made was removed, and another one has its name now."""
    gone = made(service)
    del service.objects[gone.id], service.secrets[gone.id]
    other = held(WEB, object_id="other")
    service.objects["other"] = other
    service.secrets["other"] = "theirs"
    service.custody = True
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.secrets, sink.kept) == ({"other": "theirs"}, {})
    assert journal.open_intents == ()


def test_an_old_answer_about_another_application_tells_nothing_about_this_one(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """A service without custody gives the answer again though what it made is removed."""
    gone = made(service)
    del service.objects[gone.id]
    service.objects["other"] = held(WEB, object_id="other")
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (sink.kept, journal.open_intents) == ({}, ())


def test_a_secret_that_its_service_lost_is_not_looked_for_in_the_sink(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The service itself reports it, and what to do."""
    service.custody = True
    found = made(service)
    service.owed[found.id] = replace(service.owed[found.id], lost=True)
    service.objects[found.id] = replace(found, sequence=found.sequence + 1)
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (sink.kept, journal.open_intents) == ({}, ())


@pytest.mark.parametrize("has_sink", [True, False])
def test_everything_that_an_interrupted_run_left_is_told(
    service: FakeService, journal: Journal, sink: FakeSink, has_sink: object
) -> None:
    """A name taken by another run, a secret that was being replaced, and two creates."""
    others = [replace(CREATE, key=name, ref=a_ref(name=name)) for name in ("b", "c")]
    taken = service.objects["7"] = held(WEB, object_id="7")
    replaced = service.objects["8"] = held(a_ref(name="d"), object_id="8")
    created = [made(service, intent) for intent in others]
    renewal = Intent("secret", "d", replaced.ref, owes_secret=True, id="8")
    journal.begin([SinkSync(journal, sink).intents([ChangeRun(RENAME)])[0], CREATE, renewal])
    journal.begin(others)

    recovered = recover(service, journal, sink if has_sink else None)

    after = "HEAL-SECRET-DELIVERED" if has_sink else "HEAL-SECRET-OWED"
    missing = "SECRET-NOT-IN-SINK" if has_sink else "HEAL-SECRET-OWED"
    assert recovered.notes[0] == note(
        TAKEN,
        "another run made what an interrupted run was about to make",
        f"{WEB} (id 7) was made by another run, or more than a day ago. Its client secret is "
        "left as it is.",
        taken,
    )
    assert [(note.code, note.ref) for note in recovered.notes[1:]] == [
        (missing, replaced.ref),
        (after, created[0].ref),
        (after, created[1].ref),
    ]
    assert recovered.delivered == ([delivered_owed(found) for found in created] * bool(has_sink))


def test_the_first_secret_that_a_sink_does_not_take_ends_the_run_after_the_others(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The secrets that the sink took are done; the others stay open."""
    intents = [replace(CREATE, key=name, ref=a_ref(name=name)) for name in ("a", "b", "c")]
    for intent in intents:
        made(service, intent)
    journal.begin(intents)
    calls = iter(("prove", "full at the first", "", "", "full at the third"))

    def full(where: str) -> None:
        said = next(calls)
        if said.startswith("full"):
            raise LocalFileError(said, remedy="r")

    sink.trouble = full
    with pytest.raises(LocalFileError, match="full at the first"):
        recover(service, journal, sink)

    assert [ref.name for ref, _ in sink.kept] == ["b"]
    assert [intent.key for intent in journal.open_intents] == ["a", "c"]


def test_a_create_that_never_happened_is_ended(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The run that follows makes it with a key of its own."""
    journal.begin([CREATE])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.written, journal.open_intents) == ([], ())


@pytest.mark.parametrize("custody", [True, False])
def test_a_name_under_a_key_that_the_service_never_saw_was_taken_by_another_run(
    service: FakeService, journal: Journal, sink: FakeSink, custody: object
) -> None:
    """The intent was written and nothing was sent; the secret that lives is left alone."""
    service.custody = bool(custody)
    found = made(service, replace(CREATE, key="theirs"))
    service.owed.clear()
    before = dict(service.secrets)
    journal.begin([CREATE])

    recovered = recover(service, journal, sink)

    assert [(note.code, note.ref) for note in recovered.notes] == [(TAKEN, found.ref)]
    assert (service.secrets, sink.kept, journal.open_intents) == (before, {}, ())


@pytest.mark.parametrize(
    ("run", "delivered", "codes"),
    [
        pytest.param("run-2", True, [], id="of the run of the intent, and delivered"),
        pytest.param("run-9", True, [TAKEN], id="of another run, and delivered"),
        pytest.param("run-2", False, [], id="not delivered"),
    ],
)
def test_what_is_owed_is_delivered_by_custody_and_the_intent_ends_with_that(
    service: FakeService, journal: Journal, run: str, delivered: object, codes: list[str]
) -> None:
    """The journal asks nothing of its own."""
    sink = FakeSink()
    service.custody = True
    found = made(service)
    service.contexts.clear()
    journal.begin([replace(CREATE, run=run)])
    ids = [found.id] if delivered else []

    recovered = Recovery(service, journal, sink, CONTEXT, never).recover(
        service.look(["acme"]), ["acme"], ids
    )

    assert [note.code for note in recovered.notes] == codes
    assert (service.contexts, sink.kept) == ([], {})
    assert bool(journal.open_intents) is not delivered


@pytest.mark.parametrize("purpose", ["create", "secret"])
def test_with_custody_what_is_not_owed_needs_nothing(
    service: FakeService, journal: Journal, sink: FakeSink, purpose: str
) -> None:
    """It was delivered and acknowledged, and only the end was not written."""
    service.custody = True
    found = made(service)
    service.owed.clear()
    before = dict(service.secrets)
    secret = Intent("secret", "k", WEB, owes_secret=True, id=found.id)
    journal.begin([CREATE if purpose == "create" else secret])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.secrets, sink.kept, journal.open_intents) == (before, {}, ())


@pytest.mark.parametrize(
    ("intent", "said"),
    [
        pytest.param(
            Intent("create", "k", WEB, owes_secret=False, spec={}), an_application(),
            id="a create without a secret that happened",
        ),
        pytest.param(CREATE, a_public_application(), id="an application that has no secret now"),
        pytest.param(
            Intent("secret", "k", WEB, owes_secret=True, id="7"), a_public_application(),
            id="an application whose move to a secret never happened",
        ),
        pytest.param(
            Intent("secret", "k", WEB, owes_secret=True, id="gone"), an_application(),
            id="a secret for an application that is gone",
        ),
    ],
)  # fmt: skip
def test_what_needs_nothing_more_is_ended(
    service: FakeService, journal: Journal, sink: FakeSink, intent: Intent, said: dict[str, object]
) -> None:
    """The journal does not remember what nobody has to do."""
    service.objects["7"] = held(WEB, said, object_id="7")
    journal.begin([intent])

    assert recover(service, journal, sink) == DeliveryResult()
    assert (service.written, sink.kept, journal.open_intents) == ([], {}, ())


@pytest.mark.parametrize("is_held", [True, False])
def test_a_secret_that_was_being_replaced_cannot_be_told_by_the_sink(
    service: FakeService, journal: Journal, sink: FakeSink, is_held: object
) -> None:
    """The one that is there may be the old one."""
    found = service.objects["7"] = held(WEB, object_id="7")
    journal.begin([Intent("secret", "k", WEB, owes_secret=True, id="7")])
    if is_held:
        sink.kept[WEB, found.client_id] = "old"

    assert recover(service, journal, sink) == DeliveryResult([MISSING])
    assert (service.written, journal.open_intents) == ([], ())


def test_a_secret_of_one_of_two_applications_of_a_name_is_told(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The id in its intent says which one, wherever the service lists it."""
    first, second = held(WEB, object_id="6"), held(WEB, object_id="7")
    state = replace(observed(*HOUSE, first), name_clashes=(second,))
    journal.begin([Intent("secret", "k", WEB, owes_secret=True, id="7")])
    recovery = Recovery(service, journal, sink, CONTEXT, never)

    assert recovery.recover(state, ["acme"]) == DeliveryResult([MISSING])
    assert journal.open_intents == ()


def test_several_attempts_at_one_create_give_one_secret(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """The manifest was changed between two runs that were cut: only one of them made it."""
    found = made(service)
    other = replace(CREATE, key="key-2", spec=declared(WEB, an_application(devMode=True)).spec)
    journal.begin([CREATE, other])
    secret = service.secrets[found.id]

    recovered = recover(service, journal, sink)

    assert recovered.delivered == [delivered_owed(found)]
    assert DELIVERED in recovered.notes
    assert sink.kept == {(WEB, found.client_id): secret}
    assert (service.secrets, journal.open_intents) == ({found.id: secret}, ())


def test_a_create_is_asked_for_again_just_as_it_was_sent(
    service: FakeService, journal: Journal, sink: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other body would be refused under its key, and its secret taken for lost."""
    intent = replace(CREATE, prevent_delete=True, critical=True)
    made(service, intent)
    journal.begin([intent])
    asked: list[Order] = []
    write = service.write

    def watched(
        orders: Sequence[Order], context: Mapping[str, Any]
    ) -> Sequence[Written | ServiceError]:
        asked.extend(orders)
        return write(orders, context)

    monkeypatch.setattr(service, "write", watched)

    recover(service, journal, sink)

    marks: dict[str, Any] = {"prevent_delete": True, "critical": True}
    assert asked == [CreateOrder(WEB, SPEC, "key-1", id_of(ACME), id_of(SHOP), **marks)]


def test_a_new_secret_is_asked_for_by_everything_that_names_its_application() -> None:
    """A service by its ids, another by the organization that goes with the call."""
    found = held(WEB, object_id="7", client_id="c")

    assert secret_order(found) == SecretOrder(WEB, "7", id_of(ACME), id_of(SHOP), "c")


def test_what_stays_open_keeps_nothing_behind_it_from_being_healed(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """An intent of an organization that was not looked at, and then one of this."""
    elsewhere = replace(CREATE, key="key-0", ref=a_ref(organization="initech"))
    found = made(service)
    journal.begin([elsewhere, CREATE])

    assert recover(service, journal, sink) == DeliveryResult([DELIVERED], [delivered_owed(found)])
    assert journal.open_intents == (elsewhere,)


def test_what_belongs_to_an_organization_that_was_not_looked_at_stays_open(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """A run of a part of the manifests must not forget the secrets of another part."""
    elsewhere = a_ref(organization="initech")
    intents = [
        replace(CREATE, ref=elsewhere),
        Intent("secret", "key-2", elsewhere, owes_secret=True, id="9"),
    ]
    journal.begin(intents)

    assert recover(service, journal, sink) == DeliveryResult()
    assert list(journal.open_intents) == intents


def test_without_a_sink_a_secret_waits_and_that_is_told(
    service: FakeService, journal: Journal
) -> None:
    """Nothing is lost: the next run with a sink delivers it."""
    made(service)
    journal.begin([CREATE])

    assert recover(service, journal, None) == DeliveryResult([OWED])
    service.keeps_answers = False
    assert recover(service, journal, None) == DeliveryResult([OWED])
    assert journal.open_intents == (CREATE,)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(lost(), id="no answer"),
        pytest.param(ServiceError("internal", remedy="r"), id="an internal error"),
        pytest.param(AccessDeniedError("not you", remedy="r"), id="not allowed now"),
    ],
)
def test_while_the_first_answer_may_still_come_no_new_secret_is_made(
    service: FakeService, journal: Journal, sink: FakeSink, failure: ServiceError
) -> None:
    """The next run would deliver the first one, which would no longer count."""
    found = made(service)
    before = dict(service.secrets)
    journal.begin([CREATE])
    service.refuse["storefront"] = failure

    def only_once(where: str) -> None:
        if where == "answer":
            service.refuse.clear()

    service.trouble = only_once
    with pytest.raises(type(failure)):
        recover(service, journal, sink)

    assert (service.secrets, journal.open_intents) == (before, (CREATE,))
    recover(service, journal, sink)
    assert sink.kept == {(WEB, found.client_id): before[found.id]}


def test_a_sink_that_cannot_take_the_secret_leaves_it_open(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """And nothing was made anew, for the sink was asked first."""
    found = made(service)
    before = dict(service.secrets)
    journal.begin([CREATE])

    def full(where: str) -> None:
        raise LocalFileError(f"full at {where}", remedy="r")

    sink.trouble = full
    with pytest.raises(LocalFileError, match="full at prove"):
        recover(service, journal, sink)

    assert service.secrets == before
    assert journal.open_intents == (CREATE,)
    assert found.id in service.objects


def test_a_service_that_is_gone_leaves_everything_open(
    service: FakeService, journal: Journal, sink: FakeSink
) -> None:
    """There is always a next run."""
    made(service)
    journal.begin([CREATE])
    state = service.observe(["acme"])

    def gone(where: str) -> None:
        raise ServiceUnavailableError(where, remedy="r")

    service.trouble = gone
    with pytest.raises(ServiceUnavailableError):
        Recovery(service, journal, sink, CONTEXT, never).recover(state, ["acme"])

    assert journal.open_intents == (CREATE,)


PORTAL = a_ref(name="portal")
FOUND = held(WEB, object_id="7")
CLIENT = FOUND.client_id
RENAME, DELETE = Update(declared(PORTAL), FOUND), Delete(FOUND)
DONE = Written("7", 9, CLIENT)


@pytest.fixture
def stocked() -> FakeSink:
    """Return a sink that has the secret of the application."""
    made = FakeSink()
    made.kept = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
    return made


THERE = {(WEB.key, CLIENT): "geheim", (WEB.key, "other"): "theirs"}
MOVED = {(WEB.key, "other"): "theirs", (PORTAL.key, CLIENT): "geheim"}
GONE = {(WEB.key, "other"): "theirs"}
REFUSED = PreconditionFailedError("moved on", remedy="r")


@pytest.mark.parametrize(
    ("change", "result", "kept", "ends"),
    [
        pytest.param(RENAME, DONE, MOVED, True, id="renamed"),
        pytest.param(RENAME, REFUSED, THERE, True, id="not renamed"),
        pytest.param(RENAME, lost(), THERE, False, id="perhaps renamed"),
        pytest.param(DELETE, DONE, GONE, True, id="deleted"),
        pytest.param(DELETE, REFUSED, THERE, True, id="not deleted"),
        pytest.param(DELETE, ServiceError("x", remedy="r"), THERE, False, id="perhaps deleted"),
    ],
)
def test_the_sink_follows_what_was_carried_out(
    journal: Journal,
    stocked: FakeSink,
    change: Change,
    result: Written | ReconcilerError,
    kept: object,
    ends: object,
) -> None:
    """What may have happened stays open."""
    sync = SinkSync(journal, stocked)
    journal.begin(sync.intents([ChangeRun(change)]))

    sync.follow([ChangeRun(change, result=result)])
    journal.end(sync.take_ended())

    assert stocked.kept == kept
    assert (journal.open_intents == ()) is ends


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Update(declared(WEB), FOUND), id="an update that keeps the name"),
        pytest.param(Delete(held(PARTNER, client_id="c")), id="a delete of another kind"),
        pytest.param(Delete(held(WEB, client_id="")), id="an application without a client id"),
    ],
)
def test_other_changes_need_nothing(journal: Journal, stocked: FakeSink, change: Change) -> None:
    """The journal waits for the disk."""
    assert list(SinkSync(journal, stocked).intents([ChangeRun(change)])) == []
    assert list(SinkSync(journal, None).intents([ChangeRun(RENAME), ChangeRun(DELETE)])) == []


NOW = observed(*HOUSE, FOUND)
ELSEWHERE = observed(*HOUSE, replace(FOUND, ref=PORTAL))
WITHOUT = observed(*HOUSE)


@pytest.mark.parametrize(
    ("purpose", "state", "kept", "ends"),
    [
        pytest.param("rename", ELSEWHERE, MOVED, True, id="renamed"),
        pytest.param("rename", NOW, THERE, True, id="never renamed"),
        pytest.param("rename", WITHOUT, THERE, True, id="deleted by other means since"),
        pytest.param("delete", WITHOUT, GONE, True, id="deleted"),
        pytest.param("delete", NOW, THERE, True, id="never deleted"),
        pytest.param("delete", observed(), THERE, False, id="an organization not to be seen"),
        pytest.param(
            "delete", replace(WITHOUT, incomplete=("a page is missing",)), THERE, False,
            id="an incomplete listing",
        ),
    ],
)  # fmt: skip
def test_a_run_that_was_cut_short_is_ended(
    journal: Journal,
    stocked: FakeSink,
    purpose: str,
    state: ObservedState,
    kept: object,
    ends: object,
) -> None:
    """A secret is removed only where its application surely is no more."""
    change = RENAME if purpose == "rename" else DELETE
    journal.begin(SinkSync(journal, stocked).intents([ChangeRun(change)]))

    SinkSync(journal, stocked).recover(state, ["ACME"])

    assert stocked.kept == kept
    assert (journal.open_intents == ()) is ends


def test_another_organization_and_a_run_without_a_sink_leave_it_open(
    journal: Journal, stocked: FakeSink
) -> None:
    """The run that can end it comes later."""
    journal.begin(SinkSync(journal, stocked).intents([ChangeRun(DELETE)]))

    assert SinkSync(journal, stocked).recover(WITHOUT, ["other"]) == []
    for state in (WITHOUT, NOW):
        assert SinkSync(journal, None).recover(state, ["acme"]) == []

    assert stocked.kept == THERE
    assert len(journal.open_intents) == 1


def test_a_change_that_is_not_in_the_journal_is_not_followed(
    journal: Journal, stocked: FakeSink
) -> None:
    """The run after a crash would not know of it."""
    assert SinkSync(journal, stocked).follow([ChangeRun(RENAME, result=DONE)]) == []
    assert stocked.kept == THERE


def test_a_sink_is_left_alone_where_nothing_was_renamed_or_deleted(
    journal: Journal, stocked: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink may be a program, which is not started for nothing."""
    sync = SinkSync(journal, stocked)
    sync.intents([ChangeRun(RENAME)])
    for method in ("moved", "removed"):
        monkeypatch.delattr(FakeSink, method)

    assert sync.follow([ChangeRun(RENAME, result=REFUSED)]) == []


def test_each_of_several_changes_is_followed_and_told(
    journal: Journal, stocked: FakeSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes that the sink need not follow stand before and between them, and in the journal."""
    second = held(a_ref(name="second"), object_id="8")
    changes: list[Change] = [Create(declared(a_ref(name="new"))), RENAME, Delete(second)]
    told = [warning("MOVED", "s", "r"), warning("REMOVED", "s", "r")]
    monkeypatch.setattr(stocked, "moved", lambda moves: [[told[0]] for _ in moves])
    monkeypatch.setattr(stocked, "removed", lambda gone: [[told[1]] for _ in gone])
    sync = SinkSync(journal, stocked)
    intents = sync.intents([ChangeRun(change) for change in changes])
    journal.begin([CREATE, *intents])

    assert sync.follow([ChangeRun(change, result=DONE) for change in changes]) == told
    assert sync.take_ended() == [intent.key for intent in intents]
    assert SinkSync(journal, stocked).recover(ELSEWHERE, ["acme"]) == told
    assert journal.open_intents == (CREATE,)


@pytest.mark.parametrize(
    ("change", "done", "later"),
    [
        pytest.param(RENAME, "renamed", (ELSEWHERE, MOVED), id="renamed"),
        pytest.param(DELETE, "deleted", (WITHOUT, GONE), id="deleted"),
    ],
)
def test_a_sink_that_cannot_follow_is_told_and_tried_again(
    journal: Journal,
    stocked: FakeSink,
    change: Change,
    done: str,
    later: tuple[ObservedState, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change itself is done."""
    failure = LocalFileError("the disk is full", remedy="Make room.")
    sync = SinkSync(journal, stocked)
    journal.begin(sync.intents([ChangeRun(change)]))
    with monkeypatch.context() as patched:
        for method in ("moved", "removed"):
            patched.setattr(stocked, method, lambda followed: [failure for _ in followed])

        told = sync.follow([ChangeRun(change, result=DONE)])

    assert told == [
        note(
            "SECRET-NOT-FOLLOWED",
            f"the sink did not follow an application that was {done}: the disk is full",
            f"The file of {WEB} is as it was; the next apply tries again. Make room.",
        )
    ]
    assert sync.take_ended() == []
    state, kept = later
    SinkSync(journal, stocked).recover(state, ["acme"])
    assert (stocked.kept, journal.open_intents) == (kept, ())


def test_what_is_open_is_read_from_the_disk_again(tmp_path: Path, stocked: FakeSink) -> None:
    """The next run is another process."""
    path = tmp_path / "other.jsonl"
    with Journal(path) as first:
        first.begin(SinkSync(first, stocked).intents([ChangeRun(RENAME)]))
    with Journal(path) as second:
        (intent,) = second.open_intents

    assert intent == Intent(
        "rename", intent.key, WEB, owes_secret=False, id="7", client_id=CLIENT
    )  # fmt: skip
