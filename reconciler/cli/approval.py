"""Approval of a plan: by a plan file, by its digest, or by the word ``yes`` in a terminal."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler import __version__
from reconciler.cli.configured import Configured
from reconciler.cli.connection import in_one_form
from reconciler.cli.output import age_in_words, hint, say, show_warnings, time_in_words
from reconciler.diagnostics import error
from reconciler.errors import InvalidManifestsError, NoHistoryError, StalePlanError, UsageError
from reconciler.loop import LocalFiles, preview
from reconciler.plan.advice import NOT_IDENTIFIED
from reconciler.plan.approved_plan import (
    Moved,
    Traces,
    moved,
    other_options,
    owners_of_gone,
    partly_applied,
    perhaps_renewed,
    traces_of,
    written_for,
)
from reconciler.plan.digest import declared_digest, plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.service_client.port import HistoryReader
from reconciler.state import LET_THROUGH, DesiredState, ObservedState

if TYPE_CHECKING:
    from reconciler.plan.planfile import PlanFile


SKEW = 300  # seconds that two clocks may differ
SHOWN = 50
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
PLAN_AGAIN = "Run `reconciler plan` again and review the new plan. Nothing was written."


@dataclass(frozen=True, slots=True)
class Approval:
    """An approved plan: as a file, by its digest, or both.

    An approval orders nothing. It is held against the plan that is made anew.

    Attributes:
        store: Place of the store that is written to, if it is embedded.
    """

    file: PlanFile | None = None
    digest: str = ""
    store: str = ""

    @property
    def is_given(self) -> bool:
        """Return whether approval was given; otherwise the terminal is asked."""
        return self.file is not None or self.digest != ""

    def digest_of(self, plan: Plan) -> str:
        """Return the digest to keep with what is written: that of the plan that was approved.

        A run that goes on with a plan file plans less than was approved, and writes for the same
        plan, so that it can be gone on with again.
        """
        return plan_digest(plan) if self.file is None else self.file.digest

    def preview(
        self,
        desired: DesiredState,
        service: HistoryReader,
        scope: Scope,
        allowed: Allowances,
        files: LocalFiles,
    ) -> tuple[Plan, ObservedState]:
        """Return the plan of now, which is the approved one, and the state that it is based on.

        For a plan file that an earlier run carried out in part, it is the rest of that plan.

        Raises:
            StalePlanError: it is not; what moved is printed on stderr, object by object.
            InvalidManifestsError: the manifests contradict what is held.
            ServiceError: the service cannot be read.
        """
        if self.file is None or self.file.plan.scope.undo:
            plan, observed = preview(desired, service, scope, allowed, files)
            known = plan_digest(plan)
            if self.file is not None:
                _check_undo(self.file, plan, desired, observed)
        else:
            same = _OneService(service, self.file, self.store)
            files = files._replace(approved=self.file.plan)
            try:
                plan, observed = preview(desired, same, scope, allowed, files)
            except InvalidManifestsError as failure:
                if self.file.declared != declared_digest(desired):
                    raise
                show_warnings(failure.diagnostics)
                raise StalePlanError(
                    "the service has changed so that the manifests no longer fit what it holds",
                    remedy=PLAN_AGAIN,
                ) from failure
            plan = _same_or_rest(self.file, plan, desired, observed, service)
            known = self.file.digest
        if self.digest and self.digest != known:
            begun = written_for(observed, self.digest)
            raise _other_digest(self.digest, known, begun, _plan_again(plan.scope))
        return plan, observed


def _plan_again(scope: Scope) -> str:
    """Return what to do instead of a plan that is stale: the command that makes it anew."""
    if not scope.undo:
        return PLAN_AGAIN
    return f"Run `reconciler undo {scope.undo}` again and review the new plan. Nothing was written."


def _other_digest(approved: str, now: str, begun: int, again: str) -> StalePlanError:
    if begun:
        return StalePlanError(
            f"the plan that was approved was carried out in part: {begun} object(s) were written"
            " last for it",
            remedy="A digest cannot continue it. Give the plan file (`plan --out FILE`, then "
            "`apply FILE`), or plan and approve again. Nothing more was written.",
        )
    return StalePlanError(
        "the plan is no longer the one that was approved",
        remedy=f"Approved was {approved}; now it is {now}. {again}",
    )


def _check_undo(file: PlanFile, plan: Plan, desired: DesiredState, observed: ObservedState) -> None:
    """Refuse the plan of an undo that is not the one of a file; what moved is printed on stderr.

    A file cannot go on with an undo that was partly done: its writes are later changes by then.
    """
    _check_options(file.plan, plan)
    if plan_digest(plan) == file.digest:
        return
    found = moved(file.plan, plan, desired, observed)
    _show_moved(found)
    raise StalePlanError(
        f"the undo is no longer the one that was approved: {len(found)} object(s) moved",
        remedy=f"Run `reconciler undo {plan.scope.undo} --out FILE` again and review the new plan. "
        "Nothing was written.",
    )


class _OneService:
    """A service that is observed only if it is the one a plan was made for."""

    def __init__(self, history: HistoryReader, file: PlanFile, store: str) -> None:
        self._history, self.generation = history, history.generation
        self.histories, self.removals = history.histories, history.removals
        self._file = file
        self._is_same_store = in_one_form(file.plan.new_store) == in_one_form(store)

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        observed = self._history.observe(organizations, flows=flows)
        approved, now = self._file.plan.instance, observed.instance
        is_new = not approved
        if self._was_made_for(observed) if is_new else approved == now:
            return observed
        was_identified = all(each.code != NOT_IDENTIFIED for each in self._file.plan.warnings)
        give = f"Give the --service it was made for ({self._file.service})."
        if is_new and not self._is_same_store:
            problem = "the plan was made for another store, which was not there yet"
        elif is_new:
            problem = f"the plan was made before there was a service; now it is {now}"
        elif was_identified or observed.unidentified or not now:
            problem = f"the plan was made for service {approved}, and this is {now or 'none yet'}"
        else:
            problem = (
                f"the plan was made while its service did not report its id, and this is {now}"
            )
            give = f"It was made at {self._file.service}, which may be the same one."
        # It may be the very same, under an id made of its address.
        if was_identified and observed.unidentified:
            give = f"{LET_THROUGH}: it does not report its id. Or give{give.removeprefix('Give')}"
        raise StalePlanError(problem, remedy=f"{give} {PLAN_AGAIN}")

    def _was_made_for(self, observed: ObservedState) -> bool:
        """Return whether a store is the one that an approved plan makes, or has begun to make."""
        if not self._is_same_store:
            return False
        if written_for(observed, self._file.digest):
            return True
        return not observed.objects and not observed.elsewhere


def is_digest(text: str) -> bool:
    """Return whether a text is the digest of a plan."""
    return _DIGEST.fullmatch(text) is not None


def take_approval(
    paths: Sequence[str], digest: str, environment: str, store: str
) -> tuple[Approval, tuple[str, ...]]:
    """Return what was approved, and the paths that are left: those of the manifests.

    ``paths`` begin with a plan file, or are those of manifests alone. ``digest`` and
    ``environment`` may be empty. ``store`` is the place of the store that is written to.

    Raises:
        UsageError: the digest is not valid, or the plan file is not first, or alone and in Git.
        LocalFileError: the plan file cannot be used.
        StalePlanError: the plan file has expired, is of another environment, or was not made for
            being applied.
    """
    if digest and not is_digest(digest):
        raise UsageError(
            f"{digest} is not the digest of a plan",
            remedy="Every plan prints its own: sha256: and 64 hexadecimal digits.",
        )
    if not paths:
        return Approval(digest=digest), ()
    from reconciler.cli.git import is_tracked
    from reconciler.cli.plan_files import is_plan_file, open_plan_file

    if late := next(filter(is_plan_file, paths[1:]), ""):
        raise UsageError(
            f"{late} is taken for a plan file and is not the first path",
            remedy="Give it first: reconciler apply FILE [PATHS]. Nothing was written.",
        )
    if not is_plan_file(paths[0]):
        return Approval(digest=digest), tuple(paths)
    file = open_plan_file(paths[0])
    if not digest and is_tracked(Path(paths[0])):
        raise UsageError(
            f"the plan file {paths[0]} is a file of the repository",
            remedy="A plan file answers the question whether to apply, and no commit may do that. "
            "Give the digest that was reviewed as well, --digest; or keep plan files out of Git. "
            "Nothing was written.",
        )
    _check_use(file, int(time.time()))
    _check_environment(file.plan.scope.environment, environment)
    return Approval(file, digest, store), tuple(paths[1:])


def _check_use(file: PlanFile, now: int) -> None:
    if file.against is not None:
        taken = time_in_words(file.against.taken_at)
        raise StalePlanError(
            f"the plan was made against a snapshot of {taken}, not against the service",
            remedy=f"It can be shown but not applied. {PLAN_AGAIN}",
        )
    again = _plan_again(file.plan.scope)
    if now >= file.expires_at:
        ago = age_in_words(now - file.expires_at)
        raise StalePlanError(
            f"the plan has expired: it was good until {time_in_words(file.expires_at)} ({ago} ago)",
            remedy=again,
        )
    if file.made_at > now + SKEW:
        raise StalePlanError(
            f"the plan was made in the future, at {time_in_words(file.made_at)}",
            remedy=f"Check the clocks of both machines. {again}",
        )
    if file.tool_version != __version__:
        raise StalePlanError(
            f"the plan was made by version {file.tool_version}, and this is {__version__}",
            remedy=again,
        )


def _check_environment(approved: str, now: str) -> None:
    if approved == now:
        return
    made = f"for environment {approved}" if approved else "without an environment"
    chosen = f"{now} is chosen" if now else "none is chosen"
    right = f"Give --env {approved} to apply it." if approved else "Leave --env out to apply it."
    raise StalePlanError(f"the plan was made {made}, and {chosen}", remedy=f"{right} {PLAN_AGAIN}")


def _same_or_rest(
    file: PlanFile,
    plan: Plan,
    desired: DesiredState,
    observed: ObservedState,
    service: HistoryReader,
) -> Plan:
    """Return the plan of now if it is the approved one, or what is left of that one.

    Raises:
        StalePlanError: it is neither; what moved is printed on stderr, object by object.
    """
    _check_options(file.plan, plan)
    is_declared = file.declared == declared_digest(desired)
    # The service may have been made meanwhile: the approved plan is of before.
    then = replace(plan, instance=file.plan.instance, new_store=file.plan.new_store)
    if is_declared and file.digest == plan_digest(then):
        return plan
    state = partly_applied(
        file.plan, file.digest, plan, observed, _traces(file, plan, observed, service)
    )
    found = moved(state.expected, state.left, desired, observed)
    if state.was_begun and is_declared and not found:
        done, total = state.done, len(file.plan.changes)
        some = f"Going on with this plan: {done} of {total} done already."
        hint("Every change of this plan is done already." if done == total else some)
        return state.left
    _show_moved(found)
    if found:
        problem = f"{len(found)} object(s) moved since the plan was approved"
    else:
        problem = "the manifests declare something else than when the plan was approved"
    paths = " ".join(file.paths)
    raise StalePlanError(problem, remedy=f"It was made from the manifests in {paths}. {PLAN_AGAIN}")


def _check_options(approved: Plan, plan: Plan) -> None:
    """Refuse a plan that was made with other options than the approved one."""
    if options := other_options(approved, plan):
        raise StalePlanError(
            "the plan was made with other options",
            remedy=f"It was made {', '.join(options)}: give the same to apply it. "
            f"{_plan_again(plan.scope)}",
        )


def _show_moved(found: Sequence[Moved]) -> None:
    show_warnings(
        [
            error("PLAN-STALE", str(each), "It is no longer as it was approved.", ref=each.ref)
            for each in found[:SHOWN]
        ]
    )


def _traces(file: PlanFile, plan: Plan, observed: ObservedState, service: HistoryReader) -> Traces:
    """Ask what an earlier run of a plan file removed, and which secrets it replaced.

    Costs no call where nothing that was to be deleted is gone, and no secret may be replaced.
    """
    histories = dict(service.histories(perhaps_renewed(plan, file.digest)))
    owners = owners_of_gone(file.plan, observed)
    try:
        removals = [removal for owner in owners for removal in service.removals(owner)]
    except NoHistoryError:
        return traces_of(file.digest, None, histories)
    return traces_of(file.digest, removals, histories)


def check_protection(chosen: Configured, service: str, *, auto_approve: bool) -> None:
    """Refuse to write to a protected environment with ``--auto-approve``.

    If no environment is chosen, the service must not be that of a protected one.
    """
    if auto_approve and (protected := chosen.protected_at(service)):
        raise UsageError(
            f"environment {protected} is protected, and --auto-approve is given",
            remedy="Leave --auto-approve out and unset RECONCILER_AUTO_APPROVE: what is written "
            "there is approved one by one. Nothing was written.",
        )


def ask_for_yes(deed: str, command: str, about: Iterable[str] = ()) -> None:
    """Return once the word ``yes`` was typed to the question whether to do the deed.

    ``command`` is the one that asks; the lines of ``about`` stand above the question.

    Raises:
        UsageError: there is no terminal to ask in, or another word was typed.
    """
    if not sys.stdin.isatty():
        raise UsageError(
            f"there is no terminal to ask whether to {deed}",
            remedy=f"Give --auto-approve, or run {command} in a terminal. Nothing was written.",
        )
    say("".join(f"\n{line}" for line in about), err=True)
    question = f"{deed[0].upper()}{deed[1:]}? Only the word yes will do: "
    say(question, err=True, nl=False)
    if sys.stdin.readline().strip() != "yes":
        raise UsageError(
            "not approved: the answer was not the word yes", remedy="Nothing was written."
        )
