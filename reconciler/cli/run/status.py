"""The state of a run as others see it: as JSON, as figures, and as lines of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.cli.output import time_in_words
from reconciler.cli.run.memory import Purpose
from reconciler.continuous.decision import Condition, Hold, Mode
from reconciler.continuous.heal import Left
from reconciler.continuous.notices import WORDS
from reconciler.plan.drift import Drift
from reconciler.plan.model import Plan
from reconciler.report.drift_and_history import DriftDocument, drift_as_json
from reconciler.report.findings import FORMAT_VERSION
from reconciler.report.place import Place
from reconciler.report.plan_document import PlanDocument
from reconciler.report.plan_json import plan_as_json, ref_as_json
from reconciler.report.visible import without_credentials
from reconciler.resources.call import JsonObject
from reconciler.state import Applied, Pause

COMMIT = "{commit}"
"""Stands for the digits of a commit in the address of ``--commit-url``."""


class Happened(NamedTuple):
    """Something that happened, and when: seconds since the epoch."""

    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a run after a round. Times are seconds since the epoch; 0 for never.

    Attributes:
        tree: Name of the tree; empty where no commit was read yet.
        asked: The mode that was asked for; less counts, of a protected environment.
        seen: The commit that the ref names; empty where it is not known.
        seen_at: When this run saw that commit first.
        plan: Of the commit that was seen; None where it was not planned.
        drift: Since the commit that was applied last, else compared with the one seen.
        left: What drifted and is not healed.
        record: Of the commit that was applied last; None where the service has none.
        timeline: What happened since the run was started, oldest first; the last of it.
        failures: Why the last round could not do all of its work.
        round_at: When the last round ended.
        looked_at: When everything was observed last.
        rounds: How many there were; ``failed`` of them had a failure.
        notices: Those that were ``sent``, ``failed``, and are ``waiting``, since the start.
    """

    purpose: Purpose
    tree: str = ""
    asked: Mode = Mode.OBSERVE
    mode: Mode = Mode.OBSERVE
    seen: str = ""
    seen_at: int = 0
    applied: str = ""
    conditions: tuple[Condition, ...] = ()
    holds: tuple[Hold, ...] = ()
    plan: Plan | None = None
    drift: Drift | None = None
    left: tuple[Left, ...] = ()
    pause: Pause | None = None
    failures: tuple[str, ...] = ()
    record: Applied | None = None
    timeline: tuple[Happened, ...] = ()
    round_at: int = 0
    looked_at: int = 0
    rounds: int = 0
    failed: int = 0
    notices: Counter[str] = field(default_factory=Counter)

    @property
    def is_ready(self) -> bool:
        """Return whether the last round could do all of its work."""
        return self.rounds > 0 and not self.failures

    def lines(self) -> Iterator[str]:
        """Yield what there is to say about the state, a sentence each."""
        yield from self.failures
        if self.mode is not self.asked:
            yield f"environment {self.purpose.environment} is protected: mode {self.mode} counts"
        if self.asked is not Mode.OBSERVE and self.seen and not self.applied:
            yield "no commit that can be read is on record as applied: nothing is healed"
        if self.pause is not None:
            yield f"paused until {self.pause.until} by {self.pause.writer}: {self.pause.reason}"
        for hold in self.holds:
            yield f"commit {self.seen} is not applied ({hold.why}): {hold.problem}. {hold.remedy}"
        if Condition.DIFFERING in self.conditions:
            yield " ".join(WORDS[Condition.DIFFERING])
        yield from self._drifted()
        if Condition.WATCHING in self.conditions:
            yield "another run leads this tree; this one watches"

    def _drifted(self) -> Iterator[str]:
        for drifted in self.drift.objects if self.drift else ():
            what = ", ".join(field.name for field in drifted.fields) or "deleted"
            yield f"{drifted.ref} was changed on the service ({what}) by {drifted.cause.by}"
        for ref in self.drift.untold if self.drift else ():
            yield f"{ref} differs, and the service does not report who changed it"
        for left in self.left:
            yield f"{left.ref} is not healed: {left.why}"


def status_as_json(status: Status) -> JsonObject:
    """Return the state in stable keys."""
    purpose, plan = status.purpose, status.plan
    instance = plan.instance if plan else ""
    place = Place(purpose.service, instance, status.tree, purpose.environment)
    pause = status.pause
    return {
        "format_version": FORMAT_VERSION,
        "repository": without_credentials(purpose.repository),
        "ref": purpose.ref,
        "service": place.address,
        "environment": purpose.environment or None,
        "tree": status.tree or None,
        "mode": status.mode.value,
        "commit_seen": status.seen or None,
        "seen_at": _time(status.seen_at),
        "commit_applied": status.applied or None,
        "applied_at": status.record.at if status.record else None,
        "applied_by": status.record.writer if status.record else None,
        "conditions": [each.value for each in status.conditions],
        "holds": [hold._asdict() for hold in status.holds],
        "left": [{"ref": ref_as_json(left.ref), "why": left.why} for left in status.left],
        "pause": None
        if pause is None
        else {"reason": pause.reason, "until": pause.until, "by": pause.writer},
        "failures": list(status.failures),
        "timeline": [{"at": _time(each.at), "text": each.text} for each in status.timeline],
        "last_round": _time(status.round_at),
        "last_observed": _time(status.looked_at),
        "plan": plan_as_json(PlanDocument(plan, purpose.service)) if plan else None,
        "drift": drift_as_json(DriftDocument(status.drift, place)) if status.drift else None,
    }


def _time(seconds: int) -> str | None:
    return time_in_words(seconds) if seconds else None


def status_as_metrics(status: Status) -> str:
    """Return the state as figures in the text form of Prometheus."""
    drift = status.drift
    drifted = len(drift.refs) if drift else 0
    pending = len(status.plan.changes) if status.plan else 0
    lines = [
        *_figure("rounds_total", "counter", "Rounds.", status.rounds),
        *_figure("rounds_failed_total", "counter", "Rounds with a failure.", status.failed),
        *_figure("last_round_timestamp_seconds", "gauge", "End of the last one.", status.round_at),
        *_figure("drifted_objects", "gauge", "Objects changed on the service.", drifted),
        *_figure("pending_changes", "gauge", "Changes of the plan of the commit seen.", pending),
        *_figure("notices_sent_total", "counter", "Notices sent.", status.notices["sent"]),
        *_figure("notices_failed_total", "counter", "Notices given up.", status.notices["failed"]),
        *_figure("notices_waiting", "gauge", "Notices not sent yet.", status.notices["waiting"]),
        "# HELP reconciler_run_condition Whether the tree is in a condition.",
        "# TYPE reconciler_run_condition gauge",
    ]
    for each in Condition:
        is_so = int(each in status.conditions)
        lines.append(f'reconciler_run_condition{{condition="{each.value}"}} {is_so}')
    return "\n".join(lines) + "\n"


def _figure(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield f"# HELP reconciler_run_{name} {text}"
    yield f"# TYPE reconciler_run_{name} {kind}"
    yield f"reconciler_run_{name} {value}"
