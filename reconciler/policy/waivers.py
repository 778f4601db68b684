"""Waivers: a policy lets some objects pass until a day, with an owner and a reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from reconciler.diagnostics import Diagnostic, Source, error, note, warning
from reconciler.policy.model import Policy
from reconciler.resources.nearest import nearest
from reconciler.resources.ref import RefSet, ResourceRef

SOON = 14
"""Days before the end of a waiver from which on a note says so."""

EVERYTHING = "*"
"""The pattern that covers every object, and also a policy over the whole plan."""


@dataclass(frozen=True, slots=True)
class Waiver:
    """One waiver.

    Attributes:
        policy: Name of the policy that is waived.
        refs: Addresses as ``parse_pattern`` returns them, or ``EVERYTHING``.
        objects: The refs that these addresses name.
        until: The last day on which it counts, in UTC.
        source: Asked for the place of any value.
    """

    name: str
    policy: str
    refs: tuple[str, ...]
    reason: str
    owner: str
    until: date
    source: Source
    objects: RefSet

    def covers(self, ref: ResourceRef | None) -> bool:
        """Return whether it is about an object; None stands for the whole plan."""
        return EVERYTHING in self.refs or (ref is not None and ref in self.objects)

    def counts(self, today: date) -> bool:
        """Return whether it still counts."""
        return today <= self.until


@dataclass(frozen=True, slots=True)
class PolicySet:
    """Policies and waivers of some folders."""

    policies: tuple[Policy, ...] = ()
    waivers: tuple[Waiver, ...] = ()


def findings_of(
    waivers: Sequence[Waiver], policies: Collection[str], today: date
) -> Iterator[Diagnostic]:
    """Yield which waivers are over, end soon, or name no policy.

    Args:
        waivers: Those that are judged.
        policies: Names of all policies.
        today: The day of the run, in UTC.
    """
    for waiver in waivers:
        left = (waiver.until - today).days
        if left < 0:
            yield error(
                "WAIVER-EXPIRED",
                f"waiver {waiver.name} of policy {waiver.policy} ended on {waiver.until}",
                f"Change what it covered, and remove it. {waiver.owner} answers for it.",
                waiver.source.place("spec", "until"),
            )
        elif left <= SOON:
            yield note(
                "WAIVER-ENDS",
                f"waiver {waiver.name} of policy {waiver.policy} ends on {waiver.until}",
                f"From the day after, the policy refuses what it covers. {waiver.owner} answers "
                "for it.",
                waiver.source.place("spec", "until"),
            )
        if waiver.policy not in policies:
            meant = nearest(waiver.policy, policies)
            yield warning(
                "WAIVER-UNUSED",
                f"waiver {waiver.name} names no policy: {waiver.policy}",
                f"Did you mean {meant}?" if meant else "Remove it, or correct the name.",
                waiver.source.place("spec", "policy"),
            )


def unused(waiver: Waiver) -> Diagnostic:
    """Return the warning about a waiver that waives nothing."""
    return warning(
        "WAIVER-UNUSED",
        f"waiver {waiver.name} of policy {waiver.policy} waives nothing",
        "No object that it covers is refused by the policy. Remove it, or correct its refs.",
        waiver.source.place("spec", "refs"),
    )
