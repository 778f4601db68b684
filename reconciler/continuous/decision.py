"""The next step of a tree: watch it, heal what was applied, or apply a new commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reconciler.plan.model import Plan


class Mode(StrEnum):
    """The mode of a run: each may do what the ones before it may."""

    OBSERVE = "observe"
    HEAL = "heal"
    APPLY = "apply"


class Condition(StrEnum):
    """A state of a tree that may need an operator."""

    PENDING = "pending"
    DIFFERING = "differing"
    REWRITTEN = "rewritten"
    UNSIGNED = "unsigned"
    UNTRUSTED = "untrusted"
    INVALID = "invalid"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    DRIFTED = "drifted"
    CONTESTED = "contested"
    PAUSED = "paused"
    OWED = "owed"
    WATCHING = "watching"
    FAILING = "failing"


HELD = frozenset(
    {
        Condition.REWRITTEN,
        Condition.UNSIGNED,
        Condition.UNTRUSTED,
        Condition.INVALID,
        Condition.BLOCKED,
        Condition.UNKNOWN,
    }
)
"""The conditions of a tip that is not applied: the reasons of holds."""


class Hold(NamedTuple):
    """A reason why a commit is not applied, in words: what is wrong, and what to do."""

    why: Condition
    problem: str
    remedy: str


def holds_of(
    commit: str,
    missing: str = "",
    *,
    signature: str = "",
    differences: Sequence[str] = (),
    accepted: str = "",
    is_known: bool = True,
) -> Iterator[Hold]:
    """Yield why a commit that the ref names does not count yet.

    Args:
        commit: Its id.
        missing: A commit that was seen or applied, and that it does not come after; empty for none.
        signature: Why its signature does not count, in words; empty where it does, or where none
            is asked for.
        differences: Each difference of ``reconciler.yaml``, policies and waivers in what decides
            over approval, in words.
        accepted: The commit of ``--accept``; empty for none.
        is_known: Whether it is known what was applied before.
    """
    if missing and accepted != commit:
        yield Hold(
            Condition.REWRITTEN,
            f"the ref was rewritten: {commit} does not come after {missing}",
            f"If that was meant, start run with --accept {commit}.",
        )
    if signature:
        yield Hold(
            Condition.UNSIGNED,
            f"commit {commit} is not signed by an allowed key: {signature}",
            "Push a commit that one of the keys in the file of --signed-by has signed.",
        )
    if differences:
        yield Hold(
            Condition.UNTRUSTED,
            f"it changes what decides over approval: {'; '.join(differences)}",
            f"If that was meant, start run with --trust-commit {commit}.",
        )
    if not is_known:
        yield Hold(
            Condition.UNKNOWN,
            f"what was applied before commit {commit} is not known: this service keeps no "
            "record, and --state is new",
            "Start run with --applied COMMIT.",
        )


def blocked(plan: Plan) -> Hold | None:
    """Return why a plan must not be carried out, or None."""
    if not plan.blocks:
        return None
    first, more = plan.blocks[0], len(plan.blocks) - 1
    others = f", and {more} more" if more else ""
    return Hold(Condition.BLOCKED, f"{first.code}: {first.summary}{others}", first.remedy)


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a step depends on.

    Attributes:
        tip: The commit that the ref names; empty where it is not known.
        applied: The commit that was applied last; empty for none.
        applied_counts: Whether that commit may be healed towards: it is an ancestor of the ref,
            and signed where that is asked.
        holds: Why the tip is not applied.
        is_protected: Whether the environment takes approved plans only.
        is_paused: Whether the tree is paused.
        is_due: Whether the tip may be tried now.
    """

    mode: Mode
    tip: str = ""
    applied: str = ""
    applied_counts: bool = True
    holds: tuple[Hold, ...] = ()
    is_protected: bool = False
    heals_protected: bool = False
    is_paused: bool = False
    is_due: bool = True

    @property
    def allowed(self) -> Mode:
        """Return the mode that counts: a protected environment is never applied from here."""
        if not self.is_protected:
            return self.mode
        is_healed = self.heals_protected and self.mode is not Mode.OBSERVE
        return Mode.HEAL if is_healed else Mode.OBSERVE

    @property
    def is_pending(self) -> bool:
        """Return whether the tip is not what was applied last."""
        return bool(self.tip) and self.tip != self.applied


def next_step(situation: Situation) -> Mode:
    """Return what to do now, named by the mode that may do it."""
    mode = situation.allowed
    if mode is Mode.OBSERVE or situation.is_paused:
        return Mode.OBSERVE
    is_new = situation.is_pending and not situation.holds
    if mode is Mode.APPLY and is_new and situation.is_due:
        return Mode.APPLY
    if situation.applied and situation.applied_counts:
        return Mode.HEAL
    return Mode.OBSERVE


def conditions_of(
    situation: Situation,
    *,
    differing: Collection[object],
    drifted: Collection[object],
    contested: Collection[object],
    owed: int,
) -> tuple[Condition, ...]:
    """Return the conditions of a tree; none means that it is in step.

    ``differing`` is what the plan of the tip would change, and what is no drift: where the tip is
    on record as applied, it was applied with other values, or without its deletes.
    """
    found = {
        Condition.PENDING: situation.is_pending,
        **{hold.why: True for hold in situation.holds},
        Condition.DIFFERING: bool(differing) and not (situation.is_pending or situation.holds),
        Condition.DRIFTED: bool(drifted),
        Condition.CONTESTED: bool(contested),
        Condition.PAUSED: situation.is_paused,
        Condition.OWED: bool(owed),
    }
    return tuple(each for each in Condition if found.get(each))
