"""The executor: in which order things happen, and what one failure keeps back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.changes import ApplyReport, Delivered, Outcome, Progress, Status
from reconciler.apply.executor import Executor
from reconciler.apply.journal import Intent, Journal
from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    InvalidArgumentError,
    LocalFileError,
    LockHeldError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ReconcilerError,
    ServiceError,
    UsageError,
)
from reconciler.plan.model import Change, Create, Delete, Scope, Update, ref_of
from reconciler.plan.ownership import owed_to
from reconciler.resources.ref import Kind, ResourceRef, project_ref
from reconciler.service_client.port import CreateOrder, SecretOrder, Written
from reconciler.state import OwedSecret
from tests.builders import (
    ACME,
    GREET,
    HOUSE,
    PARTNER,
    SHOP,
    WEB,
    FakeService,
    FakeSink,
    Trouble,
    a_plan,
    a_public_application,
    a_ref,
    declared,
    held,
    id_of,
    lost,
    name_of,
    no_trouble,
)

MADE, FAILED, NOT_TRIED = Status.MADE, Status.FAILED, Status.NOT_TRIED
CONTEXT = {"tree": "default", "plan": "sha256:1"}


class LoudJournal(Journal):
    """A journal that tells before it records."""

    trouble: Trouble = staticmethod(no_trouble)

    def begin(self, intents: Sequence[Intent]) -> None:
        if intents:
            self.trouble("begin")
        super().begin(intents)

    def end(self, keys: Sequence[str]) -> None:
        if keys:
            self.trouble("end")
        super().end(keys)


class FakeWatch:
    """Keeps what it is told, and asks to stop after so many changes."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.begun: list[str] = []
        self.told: list[tuple[int, int, str]] = []
        self._stop_after = stop_after

    def begins(self, changes: Sequence[Change]) -> None:
        self.begun += [ref_of(change).name for change in changes]

    def progress(self, progress: Progress) -> None:
        name = ref_of(progress.latest.change).name
        self.told.append((progress.done, progress.total, name))

    def stop_signal(self) -> int:
        is_over = self._stop_after is not None and len(self.told) >= self._stop_after
        return 2 if is_over else 0


class Bench:
    """A service, a journal and a sink, in which a test lets one thing go wrong."""

    def __init__(self, path: Path) -> None:
        self.service = FakeService(*HOUSE)
        self.sink: FakeSink | None = FakeSink()
        self.journal = LoudJournal(path)
        self.watch = FakeWatch()
        self.log: list[str] = []
        self.failures: dict[str, ReconcilerError] = {}
        for part in (self.service, self.journal, self.sink):
            part.trouble = self._note

    def _note(self, where: str) -> None:
        self.log.append(where)
        if where in self.failures:
            raise self.failures[where]

    def run(self, *changes: Change, organizations: Sequence[str] = ("acme",)) -> ApplyReport:
        """Carry out these changes."""
        seen = self.service.look(organizations)
        owed = owed_to(Scope(), seen)
        plan = a_plan(*changes, organizations=tuple(organizations), owed=owed)
        executor = Executor(self.service, self.journal, self.sink, self.watch, CONTEXT)
        return executor.run(plan, seen)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Set everything up for one run."""
    made = Bench(tmp_path / "apply.jsonl")
    yield made
    made.journal.close()


def create(ref: ResourceRef, said: dict[str, Any] | None = None) -> Create:
    return Create(declared(ref, said))


def statuses(report: ApplyReport) -> list[tuple[str, Status]]:
    """Return the name and the end of every change, in the report's order."""
    return [(ref_of(outcome.change).name, outcome.status) for outcome in report.outcomes]


def test_what_was_made_is_told_with_its_id_and_where_its_secret_is(bench: Bench) -> None:
    """The reader goes on from here: client id into the application, secret from the sink."""
    web, greet = create(WEB), create(GREET)

    report = bench.run(greet, web)

    service = bench.service
    app, action = (
        next(o for o in service.objects.values() if o.ref == ref) for ref in (WEB, GREET)
    )
    assert report == ApplyReport(
        (
            Outcome(greet, MADE, action.id),
            Outcome(web, MADE, app.id, app.client_id, "fake:acme/shop/storefront"),
        )
    )
    assert bench.sink
    assert bench.sink.kept == {(WEB, app.client_id): service.secrets[app.id]}
    assert bench.watch.begun == ["greet", "storefront"]
    assert bench.watch.told == [(1, 2, "greet"), (2, 2, "storefront")]
    assert service.contexts == [CONTEXT]
    assert bench.journal.open_intents == ()


@pytest.mark.parametrize("custody", [True, False])
def test_an_effect_that_must_survive_a_crash_is_on_the_disk_before_the_next(
    bench: Bench, custody: object
) -> None:
    """Sink, intent, request, secret, custody, end: any other order loses something in a crash."""
    bench.service.custody = bool(custody)
    bench.run(create(WEB))

    effects = [
        "prove", "renew", "begin", "send", "answer", "renew", "keep", "kept",
        "renew", "acknowledge", "acknowledged", "end",
    ]  # fmt: skip
    of_journal = {"begin", "end"} if custody else set()
    assert bench.log == [effect for effect in effects if effect not in of_journal]
    assert bench.service.owed == {}


def test_a_move_to_a_secret_is_begun_before_the_update_is_sent(bench: Bench) -> None:
    """The journal names what may be cut short, where the service cannot."""
    bench.service.custody = False
    found = held(WEB, a_public_application(), object_id="7")
    bench.service.objects["7"] = found
    change = Update(declared(WEB), found)

    report = bench.run(change)

    assert bench.log == [
        "prove", "renew", "begin", "send", "answer", "send", "answer", "renew", "keep", "kept",
        "renew", "acknowledge", "acknowledged", "end",
    ]  # fmt: skip
    assert report.outcomes == (
        Outcome(change, MADE, "7", found.client_id, "fake:acme/shop/storefront"),
    )
    assert bench.sink
    assert bench.sink.kept == {(WEB, found.client_id): bench.service.secrets["7"]}


def test_a_plan_is_carried_out_owners_first_with_the_ids_they_were_given(bench: Bench) -> None:
    """Ids are only known once an owner is made."""
    organization, project = a_ref(Kind.ORGANIZATION, organization="new"), project_ref("new", "p")
    app = a_ref(organization="new", project="P")
    changes = [create(organization), create(project), create(app)]

    report = bench.run(*changes, organizations=["new"])

    assert [outcome.status for outcome in report.outcomes] == [MADE] * 3
    org, made, _ = (outcome.id for outcome in report.outcomes)
    orders = [o for o in bench.service.written if isinstance(o, CreateOrder)]
    assert [(o.organization_id, o.project_id) for o in orders] == [("", ""), (org, ""), (org, made)]


def test_what_cannot_have_its_owner_is_not_tried(bench: Bench) -> None:
    """The outcomes stand in the plan's order all the same."""
    blog = project_ref("acme", "blog")
    bench.service.refuse["blog"] = InvalidArgumentError("no such name", remedy="r")
    changes = [create(blog), create(a_ref(project="blog")), create(WEB), create(GREET)]

    report = bench.run(*changes)

    assert statuses(report) == [
        ("blog", FAILED), ("storefront", NOT_TRIED), ("storefront", MADE), ("greet", MADE),
    ]  # fmt: skip


def test_a_refusal_keeps_back_nothing_else(bench: Bench) -> None:
    """One wrong object is no reason to leave the others undone."""
    refused = bench.service.refuse["greet"] = AccessDeniedError("not you", remedy="r")
    greet, web, partner = create(GREET), create(WEB), create(PARTNER)

    report = bench.run(greet, partner, web)

    assert statuses(report) == [("greet", FAILED), ("partner", MADE), ("storefront", MADE)]
    assert report.outcomes[0] == Outcome(greet, FAILED, error=refused)
    assert bench.journal.open_intents == ()


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        pytest.param(InvalidArgumentError("x", remedy="r"), False, id="invalid argument"),
        pytest.param(ObjectNotFoundError("x", remedy="r"), False, id="not found"),
        pytest.param(AlreadyExistsError("x", remedy="r"), False, id="already exists"),
        pytest.param(AccessDeniedError("x", remedy="r"), False, id="denied"),
        pytest.param(PreconditionFailedError("x", remedy="r"), False, id="moved on"),
        pytest.param(lost(), True, id="no answer"),
        pytest.param(ServiceError("internal", remedy="r"), True, id="an error of no known meaning"),
    ],
)
def test_an_intent_stays_open_while_the_create_may_have_happened(
    bench: Bench, error: ServiceError, stays: object
) -> None:
    """Only a refusal that is certain ends it: otherwise the next run looks."""
    bench.service.custody = False
    bench.service.refuse["storefront"] = error

    report = bench.run(create(WEB))

    assert report.outcomes[0].error is error
    assert bool(bench.journal.open_intents) is stays


def test_an_answer_that_is_lost_is_had_again_by_the_next_run(bench: Bench) -> None:
    """The application was made; its secret must not be lost, nor a second one be made."""
    bench.service.lose = {"storefront"}
    bench.run(create(WEB))
    (found,) = (o for o in bench.service.objects.values() if o.ref == WEB)
    bench.service.lose = set()

    report = bench.run()

    place = "fake:acme/shop/storefront"
    assert report == ApplyReport((), delivered=(Delivered(WEB, found.id, found.client_id, place),))
    assert bench.sink
    assert bench.sink.kept == {(WEB, found.client_id): bench.service.secrets[found.id]}
    assert (bench.service.owed, bench.journal.open_intents) == ({}, ())


# What breaks the whole run.

LATER = Delete(held(PARTNER))


@pytest.mark.parametrize(
    ("where", "error", "sent", "opens"),
    [
        pytest.param("begin", LocalFileError("full", remedy="r"), [], [], id="the journal is full"),
        pytest.param("renew", LockHeldError("lost", remedy="r"), [], [], id="the lock is lost"),
        pytest.param("renew", lost(), [], [], id="the lock cannot be renewed"),
        pytest.param("send", ServiceError("broken", remedy="r"), [], [WEB], id="the store fails"),
        pytest.param("answer", lost(), ["storefront"], [WEB], id="the answer is lost"),
        pytest.param(
            "keep", LocalFileError("full", remedy="r"), ["storefront"], [WEB], id="the sink is full"
        ),
        pytest.param(
            "kept", LocalFileError("full", remedy="r"), ["storefront"], [WEB],
            id="the sink fails at the end",
        ),
    ],
)  # fmt: skip
def test_a_failure_of_the_means_keeps_back_every_later_batch(
    bench: Bench, where: str, error: ReconcilerError, sent: list[str], opens: list[ResourceRef]
) -> None:
    """What failed is told as it is, and what it may have left undone stays in the journal."""
    bench.service.custody = False
    bench.service.objects[id_of(PARTNER)] = LATER.held
    bench.failures[where] = error
    web = create(WEB)

    report = bench.run(web, LATER)

    written = where in {"keep", "kept"}
    failed = Outcome(web, FAILED, error=error, written=written)
    assert report == ApplyReport((failed, Outcome(LATER, NOT_TRIED)))
    assert [name_of(order) for order in bench.service.written] == sent
    assert [intent.ref for intent in bench.journal.open_intents] == opens


def test_what_was_made_and_could_not_be_recorded_is_made_and_told(bench: Bench) -> None:
    """The next run looks for the secret once more, which harms nobody."""
    bench.service.custody = False
    bench.failures["end"] = LocalFileError("cannot write the journal", remedy="Make room.")
    bench.service.objects[id_of(PARTNER)] = LATER.held

    report = bench.run(create(WEB), LATER)

    assert statuses(report) == [("storefront", MADE), ("partner", NOT_TRIED)]
    assert [(note.code, note.summary, note.remedy) for note in report.notes] == [
        (
            "APPLY-NOT-RECORDED",
            "cannot write the journal",
            "What was written stays; the next apply checks it again. Make room.",
        )
    ]
    assert [intent.ref for intent in bench.journal.open_intents] == [WEB]


def test_a_moved_application_whose_secret_failed_is_told_as_failed_and_owed(bench: Bench) -> None:
    """The update is done, but nobody can sign in yet."""
    found = held(WEB, a_public_application(), object_id="7")
    bench.service.objects["7"] = found
    change = Update(declared(WEB), found)
    bench.failures["keep"] = error = LocalFileError("full", remedy="r")

    assert bench.run(change).outcomes == (Outcome(change, FAILED, error=error, written=True),)
    assert bench.journal.open_intents == ()

    bench.failures.clear()
    assert [delivered.error for delivered in bench.run().delivered] == [None]
    assert bench.sink
    assert bench.sink.kept == {(WEB, found.client_id): bench.service.secrets["7"]}


@pytest.mark.parametrize("wanted", ["sink", "no sink"])
def test_a_sink_is_proven_before_anything_is_sent(bench: Bench, wanted: str) -> None:
    """A secret that is answered and cannot be kept is lost."""
    expected: type[ReconcilerError] = UsageError
    if wanted == "sink":
        expected = LocalFileError
        bench.failures["prove"] = LocalFileError("full", remedy="r")
    else:
        bench.sink = None

    with pytest.raises(expected):
        bench.run(create(GREET), create(WEB))

    assert (bench.service.written, bench.journal.open_intents) == ([], ())


def test_without_secrets_no_sink_is_needed(bench: Bench) -> None:
    """Actions and public applications can be applied by whoever has no place for secrets."""
    bench.sink = None

    report = bench.run(create(GREET), create(WEB, a_public_application()))

    assert [outcome.status for outcome in report.outcomes] == [MADE, MADE]


# What an earlier run left open.

BEFORE = Intent("secret", "old-key", WEB)


@pytest.mark.parametrize("change", [create(WEB), create(GREET)])
def test_a_create_that_never_happened_is_made(bench: Bench, change: Create) -> None:
    """A late request of the run that was cut short carries a lease that has ended."""
    bench.service.custody = False
    bench.journal.begin([BEFORE])

    report = bench.run(change)

    (order,) = bench.service.written
    assert isinstance(order, CreateOrder)
    assert (report.outcomes[0].status, report.notes) == (MADE, ())
    assert bench.journal.open_intents == ()


# What is owed.


def owe(bench: Bench, *names: str) -> list[OwedSecret]:
    """Let the service keep secrets of applications that another machine made."""
    for name in names:
        ref = a_ref(name=name)
        order = CreateOrder(declared(ref), id_of(ACME), id_of(SHOP))
        bench.service.write([order], CONTEXT)
    bench.log.clear()
    bench.service.written.clear()
    return list(bench.service.owed.values())


def test_what_is_owed_is_delivered_before_anything_new_is_made(bench: Bench) -> None:
    """And acknowledged only once it is in the sink."""
    (owed,) = owe(bench, "admin")

    report = bench.run(create(GREET))

    assert bench.log == [
        "prove", "renew", "claim", "claimed", "renew", "keep", "kept",
        "renew", "acknowledge", "acknowledged", "renew", "send", "answer",
    ]  # fmt: skip
    assert report.delivered == (
        Delivered(owed.ref, owed.id, owed.client_id, "fake:acme/shop/admin"),
    )
    assert bench.sink
    assert list(bench.sink.kept.values()) == list(bench.service.secrets.values())
    assert bench.service.owed == {}


@pytest.mark.parametrize(
    ("where", "error"),
    [
        pytest.param("claim", lost(), id="the service is gone"),
        pytest.param("claim", AccessDeniedError("x", remedy="r"), id="not allowed"),
        pytest.param("keep", LocalFileError("full", remedy="r"), id="the sink is full"),
    ],
)
def test_what_cannot_be_delivered_stays_owed_and_nothing_new_is_made(
    bench: Bench, where: str, error: ReconcilerError
) -> None:
    """What is made next would be owed as well."""
    (owed,) = owe(bench, "admin")
    bench.failures[where] = error

    report = bench.run(create(WEB))

    assert report.delivered == (Delivered(owed.ref, owed.id, owed.client_id, error=error),)
    assert statuses(report) == [("storefront", NOT_TRIED)]
    assert list(bench.service.owed.values()) == [owed]


def test_a_secret_that_cannot_be_had_keeps_no_other_from_its_sink(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run was quicker, or the time was over since the plan."""
    first, second = owe(bench, "admin", "blog")
    claim = bench.service.claim

    def claimed(
        owed: Sequence[OwedSecret], context: Mapping[str, Any]
    ) -> Sequence[Written | ServiceError]:
        bench.service.owed.pop(first.id, None)
        return claim(owed, context)

    monkeypatch.setattr(bench.service, "claim", claimed)

    report = bench.run()

    assert [(each.ref, bool(each.error)) for each in report.delivered] == [
        (first.ref, True), (second.ref, False),
    ]  # fmt: skip


def test_a_delivery_that_could_not_be_acknowledged_is_done_and_told(bench: Bench) -> None:
    """The next run delivers the same secret again, which harms nobody."""
    owe(bench, "admin")
    bench.failures["acknowledge"] = lost()

    report = bench.run()

    assert [delivered.error for delivered in report.delivered] == [None]
    assert [note.code for note in report.notes] == ["SECRET-NOT-ACKNOWLEDGED"]
    assert len(bench.service.owed) == 1


# A new secret and nothing else.


@pytest.mark.parametrize("has_secret", [True, False])
def test_a_new_secret_writes_no_field(bench: Bench, has_secret: object) -> None:
    """The tree of the run does not become the owner by it."""
    found = held(WEB, object_id="7", has_secret=has_secret)
    bench.service.objects["7"] = found
    change = Update(declared(WEB), found, new_secret=bool(has_secret))

    report = bench.run(change)

    assert [type(order) for order in bench.service.written] == [SecretOrder]
    assert report.outcomes == (
        Outcome(change, MADE, "7", found.client_id, "fake:acme/shop/storefront"),
    )
    assert bench.service.owed == {}


def test_a_new_secret_that_is_refused_has_written_nothing(bench: Bench) -> None:
    """The exit code is that of the refusal, not of half an apply."""
    found = held(WEB, object_id="7", has_secret=True)
    bench.service.objects["7"] = found
    refused = bench.service.refuse["storefront"] = AccessDeniedError("not you", remedy="r")
    change = Update(declared(WEB), found, new_secret=True)

    assert bench.run(change).outcomes == (Outcome(change, FAILED, error=refused),)


# The sink as a witness.


@pytest.mark.parametrize(
    ("custody", "required", "severities"),
    [(True, False, []), (True, True, ["error"]), (False, False, ["warning"])],
)
def test_a_secret_that_is_nowhere_is_told_where_the_service_cannot_be_asked(
    bench: Bench, custody: object, required: object, severities: list[str]
) -> None:
    """Of what this run did not make, a warning: another place may hold it."""
    bench.service.custody = bool(custody)
    bench.service.objects["7"] = held(WEB, object_id="7")
    seen = bench.service.look(["acme"])
    executor = Executor(bench.service, bench.journal, bench.sink, bench.watch, CONTEXT)
    plan = a_plan(in_step=(ACME, SHOP, WEB))

    report = executor.run(plan, seen, require_secrets=bool(required))

    assert [note.severity for note in report.notes] == severities
    assert {note.code for note in report.notes} <= {"SECRET-NOT-IN-SINK"}


# Stopping.


def test_a_signal_stops_the_run_between_two_batches(bench: Bench) -> None:
    """What is in flight is finished and recorded; nothing new is started."""
    bench.watch = FakeWatch(stop_after=1)
    blog = project_ref("acme", "blog")
    bench.service.objects[id_of(PARTNER)] = LATER.held

    report = bench.run(create(blog), create(GREET), LATER)

    assert statuses(report) == [("blog", MADE), ("greet", NOT_TRIED), ("partner", NOT_TRIED)]
    assert (report.interrupted, bench.journal.open_intents) == (2, ())
    assert [name_of(order) for order in bench.service.written] == ["blog"]


def test_a_second_write_without_an_answer_leaves_its_secret_begun(bench: Bench) -> None:
    """It may have been made: the next run ends it. Nothing more is sent in this one."""
    bench.service.custody = False
    found = held(WEB, a_public_application(), object_id="7")
    bench.service.objects["7"] = found
    change, error = Update(declared(WEB), found), lost()
    sent = []

    def second(where: str) -> None:
        sent.append(where)
        if sent.count("send") == 2:
            raise error

    bench.service.trouble = second

    (outcome,) = bench.run(change).outcomes

    assert (outcome.error, outcome.written, outcome.secret_at) == (error, True, "")
    assert [intent.purpose for intent in bench.journal.open_intents] == ["secret"]
