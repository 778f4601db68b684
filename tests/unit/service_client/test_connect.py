"""From a wire to a client: which kind of service is at its other end, and in what batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ServiceError
from reconciler.resources.call import Call, Code
from reconciler.service_client.client import OperationsClient
from reconciler.service_client.connect import (
    BATCH,
    RemoteService,
    client_of,
    read_only_client,
)
from reconciler.service_client.locks import this_process
from reconciler.service_client.read_only import ReadOnlyClient
from reconciler.service_client.wire import Answer, Reply, WireRefusal
from reconciler.service_client.zitadel.client import ZitadelClient

OURS = Answer({"product": "reconciler"})
NOT_THERE = WireRefusal(Code.NOT_FOUND, "no such address")


class Wire:
    """Gives one reply to every call."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.asked: list[str] = []

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Return the reply for each call."""
        self.asked += [call.operation for call in calls]
        return [self.reply for _ in calls]


def a_service(folder: Path, reply: Reply = OURS, kind: str = "auto") -> RemoteService:
    return RemoteService(Wire(reply), this_process(), kind, "https://id.example.com", folder)


@pytest.mark.parametrize(
    ("per_second", "batch"), [(0, BATCH), (-1, BATCH), (1, 20), (0.01, 1), (100, BATCH)]
)
def test_a_batch_takes_no_longer_than_a_lock_lasts(
    tmp_path: Path, per_second: float, batch: int
) -> None:
    assert replace(a_service(tmp_path), per_second=per_second).batch == batch


@pytest.mark.parametrize(
    ("kind", "reply", "writer", "reader"),
    [
        ("auto", OURS, OperationsClient, ReadOnlyClient),
        ("auto", NOT_THERE, ZitadelClient, ZitadelClient),
        ("auto", replace(NOT_THERE, code=Code.UNIMPLEMENTED), ZitadelClient, ZitadelClient),
        ("auto", Answer({"product": "another"}), ZitadelClient, ZitadelClient),
        ("reconciler", NOT_THERE, OperationsClient, ReadOnlyClient),
        ("zitadel", OURS, ZitadelClient, ZitadelClient),
    ],
)
def test_the_client_is_that_of_the_service(
    tmp_path: Path, kind: str, reply: Reply, writer: type, reader: type
) -> None:
    """A service is asked what it is only where nobody said so."""
    service = a_service(tmp_path, reply, kind)

    assert isinstance(client_of(service), writer)
    assert isinstance(read_only_client(service), reader)
    assert isinstance(service.wire, Wire)
    assert service.wire.asked == ["GetServiceInfo"] * 2 * (kind == "auto")


@pytest.mark.parametrize("changed", [{"code": Code.UNAUTHENTICATED}, {"unsure": True}])
def test_a_service_that_does_not_say_what_it_is_is_an_error(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """A token that is wrong, or an answer of something in between, is no other kind."""
    with pytest.raises(ServiceError):
        client_of(a_service(tmp_path, replace(NOT_THERE, **changed)))
