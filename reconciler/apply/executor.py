"""Carries out a plan in batches, each recorded before it is sent and after it is safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.apply.delivery import (
    DeliveryResult,
    acknowledged,
    deliver_held,
    deliver_owed,
    owed_for,
)
from reconciler.apply.journal import Intent, Journal
from reconciler.apply.missing_secrets import (
    declared_applications,
    missing_secrets,
    unanswered_secrets,
)
from reconciler.apply.orders import (
    held_before,
    intent_of,
    order_of,
    secret_order,
    unchanged,
)
from reconciler.apply.outcome import ApplyReport, Outcome, Progress, Status, Watch
from reconciler.apply.recovery import Recovery
from reconciler.apply.sink import Application, Delivery, Kept, SecretSink
from reconciler.apply.sink_sync import SinkSync
from reconciler.diagnostics import Diagnostic, warning
from reconciler.errors import (
    REFUSED,
    LocalFileError,
    LockHeldError,
    ReconcilerError,
    ServiceError,
    ServiceUnavailableError,
    UsageError,
)
from reconciler.plan.guards import Allowances
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Plan,
    is_secret_alone,
    makes_secret,
    ref_of,
)
from reconciler.plan.ordering import batches
from reconciler.resources.crashpoint import crashpoint
from reconciler.resources.ref import ResourceRef, owner_of
from reconciler.service_client.port import Order, ServiceClient, Written
from reconciler.state import ObservedState, OwedSecret


class Executor:
    """Carries out one plan against one service."""

    def __init__(
        self,
        service: ServiceClient,
        journal: Journal,
        sink: SecretSink | None,
        watch: Watch,
        context: Mapping[str, Any],
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
        self._reason_of = (allowed or Allowances()).reason_for
        self._sync = SinkSync(journal, sink)
        self._ids: dict[ResourceRef, str] = {}
        self._recovered = DeliveryResult()
        self._outcomes: list[Outcome] = []
        self._broken: ReconcilerError | None = None

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
            ServiceError: what an earlier run left open cannot be ended now.
        """
        secrets = [ref_of(change) for change in plan.changes if makes_secret(change)]
        owed = owed_for(self._sink, plan)
        secrets += [secret.ref for secret in owed]
        if secrets:
            self._proven_sink().prove(secrets)
        delivered_owed = self._deliver_owed(owed)
        in_sink = {each.id for each in delivered_owed.delivered if each.error is None}
        recovery = Recovery(
            self._service, self._journal, self._sink, self._context, self._watch.stop_signal
        )
        followed = self._sync.recover(observed, plan.organizations)
        self._recovered = recovery.recover(observed, plan.organizations, in_sink)
        self._recovered.notes[:0] = followed
        self._ids = {key: held.id for key, held in observed.objects.items()}
        for batch in batches(plan.changes, self._service.batch_size):
            if self._broken or self._watch.stop_signal():
                self._skip(batch)
            else:
                self._carry_out(batch, len(plan.changes))
        places = {id(change): place for place, change in enumerate(plan.changes)}
        outcomes = sorted(self._outcomes, key=lambda outcome: places[id(outcome.change)])
        missing: Iterable[Diagnostic] = ()
        if require_secrets or not observed.custody:  # custody itself knows what is missing
            applications = declared_applications(plan, observed, outcomes)
            missing = self._missing(applications, outcomes, is_required=require_secrets)
        return ApplyReport(
            tuple(outcomes),
            (*delivered_owed.notes, *self._recovered.notes, *missing),
            interrupted=self._watch.stop_signal(),
            delivered=(*delivered_owed.delivered, *self._recovered.delivered),
        )

    def _deliver_owed(self, owed: Sequence[OwedSecret]) -> DeliveryResult:
        """Deliver what is owed to the tree, before anything new is made."""
        if not owed:
            return DeliveryResult()
        delivered_owed = deliver_owed(
            owed,
            self._service,
            self._proven_sink(),
            self._context,
            self._watch.stop_signal,
        )
        self._broken = delivered_owed.failure
        return delivered_owed

    def _missing(
        self,
        applications: Sequence[Application],
        outcomes: Sequence[Outcome],
        *,
        is_required: bool,
    ) -> Iterator[Diagnostic]:
        """Yield which secrets are not in the sink; what recovery has reported is left out."""
        if self._sink is None or self._watch.stop_signal():
            return
        told = {note.ref for note in self._recovered.notes if note.is_error}
        left = [application for application in applications if application.ref not in told]
        made = {outcome.client_id for outcome in outcomes if outcome.secret_at}
        yield from missing_secrets(left, made, self._sink, required=is_required)

    def _carry_out(self, batch: Sequence[Change], total: int) -> None:
        ready: list[Change] = []
        orphans: list[Change] = []
        for change in batch:
            (ready if self._owner_is_held(change) else orphans).append(change)
        self._skip(orphans)
        intents = {
            ref_of(change): intent
            for change in ready
            if (intent := intent_of(change, self._service.run))
        }
        self._watch.begins(ready)
        results = self._send(ready, intents)
        crashpoint("C4")
        self._recovered.notes += self._sync.follow(ready, results)
        owing = self._ask_new_secrets(ready, results)
        unanswered = set(owing)
        crashpoint("C6")
        places = self._deliver(ready, results, owing)
        self._recovered.notes += unanswered_secrets(ready, results, self._sink)
        crashpoint("C10")
        self._acknowledge(ready, results, places)
        crashpoint("C18")
        for change, result in zip(ready, results, strict=True):
            ref = ref_of(change)
            outcome = _outcome(change, result, places.get(ref, ""))
            if ref in owing:
                written = not is_secret_alone(change) or ref not in unanswered
                outcome = Outcome(change, Status.FAILED, error=owing[ref], written=written)
            self._note(outcome, total)
        still_open = {ref: intent for ref, intent in intents.items() if ref not in owing}
        self._end(ready, results, still_open)
        crashpoint("C11")

    def _send(
        self, changes: Sequence[Change], intents: Mapping[ResourceRef, Intent]
    ) -> list[Written | ReconcilerError]:
        try:
            self._service.renew()
            self._journal.begin([*intents.values(), *self._sync.intents(changes)])
            crashpoint("C2")
            sent = [change for change in changes if not is_secret_alone(change)]
            orders = [
                replace(
                    order_of(change, intents.get(ref_of(change)), self._ids),
                    reason=self._reason_of(change),
                )
                for change in sent
            ]
            answers = iter(self._service.write(orders, self._context))
            results = [
                unchanged(change) if is_secret_alone(change) else next(answers)
                for change in changes
            ]
        except (ServiceError, LockHeldError, LocalFileError) as failure:
            self._broken = failure
            return [failure for _ in changes]
        gone = [result for result in results if isinstance(result, ServiceUnavailableError)]
        self._broken = gone[0] if gone else None
        return list(results)

    def _ask_new_secrets(
        self, changes: Sequence[Change], results: list[Written | ReconcilerError]
    ) -> dict[ResourceRef, ReconcilerError]:
        """Give the applications that moved to a client secret one; return who got none."""
        moved = [
            index
            for index, (change, result) in enumerate(zip(changes, results, strict=True))
            if not isinstance(change, Create) and makes_secret(change) and _ok(result)
        ]
        orders = [
            replace(
                secret_order(held_before(changes[index])), reason=self._reason_of(changes[index])
            )
            for index in moved
        ]
        owing: dict[ResourceRef, ReconcilerError] = {}
        for index, result in zip(moved, self._write(orders), strict=True):
            if isinstance(result, ServiceError):
                owing[ref_of(changes[index])] = result
            else:
                results[index] = result
        return owing

    def _write(self, orders: Sequence[Order]) -> Sequence[Written | ServiceError]:
        try:
            return self._service.write(orders, self._context)
        except ServiceError as failure:
            self._broken = failure
            return [failure for _ in orders]

    def _deliver(
        self,
        changes: Sequence[Change],
        results: Sequence[Written | ReconcilerError],
        owing: dict[ResourceRef, ReconcilerError],
    ) -> Mapping[ResourceRef, str]:
        """Put every secret of the batch into the sink; return where each is."""
        deliveries = [
            Delivery(ref_of(change), result.client_id, result.client_secret)
            for change, result in zip(changes, results, strict=True)
            if isinstance(result, Written) and result.client_secret
        ]
        if not deliveries:
            return {}
        places: dict[ResourceRef, str] = {}
        results_of = deliver_held(
            self._proven_sink(), deliveries, self._service, self._watch.stop_signal
        )
        for delivery, kept in zip(deliveries, results_of, strict=True):
            if isinstance(kept, Kept):
                places[delivery.ref] = kept.at
                self._recovered.notes += kept.notes
            else:
                owing[delivery.ref] = self._broken = kept
        return places

    def _acknowledge(
        self,
        changes: Sequence[Change],
        results: Sequence[Written | ReconcilerError],
        places: Mapping[ResourceRef, str],
    ) -> None:
        """Tell the service which secrets of the batch are in the sink."""
        kept = {
            ref_of(change): result
            for change, result in zip(changes, results, strict=True)
            if isinstance(result, Written) and ref_of(change) in places
        }
        self._recovered.notes += acknowledged(self._service, kept)

    def _end(
        self,
        changes: Sequence[Change],
        results: Sequence[Written | ReconcilerError],
        intents: Mapping[ResourceRef, Intent],
    ) -> None:
        """Record what is at its end. What may still happen at the service stays open."""
        ended = self._sync.take_ended()
        for change, result in zip(changes, results, strict=True):
            ref = ref_of(change)
            if ref in intents and isinstance(result, (Written, *REFUSED)):
                ended.append(intents[ref].key)
        try:
            self._journal.end(ended)
        except LocalFileError as failure:
            self._broken = failure
            self._recovered.notes.append(_not_recorded(failure))

    def _note(self, outcome: Outcome, total: int) -> None:
        self._outcomes.append(outcome)
        if outcome.status is Status.MADE and not isinstance(outcome.change, Delete):
            self._ids[ref_of(outcome.change).key] = outcome.id
        self._watch.progress(Progress(len(self._outcomes), total, outcome))

    def _skip(self, changes: Sequence[Change]) -> None:
        self._outcomes += [Outcome(change, Status.NOT_TRIED) for change in changes]

    def _owner_is_held(self, change: Change) -> bool:
        owner = owner_of(ref_of(change))
        return owner is None or owner.key in self._ids

    def _proven_sink(self) -> SecretSink:
        if self._sink is None:
            raise UsageError(
                "the plan creates client secrets, and no destination is chosen",
                remedy="Give --secrets-to file:DIR.",
            )
        return self._sink


def _ok(result: Written | ReconcilerError) -> bool:
    return isinstance(result, Written)


def _outcome(change: Change, result: Written | ReconcilerError, place: str) -> Outcome:
    if isinstance(result, ReconcilerError):
        return Outcome(change, Status.FAILED, error=result)
    return Outcome(change, Status.MADE, result.id, result.client_id, place)


def _not_recorded(failure: LocalFileError) -> Diagnostic:
    return warning(
        "APPLY-NOT-RECORDED",
        failure.problem,
        "What was written stays; the next apply checks it again. " + failure.remedy,
    )
