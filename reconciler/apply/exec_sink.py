"""A command of the operator that takes each secret on its standard input, in one process each.

The environment of the command names the application, and never holds the secret.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import Event

from reconciler.apply.command import Command, several_at_once
from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    NotGivenError,
    Stops,
    never,
)
from reconciler.errors import LocalFileError
from reconciler.resources.ref import ResourceRef


class ExecSink:
    """Hands each secret to a command; its exit code 0 says that the secret is kept."""

    scheme = "exec"
    follows = False

    def __init__(self, command: Command, parallel: int = 1) -> None:
        """Take a command, and how many of it may run at once."""
        self._command = command
        self._parallel = parallel

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Find the program. That it keeps what it gets, only it can know."""
        self._command.find()

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Run the command once per secret. After a stop signal no further one is started."""

        def handed(delivery: Delivery, abort: Event) -> Kept | LocalFileError:
            if stops():
                return not_given(self._command, delivery)
            content = delivery.client_secret.reveal().encode()
            failure = self._command.feed(content, _about(delivery), abort)
            return not_taken(self._command, delivery, failure) if failure else self._kept

        return several_at_once(handed, deliveries, self._parallel)

    def holds(self, ref: ResourceRef, client_id: str) -> bool | None:
        """Return None: such a command cannot be asked what it keeps."""
        return None

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return None for each application."""
        return [None for _ in applications]

    def moved(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Do nothing: renames at the other end are up to the operator."""
        return [() for _ in moves]

    def removed(self, applications: Sequence[Application]) -> Sequence[Followed]:
        """Do nothing: deletes at the other end are up to the operator."""
        return [() for _ in applications]

    @property
    def _kept(self) -> Kept:
        return Kept(f"{self.scheme}:{self._command.name}")


def not_taken(command: Command, delivery: Delivery, how: str) -> LocalFileError:
    """Return the error of a secret that a command did not take."""
    return LocalFileError(
        f"{command.name} did not take the secret of {delivery.ref} ({how})",
        remedy="Fix the command and run apply again: the secret is kept until then.",
    )


def not_given(command: Command, delivery: Delivery) -> LocalFileError:
    """Return the error of a secret that was not given to a command any more."""
    return NotGivenError(
        f"the secret of {delivery.ref} was not given to {command.name}: the run was interrupted",
        remedy="Run apply again: the secret is kept until then.",
    )


def _about(delivery: Delivery) -> dict[str, str]:
    ref = delivery.ref
    return {
        "RECONCILER_SECRET_ORGANIZATION": ref.organization,
        "RECONCILER_SECRET_PROJECT": ref.project,
        "RECONCILER_SECRET_NAME": ref.name,
        "RECONCILER_SECRET_CLIENT_ID": delivery.client_id,
    }
