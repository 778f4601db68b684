"""The loop: what a preview asks for, and what a run reports of what remains."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest

from reconciler.apply.changes import ApplyReport, Progress
from reconciler.apply.executor import Executor
from reconciler.apply.journal import Journal
from reconciler.errors import ServiceError, UnseenOrganizationError
from reconciler.loop import (
    NO_FILES,
    LocalFiles,
    carry_out,
    look_for_drift,
    observe_declared,
    preview,
)
from reconciler.plan.diff import kept_notes
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Delete, Scope
from reconciler.resources.fields import Spec
from reconciler.resources.ref import project_ref
from reconciler.service_client.port import Order, Written
from reconciler.state import (
    DesiredState,
    Elsewhere,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    Resource,
)
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    WEB,
    FakeService,
    FakeSink,
    a_public_application,
    an_action,
    declared,
    desired,
    held,
    lost,
    observed,
)
from tests.rows import each_row

WANTED = desired(*OWNERS, declared(GREET))
APP = a_public_application()
OFF = replace(declared(WEB, APP, critical=True), active=False)
NONE = Allowances()


def test_a_plan_is_made_of_values_alone() -> None:
    """What must still be asked is asked before: neither state has a way to ask."""
    named = [
        each for kind in (DesiredState, ObservedState, Scope, Allowances) for each in fields(kind)
    ]

    assert named
    assert [each.name for each in named if "Callable" in str(each.type)] == []


def test_the_rest_of_the_repository_is_searched_only_for_what_would_be_deleted() -> None:
    """The search may take long."""
    asked: list[Collection[ObservedObject]] = []

    def look(doomed: Collection[ObservedObject]) -> Elsewhere:
        asked.append(doomed)
        return Elsewhere(is_whole=True)

    service = FakeService(*HOUSE, held(WEB))
    files = LocalFiles(look)
    preview(desired(*OWNERS, declared(WEB)), service, Scope(prune=True), NONE, files)
    preview(desired(*OWNERS), service, Scope(), NONE, files)
    assert asked == []
    plan, _ = preview(desired(*OWNERS), service, Scope(prune=True), NONE, files)

    assert asked == [[change.held for change in plan.changes if isinstance(change, Delete)]]
    assert [found.ref for found in asked[0]] == [WEB]


def test_journals_are_read_only_where_an_active_object_would_be_deactivated() -> None:
    """Only that can be the rest of a create, and guards do not judge it again."""
    asked: list[ObservedState] = []

    def begun(seen: ObservedState) -> Mapping[str, Spec]:
        asked.append(seen)
        return {held(WEB).id: OFF.spec}

    def codes_of(service: FakeService, files: LocalFiles) -> list[str]:
        plan, _ = preview(desired(*OWNERS, OFF), service, Scope(), NONE, files)
        return [block.code for block in plan.blocks]

    files = LocalFiles(begun=begun)
    codes_of(FakeService(*HOUSE), files)
    codes_of(FakeService(*HOUSE, held(WEB, APP, critical=True, active=False)), files)
    assert asked == []
    made = FakeService(*HOUSE, held(WEB, APP, critical=True))
    assert codes_of(made, NO_FILES) == ["GUARD-CRITICAL"]
    assert codes_of(made, files) == []
    assert len(asked) == 1


class Remembering(FakeService):
    """Says that every object had the name of another one, and of what that was asked."""

    def __init__(self, *objects: ObservedObject) -> None:
        super().__init__(*objects)
        self.asked: list[str] = []

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        self.asked += object_ids
        event = ObjectEvent("application.added", 1, "", "ana", {}, {"name": WEB.name.upper()})
        return ((each, [event]) for each in object_ids)


RENAMED = held(
    WEB._replace(name="by-hand"), a_public_application(redirectUris=["https://elsewhere.example"])
)
PRUNE = Scope(prune=True)


@each_row(
    ("wanted", "there", "scope", "is_asked"),
    [
        pytest.param([declared(WEB)], [RENAMED], PRUNE, True, id="one goes, another comes"),
        pytest.param([declared(WEB)], [RENAMED], Scope(), False, id="nothing is deleted"),
        pytest.param([], [RENAMED], PRUNE, False, id="nothing is created"),
        pytest.param([declared(WEB)], [held(WEB), RENAMED], PRUNE, False, id="it is held"),
        pytest.param([declared(GREET)], [RENAMED], PRUNE, False, id="another kind"),
        pytest.param(
            [declared(GREET)], [held(GREET._replace(name="a"))], PRUNE, False, id="no clients"
        ),
        pytest.param(
            [declared(project_ref("acme", "blog")), declared(WEB._replace(project="blog"))],
            [RENAMED],
            PRUNE,
            False,
            id="another place",
        ),
    ],
)
def test_the_history_is_asked_of_what_goes_where_another_comes(
    wanted: Sequence[Resource], there: Sequence[ObservedObject], scope: Scope, *, is_asked: bool
) -> None:
    """The one that goes may be the one that comes, under the name that others gave it."""
    service = Remembering(*HOUSE, *there)

    plan, _ = preview(desired(*OWNERS, *wanted), service, scope, Allowances(deletes=1))

    assert service.asked == ([RENAMED.id] if is_asked else [])
    assert [block.code for block in plan.blocks] == (["GUARD-MADE-ANEW"] if is_asked else [])


def test_the_histories_of_a_plan_are_bounded() -> None:
    """Those come first that others than the tree changed last."""
    own = [held(WEB._replace(name=f"a{count}"), changed_in="default") for count in range(100)]
    service = Remembering(*HOUSE, *own, RENAMED)

    plan, _ = preview(desired(*OWNERS, declared(WEB)), service, PRUNE, Allowances(deletes=200))

    assert len(service.asked) == 100
    assert service.asked[0] == RENAMED.id
    assert RENAMED.ref in [block.ref for block in plan.blocks]


class OfZitadel(FakeService):
    """Counts how often its generation is asked."""

    keeps_history = False
    asked = 0

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        return replace(super().observe(organizations), keeps_history=self.keeps_history)

    def generation(self) -> int:
        self.asked += 1
        return 4


EMPTIED = desired(*OWNERS, declared(WEB, a_public_application(redirectUris=[])))


@each_row(
    ("wanted", "keeps_history", "asked"),
    [
        pytest.param(desired(*OWNERS, declared(WEB, APP)), False, 0, id="in step"),
        pytest.param(desired(*OWNERS), False, 0, id="not declared"),
        pytest.param(EMPTIED, False, 1, id="a list is emptied"),
        pytest.param(replace(WANTED, capabilities="zitadel-4"), False, 1, id="chosen"),
        pytest.param(EMPTIED, True, 0, id="no ZITADEL"),
    ],
)
def test_a_zitadel_is_asked_for_its_generation_only_where_the_plan_depends_on_it(
    wanted: DesiredState, asked: int, *, keeps_history: bool
) -> None:
    service = OfZitadel(*HOUSE, held(WEB, APP))
    service.keeps_history = keeps_history

    plan, seen = preview(wanted, service, Scope(), NONE)

    assert service.asked == asked
    assert seen.generation == (4 if asked else None)
    assert [each.code for each in kept_notes(plan.changes, "KEPT")] == (
        ["KEPT"] if asked and wanted is EMPTIED else []
    )


def test_an_organization_that_may_be_hidden_is_not_missing() -> None:
    class Hiding(FakeService):
        def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
            return replace(observed(), unseen=tuple(organizations))

    with pytest.raises(UnseenOrganizationError, match="acme"):
        observe_declared(WANTED, Hiding())


def test_looking_for_drift_deletes_nothing() -> None:
    """What is declared nowhere is told, and a scope that prunes is not passed on."""
    service = FakeService(*HOUSE, held(WEB))

    drift, seen = look_for_drift(desired(*OWNERS), service, Scope(prune=True))

    assert drift.unmanaged == (WEB,)
    assert WEB.key in seen.objects
    assert service.written == []


@dataclass
class Observer:
    """Watches, and asks to stop with a signal."""

    signal: int = 0

    def begins(self, changes: Sequence[Change]) -> None:
        """Take no note."""

    def progress(self, progress: Progress) -> None:
        """Take no note."""

    def stop_signal(self) -> int:
        """Return the signal."""
        return self.signal


def run(
    service: FakeService, folder: Path, signal: int = 0, wanted: DesiredState = WANTED
) -> ApplyReport:
    with Journal(folder / "apply.jsonl") as journal:
        plan, seen = preview(wanted, service, Scope(), NONE)
        executor = Executor(service, journal, FakeSink(), Observer(signal), {})
        return carry_out(plan, seen, wanted, service, executor)


def test_nothing_remains_of_a_plan_that_was_carried_out(tmp_path: Path) -> None:
    report = run(FakeService(*HOUSE), tmp_path)

    assert (report.remaining, report.notes) == (0, ())


def test_without_a_change_nothing_is_observed_again(tmp_path: Path) -> None:
    looks: list[str] = []
    service = FakeService(*HOUSE, held(GREET))
    service.trouble = looks.append

    assert run(service, tmp_path).remaining == 0
    assert looks.count("observe") == 1


def test_a_run_that_was_stopped_does_not_say_what_remains(tmp_path: Path) -> None:
    report = run(FakeService(*HOUSE), tmp_path, signal=15)

    assert (report.interrupted, report.remaining) == (15, None)


def test_what_was_done_is_reported_where_the_service_is_gone_afterwards(tmp_path: Path) -> None:
    class Leaving(FakeService):
        def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
            if self.written:
                raise lost()
            return super().observe(organizations, flows=flows)

    report = run(Leaving(*HOUSE), tmp_path)

    assert report.remaining is None
    assert [found.code for found in report.notes] == ["APPLY-NOT-OBSERVED"]


def test_what_the_service_made_of_an_update_is_told(tmp_path: Path) -> None:
    """It answers success and keeps its own value."""

    class Stubborn(FakeService):
        def write(
            self, orders: Sequence[Order], context: Mapping[str, object]
        ) -> Sequence[Written | ServiceError]:
            before = dict(self.objects)
            results = super().write(orders, context)
            for each, found in before.items():
                self.objects[each] = replace(self.objects[each], spec=found.spec)
            return results

    report = run(Stubborn(*HOUSE, held(GREET, an_action(timeout="1s"))), tmp_path)

    assert report.remaining == 1
    (found,) = report.notes
    assert (found.code, found.ref) == ("APPLY-REMAINING", GREET)
    assert "timeout" in found.remedy
