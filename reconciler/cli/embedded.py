"""The identity service in this process, as a wire: the very operations a server would call."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reconciler.apply.durable import keep_out_of_git, make_folder
from reconciler.errors import ServiceError
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.errors import StoreError
from reconciler.service.operations.caller import Caller, Role
from reconciler.service.operations.request import Request
from reconciler.service_client.wire import Answer, Call, WireRefusal


class InProcessWire:
    """Calls operations of a service in this process, with all rights."""

    def __init__(self, service: IdentityService, caller: Caller) -> None:
        self._service = service
        self._caller = caller

    def send(self, calls: Sequence[Call]) -> Sequence[Answer | WireRefusal]:
        """Carry out calls in one commit.

        Raises:
            ServiceError: the store failed; nothing of the batch was written.
        """
        requests = [self._request(call) for call in calls]
        try:
            results = self._service.call_many(requests)
        except StoreError as failure:
            raise ServiceError(failure.problem, remedy=failure.remedy) from failure
        return [
            WireRefusal(result.code, result.message, result.details)
            if isinstance(result, Refusal)
            else Answer(result)
            for result in results
        ]

    def _request(self, call: Call) -> Request:
        return Request(
            operation=call.operation,
            fields=call.fields,
            caller=self._caller,
            organization=call.organization,
            expected_sequence=call.expected_sequence,
            idempotency_key=call.idempotency_key,
            lease=call.lease,
            context=call.context,
        )


@contextmanager
def open_wire(path: Path, *, read_only: bool) -> Iterator[InProcessWire]:
    """Open the store at a path, and make it first where it may be written and is missing.

    Raises:
        ServiceError: the file is no store of ours, is damaged, or cannot be used.
    """
    if not read_only:
        _make_folder(path.parent)
    try:
        service = open_sqlite(path, create=not read_only, read_only=read_only)
    except StoreError as failure:
        raise ServiceError(failure.problem, remedy=failure.remedy) from failure
    try:
        yield InProcessWire(service, local_caller())
    finally:
        service.close()


def local_caller() -> Caller:
    """Return who works on the store directly: whoever may write the file may do everything."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return Caller(f"local:{user}", Role.ADMIN)


def _make_folder(folder: Path) -> None:
    """Make the store's folder; a folder made for it is kept out of Git."""
    try:
        if make_folder(folder):
            keep_out_of_git(folder)
    except OSError as failure:
        raise ServiceError(
            f"cannot make the folder {folder}: {failure.strerror}",
            remedy="Name a store in a folder this user may write to (--service sqlite:PATH).",
        ) from failure
