"""States of a run, one for each thing that its page can show: for tests and for pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.cli.run.memory import Purpose
from reconciler.cli.run.status import Happened, Status
from reconciler.continuous.decision import Condition, Hold, Mode, blocked
from reconciler.continuous.heal import CONTESTED, Left
from reconciler.plan.diff import FieldChange
from reconciler.plan.drift import Drift, DriftedObject
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Cause, CauseKind, Plan, Scope
from reconciler.state import Applied, Pause
from tests.builders import (
    GREET,
    PARTNER,
    WEB,
    a_jwt_config,
    a_public_application,
    a_ref,
    an_action,
    an_application,
    an_owed_secret,
    declared,
    held,
    plan_of,
)

NOW = 1_800_000_000
SEEN, APPLIED = "9f2c41d8" * 5, "51b07ae3" * 5
AT = "2027-01-15T07:52:11.204518Z"
BY_ANA = Cause(CauseKind.SERVICE, "ana", AT, 1_799_999_531_204_518)
_PURPOSE = Purpose(
    "https://git.example.com/identity.git",
    "refs/heads/main",
    "https://id.staging.example.com",
    "staging",
    "",
)
_STARTED = Happened(NOW - 3600, f"commit {APPLIED} is applied: 3 change(s)")
_CALM = plan_of(
    [declared(WEB), declared(GREET), declared(PARTNER)], [held(WEB), held(GREET), held(PARTNER)]
)
IN_STEP = Status(
    _PURPOSE,
    tree="default",
    asked=Mode.APPLY,
    mode=Mode.APPLY,
    seen=APPLIED,
    seen_at=NOW - 3700,
    applied=APPLIED,
    plan=_CALM,
    drift=Drift(()),
    record=Applied("default", APPLIED, "2027-01-15T07:00:00.512304Z", "ci"),
    timeline=(_STARTED,),
    round_at=NOW,
    looked_at=NOW - 20,
    rounds=120,
)
_PENDING = plan_of(
    [
        declared(WEB, a_public_application(devMode=True)),
        declared(a_ref(name="console")),
        declared(GREET, an_action(timeout="1s")),
        declared(PARTNER, a_jwt_config(keysEndpoint="https://new.example.com/keys")),
    ],
    [held(WEB), held(GREET), held(PARTNER)],
)
_TIMEOUT = FieldChange("timeout", "20s", "1s")
_URIS = FieldChange(
    "redirectUris",
    ["https://shop.example.com/callback"],
    ["https://shop.example.com/callback", "https://ana.example.net/callback"],
)
_DRIFT = Drift(
    (
        DriftedObject(GREET, "302114", BY_ANA, (_TIMEOUT,)),
        DriftedObject(WEB, "302117", BY_ANA, (_URIS,)),
        DriftedObject(PARTNER, "302119", BY_ANA, removed=True),
    ),
)
_BLOCKED = plan_of(
    [declared(GREET)],
    [held(WEB, an_application()), held(GREET), held(PARTNER)],
    Scope(tree="default", prune=True),
    Allowances(),
)


def _with(status: Status, *conditions: Condition) -> Status:
    said = tuple(Happened(NOW - 60, line) for line in status.lines())
    return replace(status, conditions=conditions, timeline=(*status.timeline, *said))


def _held_back(why: Condition, problem: str, remedy: str) -> Status:
    hold = Hold(why, problem, remedy)
    status = replace(IN_STEP, seen=SEEN, seen_at=NOW - 60, holds=(hold,))
    if why is Condition.UNKNOWN:
        status = replace(status, applied="", record=None, drift=None, timeline=())
    return _with(status, Condition.PENDING, why)


def blocked_status(plan: Plan = _BLOCKED) -> Status:
    """Return the state in which a guard blocks a plan."""
    hold = blocked(plan)
    assert hold is not None
    status = replace(IN_STEP, seen=SEEN, seen_at=NOW - 60, plan=plan, holds=(hold,))
    return _with(status, Condition.PENDING, Condition.BLOCKED)


def all_states() -> Mapping[str, Status]:
    """Return each state by a name for it."""
    contested = (Left(GREET, "302114", CONTESTED),)
    owed = replace(_CALM, owed=(an_owed_secret(),))
    pause = Pause("default", "The partner is under attack", "2027-01-15T12:00:00Z", AT, "ana")
    failure = "the repository did not answer within 60 s. Check the network, and that it is up."
    return {
        "starting": Status(_PURPOSE, asked=Mode.APPLY, mode=Mode.APPLY),
        "in-step": IN_STEP,
        "pending": _with(
            replace(IN_STEP, seen=SEEN, seen_at=NOW - 60, plan=_PENDING), Condition.PENDING
        ),
        "differing": _with(replace(IN_STEP, plan=_PENDING), Condition.DIFFERING),
        "drifted": _with(replace(IN_STEP, drift=_DRIFT, mode=Mode.OBSERVE), Condition.DRIFTED),
        "blocked": blocked_status(),
        "contested": _with(
            replace(IN_STEP, drift=Drift(_DRIFT.objects[:1]), left=contested),
            Condition.DRIFTED,
            Condition.CONTESTED,
        ),
        "owed": _with(replace(IN_STEP, plan=owed), Condition.OWED),
        "paused": _with(replace(IN_STEP, pause=pause), Condition.PAUSED),
        "invalid": _held_back(
            Condition.INVALID,
            "the manifests are not valid: manifests/greet.yaml:8:12: timeout must be a duration",
            "Fix the manifests and push.",
        ),
        "unsigned": _held_back(
            Condition.UNSIGNED,
            f"commit {SEEN} is not signed by an allowed key: it has no signature",
            "Push a commit that one of the keys in the file of --signed-by has signed.",
        ),
        "rewritten": _held_back(
            Condition.REWRITTEN,
            f"the ref was rewritten: {SEEN} does not come after {APPLIED}",
            f"If that was meant, start run with --accept {SEEN}.",
        ),
        "untrusted": _held_back(
            Condition.UNTRUSTED,
            "reconciler.yaml decides otherwise: protection of environment staging is no, was yes",
            f"If that was meant, start run with --trust-commit {SEEN}.",
        ),
        "unknown": _held_back(
            Condition.UNKNOWN,
            f"what was applied before commit {SEEN} is not known: this service keeps no record, "
            "and --state is new",
            "Start run with --applied COMMIT.",
        ),
        "failing": _with(replace(IN_STEP, failures=(failure,), failed=3), Condition.FAILING),
        "watching": _with(replace(IN_STEP, conditions=(Condition.WATCHING,)), Condition.WATCHING),
    }
