"""Carries out a plan in batches, each recorded before it is sent and after it is safe."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from reconciler.apply.changes import (
    ApplyReport,
    ChangeRun,
    Outcome,
    Progress,
    Status,
    Watch,
    deactivation_of,
    intents_of,
    order_of,
)
from reconciler.apply.delivery import (
    DeliveryResult,
    acknowledged,
    declared_applications,
    deliver_held,
    deliver_owed,
    missing_secrets,
    owed_for,
    unanswered_secrets,
)
from reconciler.apply.journal import Intent, Journal
from reconciler.apply.recovery import follow, recover
from reconciler.apply.sink import Kept, SecretSink
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import (
    LocalFileError,
    LockHeldError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.plan.diff import is_not_sent
from reconciler.plan.guards import Allowances
from reconciler.plan.model import (
    NO_PLAN,
    Create,
    Delete,
    Plan,
    held_of,
    is_secret_alone,
    makes_secret,
    ref_of,
)
from reconciler.plan.ordering import batches, needed_by
from reconciler.resources.process import crashpoint
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import Context, Order, SecretOrder, ServiceClient, Written
from reconciler.state import ObservedState


class Executor:
    """Carries out one plan against one service."""

    def __init__(
        self,
        service: ServiceClient,
        journal: Journal,
        sink: SecretSink | None,
        watch: Watch,
        context: Context,
        allowed: Allowances | None = None,
    ) -> None:
        """Take what a run works with; the context is kept with everything that is written.

        ``allowed`` has the reasons of changes that a guard would stop; they are kept likewise.
        """
        self._service = service
        self._journal = journal
        self._sink = sink
        self._watch = watch
        self._context = context
        self._allowed = allowed or Allowances()
        self._custody = False  # of the service; known once it was observed
        self._plan = NO_PLAN
        self._ids: dict[ResourceRef, str] = {}
        # The kinds that this run has removed an object of, each with the id of the organization.
        self._removed: set[tuple[Kind, str]] = set()
        self._notes: list[Diagnostic] = []
        # What an earlier run left open, and what ends once this one has reported it.
        self._left: Sequence[Intent] = ()
        self._done = 0
        # The service, the disk or the lock failed: nothing more is sent.
        self._failure: ReconcilerError | None = None

    def run(
        self, plan: Plan, observed: ObservedState, *, require_secrets: bool = False
    ) -> ApplyReport:
        """Deliver what is owed, recover what an earlier run left open, then carry out the plan.

        A change that is refused keeps back only what depends on it. A service or a disk that
        fails keeps back everything after it. Nothing is raised for either: it is in the report.
        With ``require_secrets`` the report has an error for each secret that the sink lacks.

        Raises:
            LocalFileError: the sink cannot take secrets, or the journal cannot be written;
                nothing was sent.
        """
        self._custody, self._plan = observed.custody, plan
        delivered = self._deliver_owed()
        notes, self._left = recover(self._journal, self._sink, observed, plan.organizations)
        self._notes += notes
        self._ids = {key: held.id for key, held in observed.objects.items()}
        runs = {id(change): ChangeRun(change) for change in plan.changes}
        for batch in batches(plan.changes, self._service.batch_size):
            if self._failure is None and not self._watch.stop_signal():
                self._carry_out([runs[id(change)] for change in batch], len(runs))
        outcomes = tuple(run.outcome for run in runs.values())
        if require_secrets or not observed.custody:  # custody itself knows what is missing
            self._notes += self._missing(observed, outcomes, is_required=require_secrets)
        interrupted = self._watch.stop_signal()
        if self._failure or interrupted:  # the rest of a create may not be written
            self._left = [intent for intent in self._left if intent.purpose == "secret"]
        return ApplyReport(
            outcomes,
            (*delivered.notes, *self._notes),
            interrupted=interrupted,
            delivered=tuple(delivered.delivered),
        )

    def was_told(self) -> None:
        """Record, once the report is shown, the end of what an earlier run left open."""
        with suppress(LocalFileError):  # the next run reports it again
            self._journal.end([intent.key for intent in self._left])

    def _deliver_owed(self) -> DeliveryResult:
        """Deliver what is owed to the tree, before anything new is made."""
        owed = owed_for(self._sink, self._plan)
        secrets = [ref_of(change) for change in self._plan.changes if makes_secret(change)]
        secrets += [secret.ref for secret in owed]
        if secrets:
            self._proven_sink().prove(secrets)
        if not owed:
            return DeliveryResult()
        stops = self._watch.stop_signal
        result = deliver_owed(owed, self._service, self._proven_sink(), self._context, stops)
        self._failure = result.failure
        return result

    def _missing(
        self, observed: ObservedState, outcomes: Sequence[Outcome], *, is_required: bool
    ) -> Sequence[Diagnostic]:
        """Return findings on secrets that are not in the sink, but for those reported before."""
        if self._sink is None or self._watch.stop_signal():
            return ()
        told = {note.ref for note in self._notes if note.is_error}
        applications = declared_applications(self._plan, observed, outcomes)
        left = [application for application in applications if application.ref not in told]
        made = {outcome.client_id for outcome in outcomes if outcome.secret_at}
        return tuple(missing_secrets(left, made, self._sink, required=is_required))

    def _carry_out(self, batch: Sequence[ChangeRun], total: int) -> None:
        """Carry out the changes of a batch that have what they need; leave the others."""
        ready = [
            run for run in batch if self._has_what_it_needs(run) and not is_not_sent(run.change)
        ]
        self._done += len(batch) - len(ready)
        self._watch.begins([run.change for run in ready])
        self._write_changes(ready)
        crashpoint("C4")
        self._deactivate_new(ready)
        self._notes += follow(self._sink, ready)
        self._make_secrets(ready)
        crashpoint("C6")
        self._deliver(ready)
        if self._sink is not None:  # without one, no change makes a secret
            self._notes += unanswered_secrets(ready, self._sink)
        crashpoint("C10")
        self._acknowledge(ready)
        crashpoint("C18")
        for run in ready:
            self._tell(run, total)
        self._end(ready)
        crashpoint("C11")

    def _write_changes(self, runs: Sequence[ChangeRun]) -> None:
        """Record intents, then send the changes in one call. Nothing is raised for a failure."""
        has_sink = self._sink is not None
        for run in runs:
            run.intents = [*intents_of(run.change, custody=self._custody, has_sink=has_sink)]
        intents = [intent for run in runs for intent in run.intents]
        sent = [run for run in runs if not is_secret_alone(run.change)]
        try:
            self._service.renew()
            self._journal.begin(intents)
            crashpoint("C2")
            answers = self._write(
                [(run, order_of(run.change, self._ids, self._removed)) for run in sent]
            )
        except (ServiceError, LockHeldError, LocalFileError) as failure:
            self._failure = failure
            for run in runs:
                run.result = failure
            return
        for run in runs:
            held = held_of(run.change)
            if held is not None and is_secret_alone(run.change):  # nothing had to be sent yet
                run.result = Written(held.id, held.sequence, held.client_id)
        for run, answer in zip(sent, answers, strict=True):
            run.result = answer
            run.is_written = isinstance(answer, Written)
            if self._failure is None and isinstance(answer, ServiceUnavailableError):
                self._failure = answer

    def _deactivate_new(self, runs: Sequence[ChangeRun]) -> None:
        """Deactivate what was made and is declared inactive; its intent is open until then."""
        self._write_second(
            [
                (run, deactivation_of(run.change, run.result, self._ids))
                for run in runs
                if isinstance(run.change, Create) and run.change.resource.active is False
                if isinstance(run.result, Written)
            ]
        )

    def _make_secrets(self, runs: Sequence[ChangeRun]) -> None:
        """Give each application that moved to a client secret one."""
        second = [
            (run, SecretOrder(held))
            for run in runs
            if (held := held_of(run.change)) and makes_secret(run.change)
            if isinstance(run.result, Written)
        ]
        for run, answer in self._write_second(second):
            run.result = answer

    def _write_second(
        self, second: Sequence[tuple[ChangeRun, Order]]
    ) -> list[tuple[ChangeRun, Written]]:
        """Send the second write of changes; return what was written. Nothing is raised."""
        answers: Sequence[Written | ServiceError]
        try:
            answers = self._write(second)
        except ServiceError as failure:
            self._failure = failure
            answers = [failure for _ in second]
        written = []
        for (run, _), answer in zip(second, answers, strict=True):
            if isinstance(answer, ServiceError):
                run.owed = answer
            else:
                run.is_written = True
                written.append((run, answer))
        return written

    def _write(self, orders: Sequence[tuple[ChangeRun, Order]]) -> Sequence[Written | ServiceError]:
        """Send orders, each with the reason for which a guard or a policy let its change pass."""
        reasoned = []
        for run, order in orders:
            reason = self._allowed.reason_for(run.change)
            said = {"reason": reason, "waived": self._plan.waived_for(run.change)}
            despite = {name: text for name, text in said.items() if text}
            reasoned.append(replace(order, despite=despite))
        return self._service.write(reasoned, self._context)

    def _deliver(self, runs: Sequence[ChangeRun]) -> None:
        """Put every new secret of the batch into the sink."""
        found = [(run, delivery) for run in runs if (delivery := run.delivery) is not None]
        if not found:
            return
        deliveries = [delivery for _, delivery in found]
        stops = self._watch.stop_signal
        results = deliver_held(self._proven_sink(), deliveries, self._service, stops)
        for (run, _), kept in zip(found, results, strict=True):
            if isinstance(kept, Kept):
                run.secret_at = kept.at
                self._notes += kept.notes
            else:
                run.owed = self._failure = kept

    def _acknowledge(self, runs: Sequence[ChangeRun]) -> None:
        """Acknowledge to the service the secrets of the batch that are in the sink."""
        kept = {
            ref_of(run.change): run.result
            for run in runs
            if isinstance(run.result, Written) and run.secret_at
        }
        self._notes += acknowledged(self._service, kept)

    def _end(self, runs: Sequence[ChangeRun]) -> None:
        """Record what is at its end. What may still happen at the service stays open."""
        ended = [intent.key for run in runs if run.is_over for intent in run.intents]
        try:
            self._journal.end(ended)
        except LocalFileError as failure:
            self._failure = failure
            said = f"What was written stays; the next apply checks it again. {failure.remedy}"
            self._notes.append(warning("APPLY-NOT-RECORDED", failure.problem, said))

    def _tell(self, run: ChangeRun, total: int) -> None:
        """Report a change that is done to the watch, and keep the id that later changes need."""
        outcome, ref = run.outcome, ref_of(run.change)
        if outcome.status is Status.MADE and not isinstance(run.change, Delete):
            self._ids[ref.key] = outcome.id
        if isinstance(run.change, Delete):
            self._removed.add((ref.kind, run.change.held.organization_id))
        self._done += 1
        self._watch.progress(Progress(self._done, total, outcome))

    def _has_what_it_needs(self, run: ChangeRun) -> bool:
        return all(key in self._ids for key in needed_by(run.change))

    def _proven_sink(self) -> SecretSink:
        if self._sink is None:
            raise UsageError(
                "the plan creates client secrets, and no destination is chosen",
                remedy="Give --secrets-to file:DIR.",
            )
        return self._sink
