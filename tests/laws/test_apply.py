"""The law of apply: whatever goes wrong, and wherever, running it again is enough."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.apply.changes import ApplyReport, Progress
from reconciler.apply.executor import Executor
from reconciler.apply.journal import Intent, Journal
from reconciler.diagnostics import Diagnostic
from reconciler.errors import LocalFileError, LockHeldError, ReconcilerError, ServiceError
from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.loop import carry_out, preview
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Scope
from reconciler.resources.ref import Kind
from reconciler.service_client.port import SecretOrder
from reconciler.state import DesiredState, ObservedObject, Resource
from tests.builders import (
    ACME,
    NONE,
    OWNERS,
    SHOP,
    FakeService,
    FakeSink,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    id_of,
    lost,
    no_trouble,
)
from tests.effort import cases

SCOPE = Scope(prune=True)


class PowerCutError(BaseException):
    """The process ends here, and nothing of it runs any more."""


WHATS = ("cut", "fail")
FAILURES: Mapping[str, ReconcilerError] = {
    "observe": lost(),
    "renew": LockHeldError("somebody else writes", remedy="Wait."),
    "send": ServiceError("the store failed", remedy="r"),
    "answer": lost(),
    "claim": lost(),
    "claimed": lost(),
    "acknowledge": lost(),
    "acknowledged": lost(),
    "prove": LocalFileError("the sink is full", remedy="r"),
    "keep": LocalFileError("the sink is full", remedy="r"),
    "kept": LocalFileError("the sink is full", remedy="r"),
    "begin": LocalFileError("the journal is full", remedy="r"),
    "begun": LocalFileError("the journal is full", remedy="r"),
    "end": LocalFileError("the journal is full", remedy="r"),
    "ended": LocalFileError("the journal is full", remedy="r"),
}


class Faults:
    """Counts the effects of a run and lets some of them fail, or the power."""

    def __init__(self, at: Mapping[int, str]) -> None:
        self._at = at
        self._step = 0
        self.met: set[str] = set()

    def __call__(self, where: str) -> None:
        self._step += 1
        what = self._at.get(self._step)
        if what is not None:
            self.met.add(f"{what} {where}")
            raise PowerCutError if what == "cut" else FAILURES[where]


class TroubledJournal(Journal):
    """A journal that tells before and after each effect."""

    trouble = staticmethod(no_trouble)

    def begin(self, intents: Sequence[Intent]) -> None:
        if intents:
            self.trouble("begin")
        super().begin(intents)
        if intents:
            self.trouble("begun")

    def end(self, keys: Sequence[str]) -> None:
        if keys:
            self.trouble("end")
        super().end(keys)
        if keys:
            self.trouble("ended")


class Quiet:
    """Watches without a word."""

    def begins(self, changes: Sequence[Change]) -> None:
        """Take no note."""

    def progress(self, progress: Progress) -> None:
        """Take no note."""

    def stop_signal(self) -> int:
        """Never ask to stop."""
        return 0


def apply(
    wanted: DesiredState, service: FakeService, sink: FakeSink, path: Path, faults: Faults | None
) -> ApplyReport:
    """Run one apply, as the command does, with these faults."""
    trouble = faults or no_trouble
    service.trouble = sink.trouble = trouble
    try:
        with TroubledJournal(path) as journal:
            journal.trouble = trouble
            plan, seen = preview(wanted, service, SCOPE, Allowances())
            executor = Executor(service, journal, sink, Quiet(), {"tree": SCOPE.tree})
            report = carry_out(plan, seen, wanted, service, executor)
            journal.trouble = no_trouble  # the report is shown
            executor.was_told()
            return report
    finally:
        service.trouble = sink.trouble = no_trouble


SPECS: Mapping[Kind, Sequence[dict[str, Any]]] = {
    Kind.OIDC_APPLICATION: (
        an_application(),
        an_application(devMode=True),
        an_application(authMethodType=NONE),
    ),
    Kind.ACTION: (an_action(), an_action(timeout="1s")),
}
NAMES = ("a", "b", "c")
TARGETS = [a_ref(kind, name) for kind in SPECS for name in NAMES]


@st.composite
def declarations(draw: st.DrawFn) -> list[Resource]:
    """Draw what is declared: owners, and some of a few applications and actions."""
    refs = draw(st.sets(st.sampled_from(TARGETS), max_size=4))
    return [
        *OWNERS,
        *(declared(ref, draw(st.sampled_from(SPECS[ref.kind]))) for ref in sorted(refs)),
    ]


@st.composite
def holdings(draw: st.DrawFn) -> list[ObservedObject]:
    """Draw what is held already: nothing, or the owners and some objects of this tree."""
    if draw(st.booleans()):
        return []
    refs = draw(st.sets(st.sampled_from(TARGETS), max_size=3))
    return [
        held(ACME),
        held(SHOP),
        *(held(ref, draw(st.sampled_from(SPECS[ref.kind]))) for ref in sorted(refs)),
    ]


OWED, GONE = a_ref(name="owed"), a_ref(name="gone")
WAS, NOW = a_ref(name="was"), a_ref(name="now")
RENAMED = declared(NOW, pinned_id="renamed")
FAULTS = st.dictionaries(st.integers(1, 24), st.sampled_from(WHATS), min_size=1, max_size=3)


def a_world(objects: Sequence[ObservedObject]) -> tuple[FakeService, FakeSink]:
    """Return a service that holds these and a sink that has received their secrets."""
    service, sink = FakeService(*objects), FakeSink()
    for found in objects:
        if found.client_id and has_client_secret(found.spec):
            service.secrets[found.id] = f"old-{found.id}"
            sink.kept[found.ref.key, found.client_id] = f"old-{found.id}"
    return service, sink


def delivered(service: FakeService, sink: FakeSink) -> bool:
    """Say whether every secret that counts is in the sink, as the service made it last."""
    apps = [found for found in service.objects.values() if found.client_id]
    owed = [found for found in apps if has_client_secret(found.spec)]
    return all(
        sink.kept.get((found.ref.key, found.client_id)) == service.secrets.get(found.id, "none")
        for found in owed
    )


@settings(max_examples=cases(100), deadline=None)
@given(
    objects=holdings(),
    before=declarations(),
    after=declarations(),
    faults=st.lists(FAULTS, min_size=1, max_size=3),
    renames=st.booleans(),
)
def test_after_any_faults_one_more_apply_ends_it_all(
    objects: list[ObservedObject],
    before: list[Resource],
    after: list[Resource],
    faults: list[dict[int, str]],
    *,
    renames: bool,
) -> None:
    """No duplicate, no lost secret, an empty plan: even if the manifests changed in between."""
    if objects and renames:
        objects = [*objects, held(WAS, object_id="renamed")]
        before, after = [*before, RENAMED], [*after, RENAMED]
    service, sink = a_world(objects)
    first, then = desired(*before), desired(*after)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "apply.jsonl"
        for at in faults:
            with suppress(PowerCutError, ReconcilerError):
                apply(first, service, sink, path, Faults(at))

        report = apply(then, service, sink, path, None)

        assert [outcome.error for outcome in report.outcomes if outcome.error] == []
        assert report.remaining == 0
        assert delivered(service, sink)
        names = [found.ref.key for found in service.objects.values()]
        assert len(names) == len(set(names))
        secrets, written = dict(service.secrets), len(service.written)
        apply(then, service, sink, path, None)
        assert (service.secrets, len(service.written)) == (secrets, written)
        with Journal(path) as journal:
            assert journal.open_intents == ()


@settings(max_examples=100, deadline=None)
@given(objects=holdings(), wanted=declarations(), faults=FAULTS)
def test_a_secret_in_the_sink_is_never_made_anew(
    objects: list[ObservedObject], wanted: list[Resource], faults: dict[int, str]
) -> None:
    """Somebody may sign in with it already: a new one would lock them out."""
    service, sink = a_world(objects)
    state = desired(*wanted)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "apply.jsonl"
        with suppress(PowerCutError, ReconcilerError):
            apply(state, service, sink, path, Faults(faults))
        known = {
            found.id: secret
            for found in service.objects.values()
            if (secret := sink.kept.get((found.ref.key, found.client_id)))
            and service.secrets.get(found.id) == secret
            and not _moved(found, objects)
        }
        apply(state, service, sink, path, None)

        kept = {each: service.secrets[each] for each in known if each in service.secrets}
        assert kept == {each: known[each] for each in kept}


def _moved(found: ObservedObject, before: Sequence[ObservedObject]) -> bool:
    """Say whether an application was given a secret by an update."""
    old = next((each for each in before if each.id == found.id), None)
    return old is not None and not has_client_secret(old.spec)


def test_the_faults_reach_every_effect_of_a_run(tmp_path: Path) -> None:
    """A law that never meets a fault at some effect says nothing about it."""
    met: set[str] = set()
    refs = (OWED, a_ref(name="a"), a_ref(Kind.ACTION, "b"))
    wanted = desired(*OWNERS, *map(declared, refs))
    for what in WHATS:
        for step in range(1, 40):
            # What is deleted is in the journal, as the sink has to follow.
            service, sink = a_world([held(ACME), held(SHOP), held(OWED), held(GONE)])
            service.write([SecretOrder(service.objects[id_of(OWED)])], {"tree": SCOPE.tree})
            faults = Faults({step: what})
            path = tmp_path / f"{what}-{step}"
            with suppress(PowerCutError, ReconcilerError):
                apply(wanted, service, sink, path, faults)
            met |= faults.met

    assert met == {f"{what} {where}" for what in WHATS for where in FAILURES}


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("step", range(1, 24))
def test_an_application_that_moves_to_a_secret_gets_it_wherever_the_run_was_cut(
    step: int, what: str, tmp_path: Path
) -> None:
    """The update is done and the secret is not: the next run must see that it is owed."""
    ref = a_ref(name="a")
    objects = [held(ACME), held(SHOP), held(ref, an_application(authMethodType=NONE))]
    service, sink = a_world(objects)
    wanted = desired(*OWNERS, declared(ref))
    path = tmp_path / "apply.jsonl"
    with suppress(PowerCutError, ReconcilerError):
        apply(wanted, service, sink, path, Faults({step: what}))

    report = apply(wanted, service, sink, path, None)

    assert report.remaining == 0
    assert service.secrets
    assert delivered(service, sink)


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("step", range(1, 16))
@pytest.mark.parametrize("wanted", [(RENAMED,), ()], ids=["renamed", "deleted"])
def test_the_sink_follows_a_rename_and_a_delete_wherever_the_run_was_cut(
    wanted: Sequence[Resource], step: int, what: str, tmp_path: Path
) -> None:
    """The change is done and the file is not: only the journal can tell."""
    kept = held(a_ref(name="kept"))
    service, sink = a_world([held(ACME), held(SHOP), kept, held(WAS, object_id="renamed")])
    state = desired(*OWNERS, declared(kept.ref), *wanted)
    path = tmp_path / "apply.jsonl"
    with suppress(PowerCutError, ReconcilerError):
        apply(state, service, sink, path, Faults({step: what}))

    apply(state, service, sink, path, None)

    names = {"kept", *(resource.ref.name for resource in wanted)}
    assert sorted(ref.name for ref, _ in sink.kept) == sorted(names)
    assert delivered(service, sink)


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("step", range(1, 24))
@pytest.mark.parametrize("is_new", [True, False])
def test_without_custody_a_secret_that_no_sink_has_is_an_error_of_the_next_run(
    step: int, what: str, *, is_new: bool, tmp_path: Path
) -> None:
    """Only the journal can tell that it was made; it is not made anew."""
    ref = a_ref(name="a")
    found = [] if is_new else [held(ref, an_application(authMethodType=NONE))]
    service, sink = a_world([held(ACME), held(SHOP), *found])
    service.custody = False
    wanted = desired(*OWNERS, declared(ref))
    path = tmp_path / "apply.jsonl"
    with suppress(PowerCutError, ReconcilerError):
        apply(wanted, service, sink, path, Faults({step: what}))

    report = apply(wanted, service, sink, path, None)

    told = [note.ref for note in report.notes if note.code == "SECRET-NOT-IN-SINK" if note.is_error]
    assert delivered(service, sink) or told == [ref]
    assert len([one for one in service.objects.values() if one.ref == ref]) == 1


@pytest.mark.parametrize("step", range(1, 24))
@pytest.mark.parametrize("is_new", [True, False])
def test_a_run_that_is_killed_before_it_could_tell_leaves_that_to_the_next_one(
    step: int, *, is_new: bool, tmp_path: Path
) -> None:
    """The first run is cut after the secret was made, and the second wherever it is."""
    ref, other = a_ref(name="a"), a_ref(name="b")
    found = [] if is_new else [held(ref, an_application(authMethodType=NONE))]
    path = tmp_path / "apply.jsonl"
    for first in range(1, 24):
        path.unlink(missing_ok=True)
        service, sink = a_world([held(ACME), held(SHOP), *found])
        service.custody = False
        wanted = desired(*OWNERS, declared(ref))
        with suppress(PowerCutError):
            apply(wanted, service, sink, path, Faults({first: "cut"}))
        if delivered(service, sink):
            continue
        wanted = desired(*OWNERS, declared(ref), declared(other))
        notes: list[Diagnostic] = []
        with suppress(PowerCutError):
            notes += apply(wanted, service, sink, path, Faults({step: "cut"})).notes
        notes += apply(wanted, service, sink, path, None).notes

        told = {note.ref for note in notes if note.code == "SECRET-NOT-IN-SINK" if note.is_error}
        names = {ref for ref, _ in sink.kept}
        assert {ref.key, other.key} <= names | {each.key for each in told if each}
