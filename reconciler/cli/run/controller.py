"""The rounds of a run: look at the ref and the service, decide, heal or apply, and say so.

Every plan is made by ``loop.preview`` and carried out by ``loop.carry_out``, as those of ``plan``
and ``apply`` are. What is decided is decided in ``reconciler.continuous``.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from reconciler.apply.changes import ApplyReport, Progress
from reconciler.apply.changes import Status as Made
from reconciler.apply.executor import Executor
from reconciler.apply.sink import SecretSink
from reconciler.cli.apply import exit_code as apply_exit_code
from reconciler.cli.clients import (
    locked,
    open_client,
    open_for_plan,
    prove_seal_key,
    why_a_sink,
)
from reconciler.cli.connection import Connection, is_file
from reconciler.cli.journals import begun, open_journal
from reconciler.cli.process import ExitCode, exit_code_of
from reconciler.cli.run.commits import Commits, Reading
from reconciler.cli.run.memory import Memory, Purpose, read_memory, write_memory
from reconciler.cli.run.status import Status, shown
from reconciler.configuration.semantics import differences
from reconciler.continuous.decision import (
    Commit,
    Condition,
    Hold,
    Mode,
    Situation,
    Step,
    Why,
    blocked,
    conditions_of,
    holds_of,
    next_step,
)
from reconciler.continuous.heal import Left, heal_of
from reconciler.continuous.pace import EVERYTHING_SECONDS, NO_FIGHTS, NO_TRIES
from reconciler.errors import (
    InterruptedRunError,
    InvalidManifestsError,
    LockHeldError,
    PreconditionFailedError,
    ReconcilerError,
    RepositoryError,
    UsageError,
)
from reconciler.git.mirror import Mirror
from reconciler.loop import LocalFiles, carry_out, drift_in, preview
from reconciler.plan.digest import plan_digest
from reconciler.plan.drift import Drift
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Plan, Scope, ref_of
from reconciler.resources.ref import fold
from reconciler.service_client.port import FeedReader, HistoryReader, ServiceClient, TreeControl
from reconciler.state import Heads, ObservedState, Pause

LOG = logging.getLogger("reconciler.run")
LEASE_SECONDS = 60  # at least; a longer interval has a longer lease
LEASE_ROUNDS = 3
LONGEST_LEASE_SECONDS = 3600  # that a service gives
_NOTHING = Plan(Scope(), "", ())
_SHOWN = 3  # findings of a commit that does not validate


class Looking(HistoryReader, FeedReader, Protocol):
    """A service that is looked at; a client can write as well."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run was started with.

    Attributes:
        interval: Seconds between two rounds.
        state: Folder of the mirror, the memory and the journals; absolute.
        signed_by: File of the signers that are allowed; None where no signature is asked for.
        accept: The commit at which a rewritten ref is accepted; empty for none.
        trust: The commit whose ``reconciler.yaml`` counts; empty for none.
        applied: The commit that counts as applied where the service keeps no record.
    """

    purpose: Purpose
    connection: Connection
    interval: int
    state: Path
    mode: Mode
    sink: SecretSink | None
    allowed: Allowances
    signed_by: Path | None = None
    accept: str = ""
    trust: str = ""
    applied: str = ""
    heals_protected: bool = False
    require_secrets: bool = False


class _Watch:
    """Passes the signal that ends the run to what is being carried out."""

    def __init__(self, stops: Callable[[], int]) -> None:
        self.stop_signal = stops

    def begins(self, changes: Sequence[Change]) -> None:
        """Do nothing: what is done is logged at its end."""

    def progress(self, progress: Progress) -> None:
        """Log a change that was made, or why it was not."""
        outcome = progress.latest
        ref, error = ref_of(outcome.change), outcome.error
        if error is not None:
            LOG.warning("%s failed: %s. %s", shown(str(ref)), shown(error.problem), error.remedy)
        else:
            LOG.info("%s %s", shown(str(ref)), outcome.status)


@dataclass
class _Look:
    """What one round found out.

    Attributes:
        reading: Of the tip; None where there is none.
        base: The commit that drift is looked for against: that applied last, else the tip.
        plan: Of the tip, for show; ``healing`` is that of the base.
    """

    situation: Situation
    reading: Reading | None = None
    base: Reading | None = None
    plan: Plan | None = None
    healing: Plan = _NOTHING
    observed: ObservedState | None = None
    drift: Drift | None = None
    pause: Pause | None = None
    left: tuple[Left, ...] = ()
    code: int = ExitCode.DONE
    notes: list[Condition] = field(default_factory=list)


class Controller:
    """Makes the rounds of one run, one after another."""

    def __init__(
        self, settings: Settings, mirror: Mirror, commits: Commits, stops: Callable[[], int]
    ) -> None:
        """Take what a run works with; ``stops`` returns the signal that ends it, or 0."""
        self._settings = settings
        self._mirror = mirror
        self._commits = commits
        self._stops = stops
        self._memory = read_memory(settings.state, settings.purpose)
        self._tries, self._fights = NO_TRIES, NO_FIGHTS
        self._tip = ""
        self._heads: Heads | None = None
        self._looked = -EVERYTHING_SECONDS
        self._said: frozenset[str] = frozenset()
        self._stack = ExitStack()
        self._service: Looking | None = None
        self._client: ServiceClient | None = None
        self._trees: TreeControl | None = None
        self._leads: tuple[str, tuple[str, ...]] | None = None
        self.status = Status(settings.purpose, mode=settings.mode)

    @property
    def has_feed(self) -> bool:
        """Return whether the service told its heads in the last round."""
        return self._heads is not None

    def close(self) -> None:
        """Give back what is led, and close the service."""
        self._close_service()
        self._commits.close()

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
                code = self._round(tip, service)
        except (UsageError, InterruptedRunError):
            raise
        except ReconcilerError as failure:
            failures.append(f"{failure.problem}. {failure.remedy}")
            self._heads, self._looked = None, -EVERYTHING_SECONDS
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
            conditions=tuple(sorted(conditions)),
            failures=tuple(failures),
            round_at=int(time.time()),
            rounds=before.rounds + 1,
            failed=before.failed + bool(failures),
        )
        lines = frozenset(self.status.lines())
        for line in sorted(lines - self._said):
            LOG.warning("%s", shown(line))
        if self._said and not lines:
            LOG.info("nothing is left to do")
        self._said = lines

    def _find_tip(self, failures: list[str]) -> str:
        """Return the commit of the ref; where it cannot be read, the last one that is known."""
        try:
            return self._mirror.tip(self._settings.purpose.ref)
        except RepositoryError as failure:
            failures.append(f"{failure.problem}. {failure.remedy}")
            known = self._tip or self._memory.seen
            return known if known and self._mirror.holds(known) else ""

    # The service: opened once where that costs requests, and anew where its file may be another.

    @contextmanager
    def _opened(self) -> Iterator[Looking]:
        connection = self._settings.connection
        if self._service is None and self._settings.mode is Mode.OBSERVE:
            self._service = self._stack.enter_context(open_for_plan(connection))
        elif self._service is None:
            self._service = self._client = self._stack.enter_context(open_client(connection))
            self._trees = self._client.trees()
        try:
            yield self._service
        except ReconcilerError:
            self._close_service()
            raise
        if is_file(connection.service):
            self._close_service()

    def _close_service(self) -> None:
        with self._stack:
            if self._trees is not None and self._leads is not None:
                self._trees.resign()
        self._stack, self._leads = ExitStack(), None
        self._service = self._client = self._trees = None

    # One round.

    def _round(self, tip: str, service: Looking) -> int:
        heads, now = service.heads(), time.monotonic()
        if self._is_idle(tip, heads, now):
            self._keep_leading()
            return ExitCode.DONE
        look = self._look(tip, heads, service)
        look.code = _as_plan(look)
        step = next_step(look.situation)
        if step is not Step.OBSERVE and self._client is not None and self._led(look):
            self._act(step, look, self._client)
        self._keep(look, heads, now)
        return look.code

    def _is_idle(self, tip: str, heads: Heads | None, now: float) -> bool:
        """Return whether nothing can have happened since the last look."""
        is_due = self._tries.commit == tip and self._tries.is_due(tip, now)
        return (
            heads is not None
            and heads == self._heads
            and tip == self._tip
            and not is_due
            and now - self._looked < EVERYTHING_SECONDS
        )

    def _look(self, tip: str, heads: Heads | None, service: Looking) -> _Look:
        """Read the tip and what was applied, and plan both against what is held now."""
        settings = self._settings
        reading = self._commits.read(tip) if tip else None
        tree = reading.scope.tree if reading else settings.purpose.tree
        applied = self._applied(tip, tree, heads)
        holds = [*self._held_back(tip, reading, applied, tree, heads)]
        counts = bool(applied) and self._counts(applied, tip)
        base = self._commits.read(applied) if counts else reading
        self._commits.keep({tip, applied, self._memory.first, settings.trust})
        protected = any(each is not None and each.is_protected for each in (reading, base))
        pause = _pause_of(heads, tree, base or reading)
        situation = Situation(
            settings.mode,
            tip,
            applied,
            counts,
            tuple(holds),
            protected,
            settings.heals_protected,
            pause is not None,
            self._tries.is_due(tip, time.monotonic()),
        )
        look = _Look(situation, reading, base, pause=pause)
        self._plan(look, service)
        return look

    def _plan(self, look: _Look, service: Looking) -> None:
        base, reading = look.base, look.reading
        if base is not None and base.desired is not None:
            scope = Scope(tree=base.scope.tree, environment=base.scope.environment)
            look.healing, look.observed = preview(
                base.desired, service, scope, self._settings.allowed, all_flows=True
            )
            look.drift = drift_in(look.healing, look.observed, service)
        is_read = reading is not None and reading.desired is not None
        if reading is None or not is_read or look.situation.holds:
            return
        look.plan, _ = self._preview(reading, service)
        if hold := blocked(look.plan) or self._no_sink(look.plan):
            look.situation = replace(look.situation, holds=(hold,))

    def _preview(self, reading: Reading, service: Looking) -> tuple[Plan, ObservedState]:
        """Plan a commit as ``plan`` does. Files of the commit are looked at in its folder."""
        if reading.desired is None:
            raise AssertionError("only a valid commit is planned")
        files = LocalFiles(reading.look, partial(begun, self._settings.connection, reading.scope))
        with chdir(self._commits.folder_of(reading.commit)):
            return preview(reading.desired, service, reading.scope, self._settings.allowed, files)

    def _no_sink(self, plan: Plan) -> Hold | None:
        why = why_a_sink(plan)
        if not why or self._settings.sink is not None or self._settings.mode is Mode.OBSERVE:
            return None
        remedy = "Start run with --secrets-to."
        return Hold(Why.BLOCKED, f"{why}, and no destination is chosen", remedy)

    def _held_back(
        self,
        tip: str,
        reading: Reading | None,
        applied: str,
        tree: str,
        heads: Heads | None,
    ) -> Iterator[Hold]:
        """Yield why the tip is not applied, without a plan; remember it where it counts."""
        if reading is None:
            return
        memory, accepted = self._memory, self._settings.accept
        before = [memory.seen]
        if not (accepted and self._mirror.is_ancestor(accepted, tip)):
            before += [*_recorded(heads, tree, reading), applied]
        broken = next((b for b in before if b and not self._mirror.is_ancestor(b, tip)), "")
        commit = Commit(
            tip,
            broken,
            follows=not broken,
            signature=self._unsigned(tip),
            differences=tuple(self._differences(reading, applied)),
            accepted=accepted,
            is_known=heads is not None or bool(applied),
        )
        found = [*holds_of(commit)]
        if all(hold.why is not Why.REWRITTEN for hold in found):
            self._remember(replace(memory, first=memory.first or tip, seen=tip))
        yield from found
        if reading.problem is not None:
            yield Hold(Why.INVALID, _in_words(reading.problem), reading.problem.remedy)

    def _unsigned(self, commit: str) -> str:
        """Return why the signature of a commit does not count, in words."""
        if self._settings.signed_by is None:
            return ""
        signature = self._mirror.signature(commit, self._settings.signed_by)
        return "" if signature.counts else signature.words

    def _differences(self, reading: Reading, applied: str) -> Iterator[str]:
        """Yield how ``reconciler.yaml`` of the tip decides otherwise than the one that counts."""
        trust, tip = self._settings.trust, reading.commit
        is_trusted = self._mirror.is_ancestor(trust, tip) if trust else False
        if is_trusted and applied and not self._mirror.is_ancestor(applied, trust):
            is_trusted = False
        counted = trust if is_trusted else applied or self._memory.first
        if not counted or counted == tip or not self._mirror.holds(counted):
            return
        trusted, proposed = self._commits.read(counted).configuration, reading.configuration
        if trusted is None or proposed is None:
            if trusted is not proposed and reading.problem is None:
                yield "reconciler.yaml is there in one commit only"
            return
        for each in differences(trusted, proposed):
            what = f"{each.name} of " if each.name else ""
            yield f"{what}environment {each.environment} is {each.proposed}, was {each.trusted}"

    # What was applied.

    def _applied(self, tip: str, tree: str, heads: Heads | None) -> str:
        """Return the commit that was applied last, as the service or this state recorded it."""
        if heads is None:
            return self._memory.applied or self._settings.applied
        found = {
            record.commit: record.at
            for head in heads.organizations.values()
            for record in head.applied
            if record.tree == tree
        }
        whole = [
            each
            for each in found
            if self._mirror.is_ancestor(each, tip) and self._is_whole(each, tree, heads)
        ]
        return max(whole, key=lambda each: found[each], default="")

    def _is_whole(self, commit: str, tree: str, heads: Heads) -> bool:
        """Return whether every organization of a commit has the record of that commit."""
        reading = self._commits.read(commit)
        recorded = set(_recorded(heads, tree, reading))
        return reading.desired is not None and recorded == {commit}

    def _counts(self, applied: str, tip: str) -> bool:
        """Return whether what was applied may be healed towards."""
        is_there = self._mirror.is_ancestor(applied, tip)
        return is_there and not self._unsigned(applied)

    def _remember(self, memory: Memory) -> None:
        if memory != self._memory:
            write_memory(self._settings.state, self._settings.purpose, memory)
            self._memory = memory

    # Writing.

    def _led(self, look: _Look) -> bool:
        """Return whether this run leads the tree; where another one does, it watches."""
        read = [each for each in (look.reading, look.base) if each and each.desired]
        if self._trees is None or not read:
            return True
        names = {name for each in read if each.desired for name in each.desired.organizations}
        wanted = (read[0].scope.tree, tuple(sorted(names, key=fold)))
        try:
            if self._leads != wanted:
                self._leads = None
                longest = min(LONGEST_LEASE_SECONDS, LEASE_ROUNDS * self._settings.interval)
                seconds = max(LEASE_SECONDS, longest)
                self._trees.lead(*wanted, seconds)
                self._leads = wanted
            self._trees.renew()
        except LockHeldError:
            self._leads = None
            look.notes.append(Condition.WATCHING)
            look.code = ExitCode.LOCKED
            return False
        return True

    def _keep_leading(self) -> None:
        """Renew what is led; where another run led meanwhile, the next round looks again."""
        if self._trees is not None and self._leads is not None:
            try:
                self._trees.renew()
            except (LockHeldError, PreconditionFailedError):
                self._leads, self._heads = None, None

    def _act(self, step: Step, look: _Look, service: ServiceClient) -> None:
        """Apply the tip, or heal what was applied."""
        if step is Step.APPLY and look.reading is not None:
            self._apply(look, look.reading, service)
        elif look.base is not None:
            self._heal(look, look.base, service)

    def _apply(self, look: _Look, reading: Reading, service: ServiceClient) -> None:
        """Apply a commit, as a whole or not at all, and record it."""
        tip = reading.commit
        failed = self._tries.failed(tip, time.monotonic(), secrets.SystemRandom().random())
        try:
            report = self._applied_now(look, reading, service)
        except LockHeldError as failure:
            LOG.info("commit %s waits: %s", tip, shown(failure.problem))
            look.code = ExitCode.LOCKED
            return
        except ReconcilerError:
            self._tries = failed
            raise
        if report is None:
            self._tries = failed
            return
        look.code = apply_exit_code(report)
        if not report.is_complete:
            self._tries = failed
            _log_notes(report)
            LOG.warning("commit %s was not applied as a whole", tip)
            return
        self._tries = NO_TRIES
        look.situation = replace(look.situation, applied=tip)
        LOG.info("commit %s is applied: %d change(s)", tip, report.count(Made.MADE))

    def _applied_now(
        self, look: _Look, reading: Reading, service: ServiceClient
    ) -> ApplyReport | None:
        """Return what became of a commit; None where its plan is held back by now."""
        if look.plan is None or reading.desired is None:
            return None
        if not (look.plan.changes or look.plan.deliverable):
            self._record(reading, "unchanged")
            return ApplyReport((), remaining=0)
        with self._locked(service, reading.desired.organizations):
            plan, observed = self._preview(reading, service)
            if hold := blocked(plan) or self._no_sink(plan):
                look.situation = replace(look.situation, holds=(hold,))
                look.code = ExitCode.BLOCKED
                return None
            report = self._carry_out(reading, plan, observed, service)
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
        if not heal.plan.changes and not (heal.plan.deliverable and self._settings.sink):
            return
        if hold := blocked(heal.plan):
            LOG.warning("nothing is healed: %s. %s", shown(hold.problem), shown(hold.remedy))
            look.code = ExitCode.BLOCKED
            return
        with self._locked(service, base.desired.organizations):
            scope = look.healing.scope
            plan, observed = preview(
                base.desired, service, scope, self._settings.allowed, all_flows=True
            )
            heal = heal_of(plan, drift_in(plan, observed, service), contested)
            if heal.plan.blocks:
                return
            report = self._carry_out(base, heal.plan, observed, service)
        made = [each.change for each in report.outcomes if each.status is Made.MADE]
        healed = {each.id for each in report.outcomes if each.status is Made.MADE}
        self._fights = self._fights.healed(healed, time.monotonic())
        for change in made:
            LOG.info("%s is healed", shown(str(ref_of(change))))
        if any(outcome.error for outcome in report.outcomes) or report.interrupted:
            look.code = apply_exit_code(report)
        elif not look.situation.is_pending and not heal.left:
            look.code = ExitCode.DONE

    def _carry_out(
        self, reading: Reading, plan: Plan, observed: ObservedState, service: ServiceClient
    ) -> ApplyReport:
        settings, scope = self._settings, reading.scope
        if reading.desired is None:
            raise AssertionError("only a valid commit is carried out")
        context = {"tree": scope.tree, "revision": reading.commit, "plan": plan_digest(plan)}
        if why_a_sink(plan):
            prove_seal_key(settings.connection)
        organizations = reading.desired.organizations
        with open_journal(
            settings.connection, observed.instance, scope, organizations, 0
        ) as journal:
            watch = _Watch(self._stops)
            executor = Executor(service, journal, settings.sink, watch, context, settings.allowed)
            report = carry_out(
                plan,
                observed,
                reading.desired,
                service,
                executor,
                require_secrets=settings.require_secrets,
            )
            executor.was_told()
        return report

    def _record(self, reading: Reading, outcome: str) -> None:
        """Record that a commit was applied as a whole."""
        if self._trees is not None:
            context = {"tree": reading.scope.tree, "revision": reading.commit}
            self._trees.record_commit(reading.commit, outcome, context)
        else:
            now = int(time.time())
            self._remember(replace(self._memory, applied=reading.commit, applied_at=now))

    def _keep(self, look: _Look, heads: Heads | None, now: float) -> None:
        """Keep what a round found."""
        situation, drift = look.situation, look.drift
        self._heads, self._tip, self._looked = heads, situation.tip, now
        contested = [left for left in look.left if left.id in self._fights.contested(now)]
        conditions = conditions_of(
            situation,
            drifted=drift.objects if drift else (),
            contested=contested,
            owed=len(look.healing.deliverable),  # of the tree, whatever is planned
        )
        self.status = replace(
            self.status,
            tree=look.reading.scope.tree if look.reading else self.status.tree,
            mode=situation.allowed,
            seen=situation.tip,
            applied=situation.applied,
            conditions=(*conditions, *look.notes),
            holds=situation.holds,
            plan=look.plan,
            drift=drift,
            left=look.left,
            pause=look.pause,
            looked_at=int(time.time()),
        )


def _as_plan(look: _Look) -> int:
    """Return the exit code that ``plan --detailed-exitcode`` would have."""
    whys = {hold.why for hold in look.situation.holds}
    if Why.INVALID in whys:
        return ExitCode.ERROR
    if whys or (look.observed is not None and look.observed.incomplete):
        return ExitCode.BLOCKED
    plan, drift = look.plan, look.drift
    is_pending = plan is not None and (plan.changes or plan.deliverable or plan.owed_left)
    return ExitCode.CHANGES if is_pending or (drift and drift.objects) else ExitCode.DONE


def _recorded(heads: Heads | None, tree: str, reading: Reading) -> Iterator[str]:
    """Yield the commits that the organizations of a commit have on record for a tree."""
    if heads is None or reading.desired is None:
        return
    for name in reading.desired.organizations:
        head = heads.organizations.get(fold(name))
        for record in head.applied if head is not None else ():
            if record.tree == tree:
                yield record.commit


def _pause_of(heads: Heads | None, tree: str, reading: Reading | None) -> Pause | None:
    """Return the pause of a tree that lasts longest, in any of its organizations."""
    if heads is None or reading is None or reading.desired is None:
        return None
    found = [
        pause
        for name in reading.desired.organizations
        if (head := heads.organizations.get(fold(name))) is not None
        for pause in head.pauses
        if pause.tree == tree
    ]
    return max(found, key=lambda pause: pause.until, default=None)


def _in_words(problem: ReconcilerError) -> str:
    """Return what is wrong with a commit; of findings, the first ones with their places."""
    if not isinstance(problem, InvalidManifestsError):
        return problem.problem
    found = [each for each in problem.diagnostics if each.is_error][:_SHOWN]
    named = (
        f"{each.location}: {each.summary}" if each.location else each.summary for each in found
    )
    return f"{problem.problem}: {'; '.join(named)}"


def _log_notes(report: ApplyReport) -> None:
    for note in report.notes:
        LOG.warning("%s: %s", note.code, shown(note.summary))
