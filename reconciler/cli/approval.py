"""What was approved, and whether it is still what would be done."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.cli.life import age_in_words, time_in_words
from reconciler.cli.reading import show_warnings
from reconciler.diagnostics import error
from reconciler.errors import InvalidManifestsError, StalePlanError, UsageError
from reconciler.loop import preview
from reconciler.plan.digest import declared_digest, plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.service_client.port import ServiceReader
from reconciler.state import DesiredState, ObservedState

if TYPE_CHECKING:
    from reconciler.plan.planfile import PlanFile
    from reconciler.plan.staleness import Moved

SKEW = 300  # seconds that two clocks may differ
SHOWN = 50
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
AGAIN = "Run `reconciler plan` again and review the new plan. Nothing was written."


@dataclass(frozen=True, slots=True)
class Approval:
    """A plan that somebody approved: as a file, by its digest, or both.

    An approval orders nothing. It is held against the plan that is made anew.
    """

    file: PlanFile | None = None
    digest: str = ""

    @property
    def is_given(self) -> bool:
        """Say whether there is one; without one somebody is asked."""
        return self.file is not None or self.digest != ""

    def preview(
        self, desired: DesiredState, service: ServiceReader, scope: Scope, allowed: Allowances
    ) -> tuple[Plan, ObservedState]:
        """Return what a run would do now, and what it was decided on: just what was approved.

        Raises:
            StalePlanError: it is not; what moved is told on stderr, object by object.
            InvalidManifestsError: the manifests contradict what is held.
            ServiceError: the service cannot be read.
        """
        if self.file is None:
            plan, observed = preview(desired, service, scope, allowed)
        else:
            plan, observed = _preview_again(self.file, desired, service, (scope, allowed))
        if self.digest and self.digest != plan_digest(plan):
            raise StalePlanError(
                "the plan is no longer the one that was approved",
                remedy=f"Approved was {self.digest}; now it is {plan_digest(plan)}. {AGAIN}",
            )
        return plan, observed


def _preview_again(
    file: PlanFile,
    desired: DesiredState,
    service: ServiceReader,
    options: tuple[Scope, Allowances],
) -> tuple[Plan, ObservedState]:
    try:
        plan, observed = preview(desired, _OneService(service, file), *options)
    except InvalidManifestsError as failure:
        if file.declared != declared_digest(desired):
            raise
        show_warnings(failure.diagnostics)
        raise StalePlanError(
            "the service has changed so that the manifests no longer fit what it holds",
            remedy=AGAIN,
        ) from failure
    _check_same(file, plan, desired, observed)
    return plan, observed


class _OneService:
    """A service that is observed only if it is the one a plan was made for."""

    def __init__(self, service: ServiceReader, file: PlanFile) -> None:
        self._service = service
        self._file = file

    def observe(self, organizations: Collection[str]) -> ObservedState:
        """Return what is held.

        Raises:
            StalePlanError: it is another service.
        """
        observed = self._service.observe(organizations)
        approved, now = self._file.plan.instance, observed.instance
        if approved == now:
            return observed
        if approved:
            problem = f"the plan was made for service {approved}, and this is {now or 'none yet'}"
        else:
            problem = f"the plan was made before there was a service; now it is {now}"
        raise StalePlanError(
            problem, remedy=f"Give the --service it was made for ({self._file.service}). {AGAIN}"
        )


def take_approval(paths: Sequence[str], digest: str) -> tuple[Approval, tuple[str, ...]]:
    """Return what was approved, and the paths that are left: those of the manifests.

    Raises:
        UsageError: the digest is none.
        LocalFileError: the plan file cannot be used.
        StalePlanError: the plan file has expired, or was not made for being applied.
    """
    if digest and not _DIGEST.fullmatch(digest):
        raise UsageError(
            f"{digest} is no digest of a plan",
            remedy="Every plan prints its own: sha256: and 64 hexadecimal digits.",
        )
    if not paths:
        return Approval(digest=digest), ()
    from reconciler.cli.saved_files import is_plan_file, open_plan_file

    if not is_plan_file(paths[0]):
        return Approval(digest=digest), tuple(paths)
    file = open_plan_file(paths[0])
    _check_use(file, int(time.time()))
    return Approval(file, digest), tuple(paths[1:])


def _check_use(file: PlanFile, now: int) -> None:
    if file.against is not None:
        taken = time_in_words(file.against.taken_at)
        raise StalePlanError(
            f"the plan was made against a snapshot of {taken}, not against the service",
            remedy=f"It can be shown, and not applied. {AGAIN}",
        )
    if now >= file.expires_at:
        ago = age_in_words(now - file.expires_at)
        raise StalePlanError(
            f"the plan has expired: it was good until {time_in_words(file.expires_at)} ({ago} ago)",
            remedy=AGAIN,
        )
    if file.made_at > now + SKEW:
        raise StalePlanError(
            f"the plan was made in the future, at {time_in_words(file.made_at)}",
            remedy=f"See that the clocks of both machines are right. {AGAIN}",
        )
    if file.tool_version != __version__:
        raise StalePlanError(
            f"the plan was made by version {file.tool_version}, and this is {__version__}",
            remedy=AGAIN,
        )


def _check_same(file: PlanFile, plan: Plan, desired: DesiredState, observed: ObservedState) -> None:
    from reconciler.plan.staleness import moved, other_options

    options = other_options(file.plan, plan)
    if options:
        raise StalePlanError(
            "the plan was made with other options",
            remedy=f"It was made {', '.join(options)}: give the same to apply it. {AGAIN}",
        )
    if file.digest == plan_digest(plan) and file.declared == declared_digest(desired):
        return
    found = moved(file.plan, plan, desired, observed)
    _tell(found)
    if found:
        problem = f"{len(found)} object(s) moved since the plan was approved"
    else:
        problem = "the manifests declare something else than when the plan was approved"
    paths = " ".join(file.paths)
    raise StalePlanError(problem, remedy=f"It was made of the manifests in {paths}. {AGAIN}")


def _tell(found: Sequence[Moved]) -> None:
    show_warnings(
        [
            error("PLAN-STALE", str(each), "It is no longer as it was approved.", ref=each.ref)
            for each in found[:SHOWN]
        ]
    )
