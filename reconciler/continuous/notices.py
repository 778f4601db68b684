"""The notices that follow from two states of a tree: what changed, what it means, what to do.

A notice has words of this module and names of conditions only. Texts of the service, of the
repository and of findings may hold values of fields, so none of them is part of a notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.continuous.decision import HELD, Condition


@dataclass(frozen=True, slots=True)
class Known:
    """The state of a tree that notices are decided by. A commit is empty where it is not known."""

    seen: str = ""
    applied: str = ""
    conditions: tuple[Condition, ...] = ()


class Words(NamedTuple):
    """The meaning of a condition, and what to do about it."""

    means: str
    do: str


class Notice(NamedTuple):
    """One change of state.

    Attributes:
        type: What happened to what, such as ``drifted.began``.
    """

    type: str
    means: str
    do: str


NOTHING = "Nothing."
WORDS = {
    Condition.PENDING: Words(
        "The commit of the branch is not applied.",
        "Apply it; in mode apply, read the other conditions.",
    ),
    Condition.DIFFERING: Words(
        "The commit is on record as applied, and its plan is not empty.",
        "Give each apply and run the same variables and flags, and apply the commit again.",
    ),
    Condition.REWRITTEN: Words(
        "The branch was rewritten: its commit does not come after the one before.",
        "If that was meant, start run with --accept COMMIT.",
    ),
    Condition.UNSIGNED: Words(
        "The commit is not signed by an allowed key.",
        "Push a commit that an allowed key has signed.",
    ),
    Condition.UNTRUSTED: Words(
        "The commit changes what decides over approval.",
        "Review it. If that was meant, start run with --trust-commit COMMIT.",
    ),
    Condition.INVALID: Words(
        "The manifests of the commit are not valid.",
        "Run reconciler validate, fix the manifests and push.",
    ),
    Condition.BLOCKED: Words(
        "A guard or a policy blocks the plan of the commit, or a secret has no destination.",
        "Read the log or the page of run: it says what allows the plan.",
    ),
    Condition.UNKNOWN: Words(
        "It is not known which commit was applied before.",
        "Start run with --applied COMMIT.",
    ),
    Condition.DRIFTED: Words(
        "An object was changed on the service.",
        "See the log or the page of run. In mode heal only what needs a person is left.",
    ),
    Condition.CONTESTED: Words(
        "An object was healed three times within an hour and changed again.",
        "Find the other writer with reconciler history.",
    ),
    Condition.PAUSED: Words(
        "The tree is paused: nothing is written.",
        "Nothing: the pause ends by itself, or with reconciler resume.",
    ),
    Condition.OWED: Words(
        "A client secret waits for its delivery.",
        "Start run with --secrets-to.",
    ),
    Condition.FAILING: Words(
        "The repository or the service could not be used, or the work of a round failed.",
        "Read the log of run.",
    ),
}
"""The words of each condition that has notices; ``watching`` has none."""

APPLIED = Notice("commit.applied", "A commit was applied as a whole.", NOTHING)
BEGAN = "run.began"
FROM_NOW = "The notices of this tree come from this run from now on."

# Of another commit each of these is new, also where the commit before had it.
_OF_COMMIT = frozenset({Condition.PENDING, *HELD})


def notices_of(before: Known | None, after: Known) -> Iterator[Notice]:
    """Yield the notices of a change of state; ``before`` is None where none is known."""
    if before is None:
        yield _first(after)
        return
    is_applied = bool(after.applied) and after.applied != before.applied
    if is_applied:
        yield APPLIED
    for each, words in WORDS.items():
        is_said = is_applied and each is Condition.PENDING
        if each in before.conditions and each not in after.conditions and not is_said:
            yield Notice(f"{each}.ended", f"No longer so: {words.means}", NOTHING)
    for each, words in WORDS.items():
        is_new = each not in before.conditions or (each in _OF_COMMIT and before.seen != after.seen)
        if each in after.conditions and is_new:
            yield Notice(f"{each}.began", *words)


def _first(after: Known) -> Notice:
    """Return the notice of the first state that is known, whatever it is."""
    found = [words for each, words in WORDS.items() if each in after.conditions]
    if not found:
        return Notice(BEGAN, f"{FROM_NOW} Nothing is left to do.", NOTHING)
    means = " ".join(words.means for words in found)
    return Notice(BEGAN, f"{FROM_NOW} {means}", " ".join(words.do for words in found))
