"""Carrying out the plan of a round, as ``apply`` carries out its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconciler.apply.changes import ApplyReport, Progress, Status
from reconciler.apply.executor import Executor
from reconciler.apply.sink import SecretSink
from reconciler.cli.clients import prove_seal_key, why_a_sink
from reconciler.cli.connection import Connection
from reconciler.cli.journals import open_journal
from reconciler.cli.moments import new_context
from reconciler.continuous.decision import Condition, Hold
from reconciler.loop import carry_out
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Change, Plan, ref_of, word
from reconciler.report.apply_report import DONE
from reconciler.report.visible import visible
from reconciler.service_client.port import ServiceClient
from reconciler.state import DesiredState, ObservedState

LOG = logging.getLogger("reconciler.run")


@dataclass(frozen=True, slots=True)
class Writer:
    """Carries out the plans of a run, and logs what is done.

    Attributes:
        stop_signal: Returns the signal that ends the run, or 0.
    """

    connection: Connection
    sink: SecretSink | None
    allowed: Allowances
    stop_signal: Callable[[], int]
    require_secrets: bool = False

    def no_sink(self, plan: Plan) -> Hold | None:
        """Return why a plan cannot be carried out for want of a sink, or None."""
        why = why_a_sink(plan)
        if not why or self.sink is not None:
            return None
        problem = f"{why}, and no destination is chosen"
        return Hold(Condition.BLOCKED, problem, "Start run with --secrets-to.")

    def carry_out(
        self,
        commit: str,
        plan: Plan,
        observed: ObservedState,
        desired: DesiredState,
        service: ServiceClient,
    ) -> ApplyReport:
        """Carry out a plan of a commit. The caller has locked its organizations.

        Raises:
            ReconcilerError: nothing was sent.
        """
        scope = plan.scope
        context = new_context(scope.tree, commit, plan_digest(plan))
        if why_a_sink(plan):
            prove_seal_key(self.connection)
        opened = open_journal(self.connection, observed.instance, scope, desired.organizations, 0)
        with opened as journal:
            executor = Executor(service, journal, self.sink, self, context, self.allowed)
            required = self.require_secrets
            report = carry_out(plan, observed, desired, service, executor, require_secrets=required)
            for note in report.notes:
                summary, remedy = visible(note.summary), visible(note.remedy)
                LOG.warning("%s: %s. %s", note.code, summary, remedy)
            executor.was_told()
        return report

    def begins(self, changes: Sequence[Change]) -> None:
        """Do nothing: what is done is logged at its end."""

    def progress(self, progress: Progress) -> None:
        """Log what became of a change, or why it failed."""
        outcome = progress.latest
        ref, error = visible(str(ref_of(outcome.change))), outcome.error
        if error is not None:
            LOG.warning("%s failed: %s. %s", ref, visible(error.problem), visible(error.remedy))
        elif outcome.status is Status.MADE:
            LOG.info("%s %s", ref, DONE[word(outcome.change)])
        else:
            LOG.info("%s %s", ref, outcome.status.replace("_", " "))
