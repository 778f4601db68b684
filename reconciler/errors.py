"""Every failure this package foresees, and what its reader can do about it.

ReconcilerError
├── UsageError                   the command line or the environment is wrong
├── InvalidManifestsError        the files are wrong; nothing was sent
│   ├── InvalidConfigurationError    reconciler.yaml, or a value for it, is wrong
│   └── InvalidPoliciesError         a policy or a waiver is wrong
├── BlockedPlanError             a guard says no; nothing was sent
│   └── PolicyError                  the policies could not be judged
├── StalePlanError               what was approved is no longer what would be done; nothing was sent
├── LocalFileError               a file of ours cannot be read or written: journal, sink, backup
├── RepositoryError              Git, or the repository of the manifests, cannot be used
├── OutputError                  stdout cannot be written
├── LockHeldError                another run is applying
├── InterruptedRunError          a signal asked the run to stop
└── ServiceError                 the service was asked, and said no
    ├── InvalidArgumentError         3
    ├── ObjectNotFoundError          5
    ├── AlreadyExistsError           6
    │   └── NotListedError               and its lists do not show that object
    ├── AccessDeniedError            7 and 16
    │   ├── UnauthenticatedError         16
    │   └── UnseenOrganizationError      not seen with this token, which may not see all
    ├── NoHistoryError               it keeps none that can be read
    ├── PreconditionFailedError      9
    └── ServiceUnavailableError      8, 10, 14: worth another try; the others are not

The numbers are gRPC codes. Any other exception that reaches the user is a bug in this package.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.diagnostics import Diagnostic


class ReconcilerError(Exception):
    """A foreseen failure: what is wrong, and what to do next.

    The remedy is a required argument so that no error is raised without a thought
    of the person who will read it.
    """

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


class UsageError(ReconcilerError):
    """The command cannot be carried out as it was given."""


class InvalidManifestsError(ReconcilerError):
    """The manifests cannot be used as they are; ``diagnostics`` holds every finding."""

    subject = "manifests"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        errors = sum(finding.is_error for finding in diagnostics)
        super().__init__(
            f"{errors} error{'' if errors == 1 else 's'} in the {self.subject}",
            remedy=f"Fix the {self.subject}, then run the command again. Nothing was written.",
        )
        self.diagnostics = tuple(diagnostics)


class InvalidConfigurationError(InvalidManifestsError):
    """The configuration cannot be used as it is, or a value that was given for a variable."""

    subject = "configuration"


class InvalidPoliciesError(InvalidManifestsError):
    """The policies or waivers cannot be used as they are."""

    subject = "policies"


class BlockedPlanError(ReconcilerError):
    """A guard does not let the plan pass."""


class PolicyError(BlockedPlanError):
    """The policies could not be judged, so what they would say counts as no."""


class StalePlanError(ReconcilerError):
    """The plan changed after it was approved."""


class LocalFileError(ReconcilerError):
    """A file of ours cannot be read or written."""


class RepositoryError(ReconcilerError):
    """Git failed, or what a repository holds cannot be used; nothing was sent to the service."""


def cannot_write(what: str, failure: OSError, remedy: str) -> LocalFileError:
    """Return the error of what cannot be done with a file or folder, of ``cannot WHAT``.

    Of a full disk it has the words that a user looks for, and a remedy of its own.
    """
    full = _FULL.get(failure.errno or 0)
    return LocalFileError(
        f"cannot {what}: {full or failure.strerror or failure}",
        remedy="Free some space, then run the command again." if full else remedy,
    )


@contextmanager
def writing(what: str, remedy: str) -> Iterator[None]:
    """Turn a failure of the system in the block into the error of ``cannot_write``."""
    try:
        yield
    except OSError as failure:
        raise cannot_write(what, failure, remedy) from failure


_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up"}


class OutputError(ReconcilerError):
    """Output could not be written to stdout."""


class NotDeliveredError(ReconcilerError):
    """A client secret was replaced, and the new one is not in the sink."""


class LockHeldError(ReconcilerError):
    """Another run is applying to an organization of this run."""


class InterruptedRunError(ReconcilerError, KeyboardInterrupt):
    """A signal asked the run to stop, and it did.

    An event loop in whose midst it is raised lets no other exception through.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__(
            "interrupted",
            remedy="What was done, if anything, is recorded; run the same command again to go on.",
        )
        self.signal_number = signal_number


@contextmanager
def ungrouped_interruption() -> Iterator[None]:
    """Raise an interruption as itself where a library has put it into a group of exceptions.

    A task group does so with every exception that leaves its block.
    """
    try:
        yield
    except BaseExceptionGroup as group:
        inner: BaseException | None = group.subgroup(KeyboardInterrupt)
        if inner is None:
            raise
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        raise inner from None


class ServiceError(ReconcilerError):
    """The service refused a request, could not be reached, or cannot be used."""


class InvalidArgumentError(ServiceError):
    """The service does not accept what was sent."""


class ObjectNotFoundError(ServiceError):
    """The service holds no such object."""


class AlreadyExistsError(ServiceError):
    """The service holds another object of that name."""


class NotListedError(AlreadyExistsError):
    """The service says that a name is taken, and its lists show no object of that name."""


class AccessDeniedError(ServiceError):
    """The service does not know the caller, or does not allow it this."""


class UnauthenticatedError(AccessDeniedError):
    """The service does not know the caller."""


class NoHistoryError(ServiceError):
    """The service keeps no history that can be read."""


class UnseenOrganizationError(AccessDeniedError):
    """An organization may exist, and the caller would not see it: missing and hidden look alike.

    Without a remedy it names the token and the role of our own service.
    """

    def __init__(self, names: Sequence[str], *, remedy: str = "") -> None:
        first, *others = names
        more = f" and {len(others)} more" if others else ""
        super().__init__(
            f"cannot say whether {first}{more} exists with this token",
            remedy=remedy
            or "The token is bound to other organizations. Use one for this organization or "
            "for all, or leave its manifests out of PATHS. To make a new organization, use a token "
            "with the role admin for all organizations.",
        )


class PreconditionFailedError(ServiceError):
    """The object is no longer what the request was based on."""


class ServiceUnavailableError(ServiceError):
    """The service did not answer, or asked to be asked again later."""


REFUSED = (
    InvalidArgumentError,
    ObjectNotFoundError,
    AlreadyExistsError,
    AccessDeniedError,
    PreconditionFailedError,
)
"""Answers after which it is certain that nothing was done. After any other error it is not."""
