"""The rounds of a run: look at the ref and the service, decide, heal or apply, and say so.

Every plan is made by ``loop.preview`` and carried out by ``loop.carry_out``, as those of ``plan``
and ``apply`` are. What is decided is decided in ``reconciler.continuous``.
"""

from __future__ import annotations

import gc
import logging
import secrets
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from reconciler.apply.changes import ApplyReport
from reconciler.apply.changes import Status as Made
from reconciler.cli.apply import exit_code as apply_exit_code
from reconciler.cli.clients import locked, open_client, open_for_plan
from reconciler.cli.connection import is_file
from reconciler.cli.journals import begun
from reconciler.cli.policies import judged_once
from reconciler.cli.process import ExitCode, exit_code_of
from reconciler.cli.run.commits import Commits, Reading
from reconciler.cli.run.form import RunForm
from reconciler.cli.run.lineage import Lineage, invalid
from reconciler.cli.run.memory import Purpose
from reconciler.cli.run.notify import Notices
from reconciler.cli.run.status import Happened, Status
from reconciler.cli.run.writing import Writer
from reconciler.continuous.decision import (
    Condition,
    Hold,
    Mode,
    Situation,
    blocked,
    conditions_of,
    next_step,
)
from reconciler.continuous.heal import Left, heal_of
from reconciler.continuous.pace import EVERYTHING_SECONDS, Fights, Tries
from reconciler.diagnostics import error
from reconciler.errors import (
    InterruptedRunError,
    InvalidManifestsError,
    LockHeldError,
    PolicyError,
    PreconditionFailedError,
    ReconcilerError,
    RepositoryError,
    UsageError,
)
from reconciler.git.mirror import Mirror
from reconciler.loop import LocalFiles, drift_in, explained, preview
from reconciler.plan.drift import Drift
from reconciler.plan.model import NO_PLAN, Plan, ref_of
from reconciler.policy.model import Setting
from reconciler.report.visible import visible
from reconciler.resources.ref import ResourceRef, fold
from reconciler.service_client.port import ReadOnlyService, ServiceClient, TreeControl
from reconciler.state import Applied, Head, Heads, ObservedState, Pause, pauses_of

LOG = logging.getLogger("reconciler.run")
OURS_SECONDS = 30  # between two rounds, on a service with heads
LEASE_SECONDS = 60  # at least; a longer interval has a longer lease
LEASE_ROUNDS = 3
TIMELINE = 100  # entries
LONGEST_LEASE_SECONDS = 3600  # that a service gives
# Such a commit is not approved, so it is not planned.
_UNREAD = {Condition.UNSIGNED, Condition.UNTRUSTED}
_Led: TypeAlias = tuple[str, tuple[str, ...]]
"""A tree and the names of its organizations."""


@dataclass
class _Look:
    """The findings of one round.

    Attributes:
        reading: Of the tip; None where there is none.
        base: The commit that drift is looked for against: that applied last, else the tip.
        plan: Of the tip, for show; ``healing`` is that of the base.
        wrote: Whether the service was written to: its heads are those of before no more, and a
            store that is restored to that moment has them again.
        failures: Why the round could not do all of its work.
    """

    situation: Situation
    tree: str
    reading: Reading | None = None
    base: Reading | None = None
    plan: Plan | None = None
    healing: Plan = NO_PLAN
    observed: ObservedState | None = None
    drift: Drift | None = None
    pause: Pause | None = None
    left: tuple[Left, ...] = ()
    code: int = ExitCode.DONE
    wrote: bool = False
    notes: list[Condition] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def organizations(self) -> tuple[str, ...]:
        """Return the names of the organizations of both commits, in the order of leases."""
        read = [each.desired for each in (self.reading, self.base) if each is not None]
        names = {name for desired in read if desired for name in desired.organizations}
        return tuple(sorted(names, key=fold))

    @property
    def differing(self) -> Sequence[ResourceRef]:
        """Return what the plan of the tip would change, and what is no drift."""
        if self.plan is None or self.drift is None:
            return ()
        drifted = {ref.key for ref in self.drift.refs}
        return [ref for ref in map(ref_of, self.plan.changes) if ref.key not in drifted]

    def hold(self, hold: Hold | None) -> None:
        """Hold the tip back for one more reason, if there is one."""
        if hold is not None:
            holds = (*self.situation.holds, hold)
            self.situation = replace(self.situation, holds=holds)


class Controller:
    """Makes the rounds of one run, one after another."""

    def __init__(
        self,
        purpose: Purpose,
        form: RunForm,
        mirror: Mirror,
        commits: Commits,
        lineage: Lineage,
        writer: Writer,
        notices: Notices | None = None,
    ) -> None:
        self._notices = notices
        self._purpose, self._form = purpose, form
        self._mirror, self._commits, self._lineage = mirror, commits, lineage
        self._writer = writer
        self._tries, self._fights = Tries(), Fights()
        self._tip = ""
        self._scope: Collection[str] = ()  # folded names of the organizations of the last look
        self._heads: tuple[str, Mapping[str, Head]] | None = None
        self._looked = -EVERYTHING_SECONDS
        self._said: frozenset[str] = frozenset()
        self._timeline: deque[Happened] = deque(maxlen=TIMELINE)
        self._stack = ExitStack()
        self._service: ReadOnlyService | None = None
        self._client: ServiceClient | None = None
        self._trees: TreeControl | None = None
        self._leads: _Led | None = None
        self._watches: _Led | None = None
        self.has_feed = True
        self.status = Status(purpose, asked=form.mode, mode=form.mode)

    def status_now(self) -> Status:
        """Return the state, with the notices as they are now."""
        if self._notices is None:
            return self.status
        return replace(self.status, notices=self._notices.counts())

    def round(self) -> int:
        """Make one round; return the exit code that ``plan`` or ``apply`` would have.

        A failure of Git or the service is in the status, and does not end the run.

        Raises:
            UsageError: the run was started with what its repository does not fit.
            InterruptedRunError: a signal asked it to stop.
        """
        failures: list[str] = []
        code: int = ExitCode.DONE
        try:
            tip = self._find_tip(failures)
            with self._opened() as service:
                code = self._round(tip, service, failures)
        except (UsageError, InterruptedRunError):
            raise
        except ReconcilerError as failure:
            failures.append(f"{failure.problem}. {failure.remedy}")
            self._heads = None  # the next round looks at everything
            code = exit_code_of(failure)
        self._conclude(failures)
        return code or (ExitCode.ERROR if failures else ExitCode.DONE)

    def _conclude(self, failures: Sequence[str]) -> None:
        """Note the end of a round, and log what is new."""
        before = self.status
        conditions = {*before.conditions} - {Condition.FAILING}
        conditions |= {Condition.FAILING} if failures else set()
        self.status = replace(
            before,
            conditions=tuple(each for each in Condition if each in conditions),
            failures=tuple(failures),
            round_at=int(time.time()),
            rounds=before.rounds + 1,
            failed=before.failed + bool(failures),
        )
        lines = frozenset(self.status.lines())
        for line in sorted(lines - self._said):
            self._note(logging.WARNING, line)
        if self._said and not lines:
            self._note(logging.INFO, "nothing is left to do")
        self._said = lines
        self.status = replace(self.status, timeline=tuple(self._timeline))
        if self._notices is not None:
            self._notices.look(self.status, watches=self._watches is not None)

    def _note(self, level: int, line: str) -> None:
        """Log what happened, and keep it for the page."""
        LOG.log(level, "%s", visible(line))
        self._timeline.append(Happened(int(time.time()), line))

    def _find_tip(self, failures: list[str]) -> str:
        """Return the commit of the ref; where it cannot be read, the last one that is known."""
        try:
            return self._mirror.tip(self._purpose.ref)
        except RepositoryError as failure:
            failures.append(f"{failure.problem}. {failure.remedy}")
            return self._tip or self._lineage.seen

    # The service: opened once where that costs requests, and anew where its file may be another.

    @contextmanager
    def _opened(self) -> Iterator[ReadOnlyService]:
        connection = self._writer.connection
        if self._service is None and self._form.mode is Mode.OBSERVE:
            self._service = self._stack.enter_context(open_for_plan(connection))
        elif self._service is None:
            self._service = self._client = self._stack.enter_context(open_client(connection))
            self._trees = self._client.trees()
        try:
            yield self._service
        except ReconcilerError:
            self.close()
            raise
        if is_file(connection.service):
            self.close()

    def close(self) -> None:
        """Give back what is led, and close the service."""
        with self._stack:
            if self._trees is not None and self._leads is not None:
                self._trees.resign()
        self._stack, self._leads = ExitStack(), None
        self._service = self._client = self._trees = None

    # One round.

    def _round(self, tip: str, service: ReadOnlyService, failures: list[str]) -> int:
        heads, now = service.heads(), time.monotonic()
        self.has_feed = heads is not None
        if self._is_idle(tip, heads, now) and self._stays_idle():
            return ExitCode.LOCKED if self._watches else ExitCode.DONE
        look = self._look(tip, heads, service)
        look.code = _as_plan(look)
        step = next_step(look.situation)
        if step is Mode.OBSERVE or self._client is None:
            self._watches = None
        elif self._lead((look.tree, look.organizations)):
            self._act(step, look, self._client)
        else:
            look.notes.append(Condition.WATCHING)
            look.code = ExitCode.LOCKED
        self._keep(look, heads, now)
        failures += look.failures
        gc.unfreeze()  # what a plan left behind would never be collected
        gc.collect()
        return look.code

    def _is_idle(self, tip: str, heads: Heads | None, now: float) -> bool:
        """Return whether nothing can have happened since the last look."""
        is_due = self._tries.commit == tip and self._tries.is_due(tip, now)
        return (
            heads is not None
            and self._within(heads) == self._heads
            and tip == self._tip
            and not is_due
            and now - self._looked < EVERYTHING_SECONDS
        )

    def _within(self, heads: Heads | None) -> tuple[str, Mapping[str, Head]] | None:
        """Return the heads of the organizations of the last look, and the id of the service."""
        if heads is None:
            return None
        known = heads.organizations
        return heads.instance, {name: known[name] for name in self._scope if name in known}

    def _stays_idle(self) -> bool:
        """Renew what is led. A run that watched, and leads from now on, has to look again."""
        if self._watches is not None:
            return not self._lead(self._watches)
        if self._trees is None or self._leads is None:
            return True
        try:
            self._trees.renew()
        except (LockHeldError, PreconditionFailedError):
            self._leads = None
            return False
        return True

    def _look(self, tip: str, heads: Heads | None, service: ReadOnlyService) -> _Look:
        """Read the tip and what was applied, and plan both against what is held now."""
        form, lineage = self._form, self._lineage
        reading = self._commits.read(tip) if tip else None
        if reading is None:
            return _Look(Situation(form.mode), self._purpose.tree)
        tree = lineage.tree(reading)
        applied = lineage.applied(tip, tree, heads)
        holds = lineage.holds(reading, applied, tree, heads)
        counts = bool(applied) and lineage.counts(applied, tip)
        base = self._commits.read(applied) if counts else reading
        situation = Situation(
            form.mode,
            tip,
            applied,
            counts,
            holds,
            reading.is_protected or base.is_protected,
            form.heal_protected,
            is_due=self._tries.is_due(tip, time.monotonic()),
        )
        look = _Look(situation, tree, reading, base)
        if not applied:
            look.failures += lineage.unreadable(tip, tree, heads)
        look.pause = _pause_of(heads, tree, look.organizations)
        look.situation = replace(situation, is_paused=look.pause is not None)
        self._commits.keep({tip, applied, *lineage.in_use()})
        self._plan(look, reading, base, service)
        return look

    def _plan(self, look: _Look, reading: Reading, base: Reading, service: ReadOnlyService) -> None:
        if base.desired is not None:
            scope = replace(base.scope, prune=False)
            allowed = self._writer.allowed
            try:
                look.healing, look.observed = preview(
                    base.desired, service, scope, allowed, all_flows=True
                )
                look.drift = drift_in(look.healing, look.observed, service)
            except InvalidManifestsError as problem:
                look.failures.append(f"nothing is healed: {invalid(problem).problem}")
        if reading.desired is None or _UNREAD & {hold.why for hold in look.situation.holds}:
            return
        try:
            plan, observed = self._preview(reading, service)
            look.plan = self._judged(look, explained(plan, service, observed))
        except InvalidManifestsError as problem:
            look.hold(invalid(problem))
            return
        needs_sink = None if self._client is None else self._writer.no_sink(look.plan)
        look.hold(blocked(look.plan) or needs_sink)

    def _preview(self, reading: Reading, service: ReadOnlyService) -> tuple[Plan, ObservedState]:
        """Plan a commit as ``plan`` does. Files of the commit are looked at in its folder."""
        if reading.desired is None:
            raise AssertionError("only a valid commit is planned")
        writer = self._writer
        files = LocalFiles(reading.look, partial(begun, writer.connection, reading.scope))
        with chdir(self._commits.folder_of(reading.commit)):
            return preview(reading.desired, service, reading.scope, writer.allowed, files)

    def _judged(self, look: _Look, plan: Plan, *, heals: bool = False) -> Plan:
        """Return a plan with what the policies find that count.

        Policies that cannot judge block it. ``heals`` says that it is a plan to heal.

        Raises:
            ReconcilerError: they cannot be read.
        """
        if look.reading is None:
            raise AssertionError("only what a commit leads to is planned")
        situation = look.situation
        judges = self._lineage.judges(look.reading, situation.applied, heals=heals)
        setting = Setting(self._purpose.environment, situation.is_protected)
        try:
            return judged_once(plan, judges, setting)
        except PolicyError as failure:
            block = error("POLICY-ERROR", failure.problem, failure.remedy)
            return replace(plan, blocks=(*plan.blocks, block))

    def _lead(self, wanted: _Led) -> bool:
        """Return whether this run leads a tree; where another one does, it watches.

        Raises:
            PreconditionFailedError: another run led meanwhile.
        """
        self._watches = None
        if self._trees is None:
            return True
        try:
            if self._leads != wanted:
                self._leads = None
                interval = self._form.interval or OURS_SECONDS
                longest = min(LONGEST_LEASE_SECONDS, LEASE_ROUNDS * interval)
                self._trees.lead(*wanted, max(LEASE_SECONDS, longest))
                self._leads = wanted
            self._trees.renew()
        except LockHeldError:
            self._leads, self._watches = None, wanted
            return False
        return True

    # Writing.

    def _act(self, step: Mode, look: _Look, service: ServiceClient) -> None:
        """Apply the tip, or heal what was applied."""
        try:
            if step is Mode.APPLY and look.reading is not None:
                self._apply(look, look.reading, service)
            elif look.base is not None:
                self._heal(look, look.base, service)
        except LockHeldError as failure:  # another run applies
            LOG.info("nothing is written in this round: %s", visible(failure.problem))
            look.code = ExitCode.LOCKED
            look.notes.append(Condition.WATCHING)
            self._watches = (look.tree, look.organizations)

    def _apply(self, look: _Look, reading: Reading, service: ServiceClient) -> None:
        """Apply a commit, as a whole or not at all, and record it."""
        tip, tries = reading.commit, self._tries
        self._tries = tries.failed(tip, time.monotonic(), secrets.SystemRandom().random())
        try:
            report = self._applied(look, reading, service)
        except LockHeldError:
            self._tries = tries
            raise
        if report is None:
            return
        look.code = apply_exit_code(report)
        if not report.is_complete:
            LOG.warning("commit %s was not applied as a whole", tip)
            return
        self._tries = Tries()
        look.situation = replace(look.situation, applied=tip)
        made = report.count(Made.MADE)
        self._note(logging.INFO, f"commit {tip} is applied: {made} change(s)")

    def _applied(self, look: _Look, reading: Reading, service: ServiceClient) -> ApplyReport | None:
        """Return what became of a commit; None where its plan is held back by now."""
        if look.plan is None or reading.desired is None:
            return None
        look.wrote = True
        if not (look.plan.changes or look.plan.deliverable):
            self._record(reading, "unchanged")
            return ApplyReport((), remaining=0)
        with self._locked(service, reading.desired.organizations):
            plan, observed = self._preview(reading, service)
            if any(pauses_of(observed, look.tree)):  # since the round began
                return None
            plan = self._judged(look, plan)
            if hold := blocked(plan) or self._writer.no_sink(plan):
                look.hold(hold)
                look.code = ExitCode.BLOCKED
                return None
            report = self._writer.carry_out(
                reading.commit, plan, observed, reading.desired, service
            )
            if report.is_complete:
                self._record(reading, "changed" if report.count(Made.MADE) else "unchanged")
            return report

    @contextmanager
    def _locked(self, service: ServiceClient, organizations: Collection[str]) -> Iterator[None]:
        """Be the one writer, and still the leader."""
        with locked(service, organizations, 0):
            if self._trees is not None:
                self._trees.renew(at_once=True)
            yield

    def _record(self, reading: Reading, outcome: str) -> None:
        """Record that a commit was applied as a whole."""
        if self._trees is not None:
            context = {"tree": reading.scope.tree, "revision": reading.commit}
            self._trees.record_commit(reading.commit, outcome, context)
        else:
            self._lineage.record(reading.commit)

    def _heal(self, look: _Look, base: Reading, service: ServiceClient) -> None:
        """Undo what was changed on the service, back to what was applied."""
        if base.desired is None or look.drift is None or look.observed is None:
            return
        now = time.monotonic()
        sequences = {held.id: held.sequence for held in look.observed.everything}
        self._fights = self._fights.towards(base.commit).seen(sequences, now)
        contested = self._fights.contested(now)
        heal = heal_of(look.healing, look.drift, contested)
        look.left = heal.left
        if not heal.plan.changes and not (heal.plan.deliverable and self._writer.sink):
            return
        if hold := blocked(self._judged(look, heal.plan, heals=True)):
            look.failures.append(f"nothing is healed: {hold.problem}. {hold.remedy}")
            look.code = ExitCode.BLOCKED
            return
        look.wrote = True
        with self._locked(service, base.desired.organizations):
            plan, observed = preview(
                base.desired, service, look.healing.scope, self._writer.allowed, all_flows=True
            )
            heal = heal_of(plan, drift_in(plan, observed, service), contested)
            healing = self._judged(look, heal.plan, heals=True)
            is_held = blocked(healing) or self._writer.no_sink(healing)
            if is_held or any(pauses_of(observed, look.tree)):
                return  # it was looked at again, and the next round says why
            report = self._writer.carry_out(base.commit, healing, observed, base.desired, service)
        made = [each for each in report.outcomes if each.status is Made.MADE]
        self._fights = self._fights.healed([each.id for each in made], time.monotonic())
        for each in made:
            self._note(logging.INFO, f"{ref_of(each.change)} is healed")
        if any(outcome.error for outcome in report.outcomes) or report.interrupted:
            look.code = apply_exit_code(report)
        elif not look.situation.is_pending and not heal.left:
            look.code = ExitCode.DONE

    def _keep(self, look: _Look, heads: Heads | None, now: float) -> None:
        """Keep what a round found."""
        situation, drift = look.situation, look.drift
        self._scope = [fold(name) for name in look.organizations]
        self._heads = None if look.wrote else self._within(heads)
        self._tip, self._looked = situation.tip, now
        contested, moment = self._fights.contested(now), int(time.time())
        is_new = situation.tip != self.status.seen
        conditions = conditions_of(
            situation,
            differing=() if look.wrote else look.differing,
            drifted=drift.refs if drift else (),
            contested=[left for left in look.left if left.id in contested],
            owed=len(look.healing.deliverable),
        )
        self.status = replace(
            self.status,
            tree=look.tree,
            mode=situation.allowed,
            seen=situation.tip,
            seen_at=moment if is_new else self.status.seen_at,
            applied=situation.applied,
            record=_record_of(heads, look.tree, situation.applied),
            conditions=(*conditions, *look.notes),
            holds=situation.holds,
            plan=look.plan,
            drift=drift,
            left=look.left,
            pause=look.pause,
            looked_at=moment,
        )


def _as_plan(look: _Look) -> int:
    """Return the exit code that ``plan --detailed-exitcode`` would have."""
    whys = {hold.why for hold in look.situation.holds}
    if Condition.INVALID in whys:
        return ExitCode.ERROR
    if whys or (look.observed is not None and look.observed.incomplete):
        return ExitCode.BLOCKED
    plan, drift = look.plan, look.drift
    is_pending = plan is not None and (plan.changes or plan.deliverable or plan.owed_left)
    has_drifted = drift is not None and drift.refs
    return ExitCode.CHANGES if is_pending or has_drifted else ExitCode.DONE


def _record_of(heads: Heads | None, tree: str, commit: str) -> Applied | None:
    """Return the latest record of a commit of a tree, in any organization."""
    records = heads.records(tree) if heads is not None else ()
    found = [record for record in records if record.commit == commit]
    return max(found, key=lambda record: record.at, default=None)


def _pause_of(heads: Heads | None, tree: str, organizations: Sequence[str]) -> Pause | None:
    """Return the pause of a tree that lasts longest, in any of its organizations."""
    found = heads.pauses(tree, organizations) if heads is not None else ()
    return max((pause for _, pause in found), key=lambda pause: pause.until, default=None)
