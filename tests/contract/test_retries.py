"""Retries under an idempotency key, each over another way in and in another spelling.

Every write is made once, over each transport or as an order of a batch. Then it is repeated over
all of them, with each default said and unsaid: every answer is the first one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import WRITE_BATCH
from reconciler.resources.fields import Form
from reconciler.service.operations.form import Fixed
from reconciler.service.operations.form import Form as RequestForm
from reconciler.service.operations.operation import Operation
from reconciler.service.operations.table import operations
from reconciler.service.transport.protobuf import METHODS
from tests.contract.normal import Normal
from tests.contract.story import JWT
from tests.running import Server
from tests.wires import WIRES, Answered, Headers, Outcome, Refused, Wire, refusal_of

Spec = Mapping[str, Any]
FORMS = {field.name: field.form for row in KINDS.values() for field in row.fields}
WRITES = [row for row in operations().values() if row.is_of_an_object]


class Batch:
    """Orders of a batch, each alone in it."""

    def __init__(self, server: Server) -> None:
        self._wire = WIRES["json"](server)

    def call(
        self, operation: str, fields: Mapping[str, Any], headers: Headers, address: int = 0
    ) -> Outcome:
        said = dict(headers)
        order = {
            "operation": operation,
            "fields": fields,
            "organizationId": said["x-service-orgid"],
            "idempotencyKey": said["idempotency-key"],
        }
        token = [("authorization", said["authorization"])]
        outcome = self._wire.call(WRITE_BATCH, {"orders": [order]}, token)
        assert isinstance(outcome, Answered), outcome
        (done,) = outcome.fields["answers"]
        return Answered(done["answer"]) if "answer" in done else refusal_of(done["error"])

    def close(self) -> None:
        self._wire.close()


WAYS: Mapping[str, Callable[[Server], Wire]] = {**WIRES, "batch": Batch}
METHODLESS = {"json", "batch"}  # they need no messages, and have every operation


@dataclass
class Maker:
    """Makes what a write is about, which no other write has seen."""

    server: Server
    wire: Wire

    def __call__(self, operation: str, fields: Spec) -> Mapping[str, Any]:
        token = {**self.server.bearer("admin"), "x-service-orgid": self.server.known.organization}
        outcome = self.wire.call(operation, fields, list(token.items()))
        assert isinstance(outcome, Answered), outcome
        return outcome.fields

    def name(self) -> Spec:
        return {"name": f"a{uuid.uuid4().hex}"}

    def project(self) -> Spec:
        return {"id": self("AddProject", self.name())["id"]}

    def in_project(self) -> Spec:
        return {"projectId": self.server.known.project}

    def app(self) -> Spec:
        basic = {**self.in_project(), **self.name()}
        return {**self.in_project(), "appId": self("AddOIDCApp", basic)["appId"]}

    def role(self) -> Spec:
        fields = {**self.in_project(), "roleKey": f"{uuid.uuid4().hex}/b", "displayName": "Manager"}
        self("AddProjectRole", fields)
        return {name: fields[name] for name in ("projectId", "roleKey")}

    def action(self) -> Spec:
        return {"id": self("CreateAction", {**self.name(), **SCRIPT})["id"]}

    def idp(self) -> Spec:
        return {"idpId": self("AddOrgJWTIDP", {**self.name(), **JWT})["idpId"]}

    def provider(self) -> Spec:
        return {"id": self.idp()["idpId"]}

    def off(self, operation: str, target: Spec) -> Spec:
        self(operation, target)
        return target


SCRIPT = {"script": "function greet(ctx, api) {}"}
MAKES: Mapping[str, Callable[[Maker], Spec]] = {
    "AddOrg": Maker.name,
    "AddProject": Maker.name,
    "UpdateProject": lambda a: {**a.project(), **a.name()},
    "DeactivateProject": Maker.project,
    "ReactivateProject": lambda a: a.off("DeactivateProject", a.project()),
    "AddOrgJWTIDP": lambda a: {**a.name(), **JWT},
    "UpdateOrgIDP": lambda a: {**a.idp(), **a.name()},
    "UpdateOrgIDPJWTConfig": lambda a: {**a.idp(), **JWT},
    "DeactivateOrgIDP": Maker.idp,
    "ReactivateOrgIDP": lambda a: a.off("DeactivateOrgIDP", a.idp()),
    "RemoveOrgIDP": Maker.idp,
    "AddJWTProvider": lambda a: {**a.name(), **JWT},
    "UpdateJWTProvider": lambda a: {**a.provider(), **a.name(), **JWT},
    "DeleteProvider": Maker.provider,
    "AddOIDCApp": lambda a: {**a.in_project(), **a.name()},
    "UpdateApp": lambda a: {**a.app(), **a.name()},
    "UpdateOIDCAppConfig": Maker.app,
    "DeactivateApp": Maker.app,
    "ReactivateApp": lambda a: a.off("DeactivateApp", a.app()),
    "RemoveApp": Maker.app,
    "RegenerateOIDCClientSecret": Maker.app,
    "AddProjectRole": lambda a: {
        **a.in_project(),
        "roleKey": f"{uuid.uuid4().hex}/B",
        "displayName": "Manager",
    },
    "UpdateProjectRole": lambda a: {**a.role(), "displayName": "Other"},
    "RemoveProjectRole": Maker.role,
    "CreateAction": lambda a: {**a.name(), **SCRIPT},
    "UpdateAction": lambda a: {**a.action(), **a.name(), **SCRIPT},
    "DeactivateAction": Maker.action,
    "ReactivateAction": lambda a: a.off("DeactivateAction", a.action()),
    "DeleteAction": Maker.action,
    "SetTriggerActions": lambda _: {"flowType": "3", "triggerType": "1"},
    "ClearFlow": lambda _: {"type": "3"},
    "RecordContext": Maker.action,
}


def spellings(row: Operation, fields: Spec, way: str) -> Iterator[Spec]:
    """Yield fields that all mean the same: defaults unsaid, said, said empty, said otherwise.

    A message lacks the fields that only JSON has.
    """
    yield fields
    if not isinstance(row.request, RequestForm):
        return
    said = {
        field.name: field.value if isinstance(field, Fixed) else field.default
        for field in (*row.request.of_kind, *row.request.others)
    }
    said = {name: value for name, value in said.items() if value is not None}
    names = set(said)
    if way not in METHODLESS:
        message = METHODS[f"/{row.grpc[0]}"].request.DESCRIPTOR
        names &= {field.json_name for field in message.fields}
    for spelled in (_as_is, _emptied, _otherwise) if names else ():
        yield {**{name: spelled(name, said[name]) for name in names}, **fields}


def _as_is(_: str, value: object) -> object:
    return value


def _emptied(_: str, value: object) -> object:
    return [] if isinstance(value, list) else value


def _otherwise(name: str, value: Any) -> object:
    """Return durations with more decimals, and the words of sets twice."""
    if FORMS.get(name) is Form.DURATION:
        return f"{value.removesuffix('s')}.000s"
    return value * 2 if FORMS.get(name) is Form.SET else value


def test_every_write_has_its_row() -> None:
    assert MAKES.keys() == {row.name for row in WRITES}


@pytest.fixture(scope="module")
def wires(server: Server) -> Iterator[Mapping[str, Wire]]:
    """Open each way into the server, for all tests of the module."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(way(server))) for name, way in WAYS.items()}


@pytest.mark.parametrize("row", WRITES, ids=[row.name for row in WRITES])
def test_a_retry_over_any_transport_gives_the_first_answer(
    server: Server, wires: Mapping[str, Wire], row: Operation
) -> None:
    """Whatever it says or leaves to the defaults; nothing is written again."""
    ways = [name for name in WAYS if row.grpc or name in METHODLESS]
    make = Maker(server, wires["json"])
    for first in ways:
        headers = [
            *server.bearer("admin").items(),
            ("x-service-orgid", server.known.organization if row.name != "AddOrg" else ""),
            ("idempotency-key", uuid.uuid4().hex),
        ]
        fields, normal = MAKES[row.name](make), Normal()
        made = wires[first].call(row.name, fields, headers)
        assert isinstance(made, Answered), made
        answer, written = normal.of(made.fields), server.event_count()

        for way in ways:
            for spelled in spellings(row, fields, way):
                again = wires[way].call(row.name, spelled, headers)
                assert isinstance(again, Answered), (first, way, spelled, again)
                assert normal.of(again.fields) == answer, (first, way, spelled)
        assert server.event_count() == written


def test_another_meaning_is_refused_over_any_transport(
    server: Server, wires: Mapping[str, Wire]
) -> None:
    """A key says that the call is the same: to answer the first one would be a lie."""
    key = [("idempotency-key", uuid.uuid4().hex)]
    headers = [*server.bearer().items(), ("x-service-orgid", server.known.organization), *key]
    fields = {"projectId": server.known.project, "name": f"a{uuid.uuid4().hex}"}
    for wire in wires.values():
        assert isinstance(wire.call("AddOIDCApp", fields, headers), Answered)
        for more in ({"responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN"]}, {"devMode": True}):
            refused = wire.call("AddOIDCApp", {**fields, **more}, headers)
            assert isinstance(refused, Refused)
            assert (refused.code, refused.reason) == (9, "idempotency.reused")
