"""A command of the operator's that takes each secret on its standard input.

It comes from a flag or the environment only, never from anything that is read from a tree. It
is run without a shell; what the secret belongs to is in its environment, the secret is not.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence

from reconciler.apply.sink import Application, Delivery, Followed, Kept, Move, Stops, never
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.ref import ResourceRef

SECONDS = 60
OURS = ("RECONCILER_TOKEN",)


class ExecSink:
    """Hands each secret to a command; its exit code 0 says that the secret is kept."""

    def __init__(self, command: str, environment: Mapping[str, str]) -> None:
        """Take a command line, and the environment it is to have.

        Raises:
            UsageError: it is no command line.
        """
        self._environment = {name: environment[name] for name in environment if name not in OURS}
        try:
            self._words = shlex.split(command)
        except ValueError as failure:
            raise UsageError(
                f"the command of exec: cannot be read: {failure}",
                remedy="Close every quote: --secrets-to 'exec:vault-put --field client_secret'.",
            ) from None
        if not self._words:
            raise UsageError("exec: needs a command", remedy="Write --secrets-to exec:COMMAND.")

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Find the program. That it keeps what it gets, only it can know."""
        if shutil.which(self._words[0]) is None:
            raise LocalFileError(
                f"there is no program {self._words[0]} to take secrets",
                remedy="Install it, or name it by its path in --secrets-to exec:COMMAND.",
            )

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Run the command once per secret. Its output is not shown: it could hold the secret."""
        return [
            self._not_started(delivery) if stops() else self._handed(delivery)
            for delivery in deliveries
        ]

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return that this is not known of any."""
        return [None for _ in applications]

    def moved(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Leave to the operator what a rename means at the other end."""
        return [() for _ in moves]

    def removed(self, applications: Sequence[Application]) -> Sequence[Followed]:
        """Leave to the operator what a delete means at the other end."""
        return [() for _ in applications]

    def holds(self, ref: ResourceRef, client_id: str) -> bool | None:
        """Say that this cannot be told."""
        return None

    def _handed(self, delivery: Delivery) -> Kept | LocalFileError:
        try:
            done = subprocess.run(
                self._words,
                input=delivery.client_secret.reveal().encode(),
                env={**self._environment, **_about(delivery)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as failure:
            return self._failed(delivery, type(failure).__name__)
        if done.returncode:
            return self._failed(delivery, f"exit code {done.returncode}")
        return Kept(f"exec:{self._words[0]}")

    def _not_started(self, delivery: Delivery) -> LocalFileError:
        return LocalFileError(
            f"the secret of {delivery.ref} was not given to {self._words[0]}: the run was "
            "interrupted",
            remedy="Run apply again: the secret is kept until then.",
        )

    def _failed(self, delivery: Delivery, how: str) -> LocalFileError:
        return LocalFileError(
            f"{self._words[0]} did not take the secret of {delivery.ref} ({how})",
            remedy="Fix the command and run apply again: the secret is kept until then.",
        )


def _about(delivery: Delivery) -> dict[str, str]:
    ref = delivery.ref
    return {
        "RECONCILER_SECRET_ORGANIZATION": ref.organization,
        "RECONCILER_SECRET_PROJECT": ref.project,
        "RECONCILER_SECRET_NAME": ref.name,
        "RECONCILER_SECRET_CLIENT_ID": delivery.client_id,
    }
