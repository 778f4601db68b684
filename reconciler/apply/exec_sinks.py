"""Commands of the operator that take secrets, like a credential helper.

``exec`` starts a process for each secret, which it reads on its standard input. The environment of
the command names the application, and never holds the secret.

``exec-batch`` gives many secrets to one process. It is run with a verb as its last argument, reads
a line of JSON per application, and answers a line of JSON per application:

- ``put``: ``{"organization", "project", "name", "client_id", "client_secret"}`` is answered with
  ``{"client_id", "kept": true}`` once the secret is kept.
- ``has``: the same without ``client_secret`` is answered with ``{"client_id", "has": true}`` or
  ``false``.

Answers may come in any order. An application without an answer is not kept, or not known.
"""

from __future__ import annotations

import json
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
from reconciler.resources.secret import Secret


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

        def delivered_owed(delivery: Delivery, abort: Event) -> Kept | LocalFileError:
            if stops():
                return not_given(self._command, delivery)
            content = delivery.client_secret.reveal().encode()
            failure = self._command.feed(content, _about(delivery), abort)
            return not_taken(self._command, delivery, failure) if failure else self._kept

        return several_at_once(delivered_owed, deliveries, self._parallel)

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


class ExecBatchSink(ExecSink):
    """Hands a whole batch to a command, or a share of it to each of several."""

    scheme = "exec-batch"

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Run ``put`` without a line: a command that knows the verb ends with exit code 0.

        Raises:
            LocalFileError: the program is missing, or ends with another exit code.
        """
        super().prove(refs)
        failure = self._command.exchange("put", [], never, Event()).failure
        if failure:
            raise LocalFileError(
                f"{self._command.name} cannot take secrets with the verb put ({failure})",
                remedy="With nothing on its standard input it must end with exit code 0. A "
                "command that takes one secret at a time is written exec:COMMAND.",
            )

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Give each process its share. A run that is to stop gives no further line."""

        def put(share: Sequence[Delivery], abort: Event) -> Sequence[Kept | LocalFileError]:
            return self._put(share, stops, abort)

        shares = [deliveries[start :: self._parallel] for start in range(self._parallel)]
        done = several_at_once(put, [share for share in shares if share], self._parallel)
        return [done[at % self._parallel][at // self._parallel] for at in range(len(deliveries))]

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Ask the command about all of them, in one process."""
        if not applications:
            return []
        lines = [_line(ref, client_id) for ref, client_id in applications]
        answers = self._command.exchange("has", lines, never, Event()).answers
        said = [answers.get(client_id, {}).get("has") for _, client_id in applications]
        return [one if isinstance(one, bool) else None for one in said]

    def _put(
        self, share: Sequence[Delivery], stops: Stops, abort: Event
    ) -> Sequence[Kept | LocalFileError]:
        lines = [_line(one.ref, one.client_id, one.client_secret) for one in share]
        done = self._command.exchange("put", lines, stops, abort)

        def result(place: int, delivery: Delivery) -> Kept | LocalFileError:
            if done.answers.get(delivery.client_id, {}).get("kept") is True:
                return self._kept
            if place >= done.given and stops():
                return not_given(self._command, delivery)
            return not_taken(self._command, delivery, done.failure or "no answer")

        return [result(place, delivery) for place, delivery in enumerate(share)]


def _line(ref: ResourceRef, client_id: str, secret: Secret | None = None) -> str:
    line = {"organization": ref.organization, "project": ref.project, "name": ref.name}
    line["client_id"] = client_id
    if secret is not None:
        line["client_secret"] = secret.reveal()
    return json.dumps(line)
