"""The executor: in which order things happen, and what one failure keeps back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.executor import Executor
from reconciler.apply.journal import Intent, Journal
from reconciler.apply.outcome import ApplyReport, Outcome, Progress, Status
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
from reconciler.loop import carry_out, preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Create, Delete, Plan, Scope, Update, ref_of
from reconciler.resources.ref import Kind, ResourceRef, project_ref
from reconciler.service_client.port import CreateOrder
from reconciler.state import Resource
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    PARTNER,
    WEB,
    FakeService,
    FakeSink,
    Trouble,
    a_plan,
    a_public_application,
    a_ref,
    an_application,
    declared,
    desired,
    held,
    id_of,
    lost,
    name_of,
    no_trouble,
    observed,
)

MADE, FAILED, NOT_TRIED = Status.MADE, Status.FAILED, Status.NOT_TRIED
CONTEXT = {"tree": "default", "plan": "sha256:1"}


class LoudJournal(Journal):
    """A journal that tells before it records."""

    trouble: Trouble = staticmethod(no_trouble)

    def begin(self, intents: Sequence[Intent]) -> None:
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
        plan = a_plan(*changes, organizations=tuple(organizations))
        seen = observed(*self.service.objects.values())
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


def test_an_effect_that_must_survive_a_crash_is_on_the_disk_before_the_next(bench: Bench) -> None:
    """Sink proven, intent, request, secret, end: in any other order a crash loses something."""
    bench.run(create(WEB))

    assert bench.log == ["prove", "renew", "begin", "send", "answer", "keep", "kept", "end"]


def test_a_move_to_a_secret_is_begun_before_the_update_is_sent(bench: Bench) -> None:
    """Afterwards nobody could tell that the application has none."""
    found = held(WEB, a_public_application(), object_id="7")
    bench.service.objects["7"] = found
    change = Update(declared(WEB), found)

    report = bench.run(change)

    assert bench.log == [
        "prove", "renew", "begin", "send", "answer", "send", "answer", "keep", "kept", "end",
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

    assert [note.code for note in report.notes] == ["HEAL-SECRET-DELIVERED"]
    assert bench.sink
    assert bench.sink.kept == {(WEB, found.client_id): bench.service.secrets[found.id]}


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
    """The next run delivers the same secret once more, which harms nobody."""
    bench.failures["end"] = LocalFileError("cannot write the journal", remedy="Make room.")
    bench.service.objects[id_of(PARTNER)] = LATER.held

    report = bench.run(create(WEB), LATER)

    assert statuses(report) == [("storefront", MADE), ("partner", NOT_TRIED)]
    assert [(note.code, note.summary, note.remedy) for note in report.notes] == [
        (
            "APPLY-NOT-RECORDED",
            "cannot write the journal",
            "What was done is done; the next apply looks at it again. Make room.",
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
    assert [intent.purpose for intent in bench.journal.open_intents] == ["secret"]

    bench.failures.clear()
    assert [note.code for note in bench.run().notes] == ["HEAL-SECRET-NEW"]
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


# Keys of creates that were cut short.

BEFORE = Intent("create", "old-key", WEB, owes_secret=True, spec=declared(WEB).spec)


@pytest.mark.parametrize(
    ("change", "again"),
    [
        pytest.param(create(WEB), True, id="the same create"),
        pytest.param(create(WEB, an_application(devMode=True)), False, id="with another field"),
        pytest.param(create(a_ref(name="Storefront")), False, id="with the name in another case"),
    ],
)
def test_a_key_is_used_again_for_the_same_create_alone(
    bench: Bench, change: Create, again: object
) -> None:
    """The service refuses a key with another body, and answers the same body as before."""
    bench.journal.begin([BEFORE])

    report = bench.run(change)

    (order,) = bench.service.written
    assert isinstance(order, CreateOrder)
    assert (order.key == "old-key") is again
    assert report.outcomes[0].status is MADE
    assert bench.journal.open_intents == (), "the old attempt can no longer happen"


def test_an_old_attempt_stays_open_while_it_may_be_what_has_the_name(bench: Bench) -> None:
    """Its request was under way all the time: the next run fetches its secret."""
    bench.journal.begin([BEFORE])
    bench.service.refuse["storefront"] = AlreadyExistsError("taken", remedy="r")

    bench.run(create(WEB, an_application(devMode=True)))

    assert bench.journal.open_intents == (BEFORE,)


def test_an_attempt_that_nobody_wants_any_more_is_forgotten(bench: Bench) -> None:
    """Otherwise, one day, it would give a new secret to somebody else's application."""
    bench.journal.begin([BEFORE])

    assert bench.run(create(GREET)).notes == ()
    assert bench.journal.open_intents == ()


def test_healing_moves_on_what_the_plan_expects(bench: Bench) -> None:
    """A new secret is an event of the application; its update is not outdated by that."""
    found = held(WEB, object_id="7")
    bench.service.objects["7"] = found
    bench.journal.begin([Intent("secret", "k", WEB, owes_secret=True, id="7")])

    report = bench.run(Update(declared(WEB, an_application(devMode=True)), found))

    assert [note.code for note in report.notes] == ["HEAL-SECRET-NEW"]
    assert [outcome.status for outcome in report.outcomes] == [MADE]


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


# The whole loop.


def loop(bench: Bench, resources: Sequence[Resource]) -> tuple[Plan, ApplyReport]:
    """Plan and carry out, as the command does."""
    wanted = desired(*OWNERS, *resources)
    plan, seen = preview(wanted, bench.service, Scope(), Allowances())
    executor = Executor(bench.service, bench.journal, bench.sink, bench.watch, CONTEXT)
    return plan, carry_out(plan, seen, wanted, bench.service, executor)


def test_after_a_run_the_service_is_looked_at_again(bench: Bench) -> None:
    """Zero remaining is not assumed; it is observed."""
    plan, report = loop(bench, [declared(WEB), declared(GREET)])

    assert (len(plan.changes), report.remaining) == (2, 0)
    assert bench.log.count("observe") == 2


def test_what_the_service_makes_of_it_is_told_as_remaining(bench: Bench) -> None:
    """A service that changes what it is told would never come to rest."""
    bench.service.refuse["greet"] = InvalidArgumentError("no", remedy="r")

    assert loop(bench, [declared(WEB), declared(GREET)])[1].remaining == 1


def test_a_run_that_was_interrupted_does_not_look_again(bench: Bench) -> None:
    """Whoever stopped it wants the terminal back."""
    bench.watch = FakeWatch(stop_after=0)

    report = loop(bench, [declared(GREET)])[1]

    assert (report.remaining, report.interrupted) == (None, 2)
    assert bench.log.count("observe") == 1


def test_what_was_done_is_told_even_if_nobody_can_look_again(bench: Bench) -> None:
    """A report that is lost to the last request would leave the reader with nothing."""

    def once(where: str) -> None:
        if where == "observe" and bench.log.count("observe"):
            raise lost()
        bench.log.append(where)

    bench.service.trouble = once

    _, report = loop(bench, [declared(GREET)])

    assert statuses(report) == [("greet", MADE)]
    assert report.remaining is None
    assert [(note.code, note.summary, note.remedy) for note in report.notes] == [
        (
            "APPLY-NOT-OBSERVED",
            "what remains is not known: the service did not answer",
            "What was done is told all the same. Run it again.",
        )
    ]
