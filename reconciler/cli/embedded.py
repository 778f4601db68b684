"""The identity service in this process, as a wire: the very operations a server would call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from reconciler.cli.connection import (
    Connection,
    is_database,
    no_store,
    require_seal_key,
    store_errors,
    store_path,
)
from reconciler.cli.output import timed
from reconciler.cli.process import chosen
from reconciler.errors import writing
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.files import keep_out_of_git, make_folder
from reconciler.service.build import (
    IdentityService,
    open_postgres,
    open_sqlite,
)
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.sqlite_files import is_there
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.request import Request, request_of
from reconciler.service_client.locks import user_name
from reconciler.service_client.wire import Answer, WireRefusal


class InProcessWire:
    """Calls operations of a service in this process, with all rights."""

    def __init__(self, service: IdentityService) -> None:
        self._service = service
        self._caller = local_caller()

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Carry out calls in one commit.

        Raises:
            ServiceError: the store failed; nothing of the batch was written.
        """
        return self._carried_out(self._service.call_many, calls)

    def send_until_refused(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Carry out one or more writes in one commit, up to the first one that is refused.

        Later calls are not tried, and have no reply.

        Raises:
            ServiceError: the store failed; nothing was written.
        """
        return self._carried_out(self._service.call_until_refused, calls)

    def _carried_out(
        self,
        carry_out: Callable[[Sequence[Request]], Sequence[JsonObject | Refusal]],
        calls: Sequence[Call],
    ) -> Sequence[Answer | WireRefusal]:
        requests = [request_of(call, self._caller) for call in calls]
        with store_errors(), _timed_if_verbose(calls):
            results = carry_out(requests)
        return [
            WireRefusal(result.code, result.message, result.details)
            if isinstance(result, Refusal)
            else Answer(result)
            for result in results
        ]


def _timed_if_verbose(calls: Sequence[Call]) -> AbstractContextManager[None]:
    """Return a context that prints the operations of a batch and their time, with ``--verbose``."""
    if not chosen().verbose:
        return nullcontext()
    counted = Counter(call.operation for call in calls)
    return timed(", ".join(f"{count} {name}" for name, count in counted.items()))


@contextmanager
def open_service(
    connection: Connection, *, create: bool = False, read_only: bool = False
) -> Iterator[IdentityService]:
    """Open the service over the store at an address; ``create`` makes a store that is missing.

    Raises:
        ServiceError: there is no store there, it is not one of ours, or it cannot be used.
    """
    service = connection.service
    with store_errors():
        opened = _opener(service, create=create)(
            seal_key_file=connection.seal_key_file,
            create=create,
            read_only=read_only,
            keep_owed=connection.keep_owed * MICROSECONDS,
        )
        try:
            yield opened
        finally:
            opened.close()


def _opener(service: str, *, create: bool) -> Callable[..., IdentityService]:
    """Return the function that opens a store; the folder of a new file is made."""
    if is_database(service):
        return partial(open_postgres, service)
    path = store_path(service)
    if create:
        _make_folder(path.parent)
    elif not is_there(path):
        raise no_store(service)
    return partial(open_sqlite, path)


@contextmanager
def open_wire(connection: Connection, *, read_only: bool) -> Iterator[InProcessWire]:
    """Open the service at an address as a wire; for writing, a missing store is made.

    Raises:
        ServiceError: the store is not one of ours, or cannot be used.
    """
    if is_database(connection.service) and not read_only:
        require_seal_key(connection)
        _make_folder(connection.state)  # for the journal
    with open_service(connection, create=not read_only, read_only=read_only) as opened:
        yield InProcessWire(opened)


def local_caller() -> Caller:
    """Return the caller of a local store: every user who may write the file may do everything."""
    return Caller(f"local:{user_name()}", Role.ADMIN)


def _make_folder(folder: Path) -> None:
    """Make the store's folder; a folder made for it is kept out of Git."""
    remedy = "Name a store in a folder this user may write to (--service sqlite:PATH)."
    with writing(f"make the folder {folder}", remedy):
        if make_folder(folder):
            keep_out_of_git(folder)
