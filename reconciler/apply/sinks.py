"""Sinks by their address, and the sinks that are commands of the operator.

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
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    NotGivenError,
    SecretSink,
    Stops,
    never,
)
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret

if TYPE_CHECKING:
    from reconciler.apply.command import Command

KINDS = "file:DIR, 'age:DIR?recipient=age1...', exec:COMMAND or exec-batch:COMMAND"
MOST_AT_ONCE = 64
_DELIVERS = (
    "it delivers the secret if the service kept it, and otherwise says how to make a new one"
)


def open_sink(address: str, environment: Mapping[str, str]) -> SecretSink:
    """Return the sink at an address; a command gets the environment, less what is ours.

    Raises:
        UsageError: there is no such kind of sink, or the address says too little.
    """
    scheme, _, rest = address.partition(":")
    kind, has_settings, settings = scheme.partition("?")
    if kind not in {"file", "age", *_COMMANDS} or not rest:
        raise UsageError(
            f"{kind}: is not a destination for secrets", remedy=f"Write one of {KINDS}."
        )
    if kind in _COMMANDS:
        from reconciler.apply.command import Command

        return _COMMANDS[kind](Command(rest, environment, _parallel(kind, settings)))
    if has_settings:
        raise UsageError(
            f"{kind}: takes no settings before the colon", remedy=f"Write one of {KINDS}."
        )
    if kind == "age":
        return _age_sink(rest, environment)
    from reconciler.apply.folder_sinks import FileSink

    return FileSink(_folder(kind, rest, environment))


def _age_sink(rest: str, environment: Mapping[str, str]) -> SecretSink:
    from reconciler.apply.folder_sinks import AgeSink

    folder, _, query = rest.partition("?")
    pairs = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    unknown = [name for name, _ in pairs if name != "recipient"]
    if unknown or not folder:
        raise UsageError(
            f"age: does not know {unknown[0]}" if unknown else "age: needs a folder",
            remedy="Write 'age:DIR?recipient=age1...', with &recipient=... for each one more.",
        )
    return AgeSink(_folder("age", folder, environment), [value for _, value in pairs])


def _folder(kind: str, written: str, environment: Mapping[str, str]) -> Path:
    """Return a folder; ``~`` in front is the home folder, which no shell has put there yet."""
    first, _, rest = written.partition("/")
    if not first.startswith("~"):
        return Path(written)
    if first != "~":
        raise UsageError(
            f"{kind}:{written}: only ~/ is the home folder",
            remedy=f"Write the path in full, or {kind}:./{written} for a folder of that name.",
        )
    home = environment.get("HOME", "")
    if not home.startswith("/"):
        raise UsageError(
            f"{kind}:{written} is in the home folder, and HOME does not say where that is",
            remedy="Set HOME to an absolute path, or write the path in full.",
        )
    return Path(home) / rest


def _parallel(kind: str, settings: str) -> int:
    """Return how many processes may run at once; 1 where nothing is said."""
    if not settings:
        return 1
    found = re.fullmatch(r"parallel=([1-9][0-9]?)", settings, re.ASCII)
    if found is None or int(found[1]) > MOST_AT_ONCE:
        raise UsageError(
            f"{kind}: does not know {settings}",
            remedy=f"Write '{kind}?parallel=N:COMMAND', N being 1 to {MOST_AT_ONCE}.",
        )
    return int(found[1])


class ExecSink:
    """Hands each secret to a command; its exit code 0 says that the secret is kept."""

    scheme = "exec"
    follows = False

    def __init__(self, command: Command) -> None:
        self._command = command

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Find the program. That it keeps what it gets, only it can know."""
        self._command.find()

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Run the command once per secret. After a stop signal no further one is started."""

        def delivered(delivery: Delivery, abort: Event) -> Kept | LocalFileError:
            if stops():
                return self._not_given(delivery)
            content = delivery.client_secret.reveal().encode()
            failure = self._command.feed(content, _about(delivery), abort)
            return self._not_taken(delivery, failure) if failure else self._kept

        return self._command.several_at_once(delivered, deliveries)

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return None for each application."""
        return [None for _ in applications]

    def follow(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Do nothing: renames and deletes at the other end are up to the operator."""
        return [() for _ in moves]

    @property
    def _kept(self) -> Kept:
        return Kept(f"{self.scheme}:{self._command.name}")

    def _not_taken(self, delivery: Delivery, how: str) -> LocalFileError:
        return LocalFileError(
            f"{self._command.name} did not take the secret of {delivery.ref} ({how})",
            remedy=f"Fix the command and run apply again: {_DELIVERS}.",
        )

    def _not_given(self, delivery: Delivery) -> LocalFileError:
        name = self._command.name
        return NotGivenError(
            f"the secret of {delivery.ref} was not given to {name}: the run was interrupted",
            remedy=f"Run apply again: {_DELIVERS}.",
        )


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
        put = partial(self._put, stops)
        # The delivery at position ``at`` is in the share at % parallel, at position at // parallel.
        parallel = self._command.parallel
        shares = [deliveries[start::parallel] for start in range(parallel)]
        done = self._command.several_at_once(put, [share for share in shares if share])
        return [done[at % parallel][at // parallel] for at in range(len(deliveries))]

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Ask the command about all of them, in one process."""
        if not applications:
            return []
        lines = [_line(ref, client_id) for ref, client_id in applications]
        answers = self._command.exchange("has", lines, never, Event()).answers
        said = [answers.get(client_id, {}).get("has") for _, client_id in applications]
        return [one if isinstance(one, bool) else None for one in said]

    def _put(
        self, stops: Stops, share: Sequence[Delivery], abort: Event
    ) -> Sequence[Kept | LocalFileError]:
        lines = [_line(one.ref, one.client_id, one.client_secret) for one in share]
        done = self._command.exchange("put", lines, stops, abort)

        def result(place: int, delivery: Delivery) -> Kept | LocalFileError:
            if done.answers.get(delivery.client_id, {}).get("kept") is True:
                return self._kept
            if place >= done.given and stops():
                return self._not_given(delivery)
            return self._not_taken(delivery, done.failure or "no answer")

        return [result(place, delivery) for place, delivery in enumerate(share)]


def _about(delivery: Delivery) -> dict[str, str]:
    ref = delivery.ref
    return {
        "RECONCILER_SECRET_ORGANIZATION": ref.organization,
        "RECONCILER_SECRET_PROJECT": ref.project,
        "RECONCILER_SECRET_NAME": ref.name,
        "RECONCILER_SECRET_CLIENT_ID": delivery.client_id,
    }


def _line(ref: ResourceRef, client_id: str, secret: Secret | None = None) -> str:
    line = {"organization": ref.organization, "project": ref.project, "name": ref.name}
    line["client_id"] = client_id
    if secret is not None:
        line["client_secret"] = secret.reveal()
    return json.dumps(line)


_COMMANDS = {sink.scheme: sink for sink in (ExecSink, ExecBatchSink)}
