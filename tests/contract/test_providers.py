"""Identity providers by both families of calls, over three transports: the same objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import grpc
import pytest

from reconciler.service.transport.protobuf import METHODS
from tests.running import Server
from tests.wires import (
    WIRES,
    Answered,
    GrpcWeb,
    Json,
    Outcome,
    Refused,
    Wire,
    frame,
    frames,
    message_from,
)

CONFIG = {
    "jwtEndpoint": "https://login.partner.example.com/jwt",
    "issuer": "https://login.partner.example.com",
    "keysEndpoint": "https://login.partner.example.com/keys",
    "headerName": "authorization",
}
OPTIONS = {
    "isLinkingAllowed": True,
    "isCreationAllowed": True,
    "isAutoCreation": False,
    "isAutoUpdate": False,
    "autoLinking": "AUTO_LINKING_OPTION_UNSPECIFIED",
}
SINCE = "@1795305600"
METHOD = "/zitadel.management.v1.ManagementService/"


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest, server: Server) -> Iterator[Wire]:
    """Open each way into it."""
    with closing(WIRES[request.param](server)) as wire:
        yield wire


@pytest.fixture
def ask(server: Server, wire: Wire) -> Any:
    """Return what calls an operation as an editor."""
    headers = tuple(server.bearer().items())

    def ask(operation: str, **fields: Any) -> Outcome:
        return wire.call(operation, fields, headers)

    return ask


def fields_of(outcome: Outcome) -> Any:
    assert isinstance(outcome, Answered), outcome
    return outcome.fields


def test_both_families_read_and_write_the_same_objects(ask: Any, wire: Wire) -> None:
    """Made by one, changed by the other, read by both; only the new one writes the audience."""
    name = f"partner of {type(wire).__name__}"
    made = fields_of(ask("AddJWTProvider", name=name, **CONFIG, audience="us"))
    changed = fields_of(
        ask("UpdateOrgIDPJWTConfig", idpId=made["id"], **{**CONFIG, "issuer": "https://j"})
    )
    read = fields_of(ask("GetProviderByID", id=made["id"]))["idp"]
    old = fields_of(ask("GetOrgIDPByID", id=made["id"]))["idp"]
    by_name = {"name": name.upper(), "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    listed = fields_of(ask("ListProviders", queries=[{"idpNameQuery": by_name}]))

    assert int(changed["details"]["sequence"]) > int(made["details"]["sequence"])
    assert read["config"]["jwt"] == {**CONFIG, "issuer": "https://j", "audience": "us"}
    assert old["jwtConfig"] == read["config"]["jwt"]
    assert read["config"]["options"] == OPTIONS
    assert (read["type"], read["owner"]) == ("PROVIDER_TYPE_JWT", "IDP_OWNER_TYPE_ORG")
    assert listed["result"] == [read]

    new = f"ally of {type(wire).__name__}"
    fields_of(ask("UpdateJWTProvider", id=made["id"], name=new, **CONFIG, providerOptions=OPTIONS))
    after = fields_of(ask("GetProviderByID", id=made["id"]))["idp"]
    again = fields_of(ask("UpdateJWTProvider", id=made["id"], name=new, **CONFIG))
    removed = fields_of(ask("DeleteProvider", id=made["id"]))
    gone = ask("GetOrgIDPByID", id=made["id"])

    assert (after["name"], after["config"]["jwt"]) == (new, {**CONFIG, "audience": ""})
    assert again["details"]["sequence"] == after["details"]["sequence"], "nothing changed"
    assert int(removed["details"]["sequence"]) > int(after["details"]["sequence"])
    assert isinstance(gone, Refused)
    assert gone.code == 5


def test_options_that_nothing_here_does_are_refused(ask: Any) -> None:
    """A flag that is taken and forgotten would deceive its writer."""
    refused = ask(
        "AddJWTProvider", name="p", **CONFIG, providerOptions={**OPTIONS, "isAutoUpdate": True}
    )

    assert isinstance(refused, Refused)
    assert refused.code == 3
    assert "providerOptions.isAutoUpdate" in refused.message


def test_an_old_create_has_no_audience(ask: Any, wire: Wire) -> None:
    """The field is younger than the call."""
    name = f"old {type(wire).__name__}"
    made = fields_of(ask("AddOrgJWTIDP", name=name, **CONFIG))

    read = fields_of(ask("GetProviderByID", id=made["idpId"]))["idp"]
    assert read["config"]["jwt"] == {**CONFIG, "audience": ""}
    fields_of(ask("RemoveOrgIDP", idpId=made["idpId"]))


OLD_CALLS = [
    ("POST", "/management/v1/idps/_search", "/management/v1/idps/templates/_search"),
    ("POST", "/management/v1/idps/jwt", "/management/v1/idps/generic_jwt"),
    ("GET", "/management/v1/idps/77", "/management/v1/idps/templates/77"),
    ("PUT", "/management/v1/idps/77", "/management/v1/idps/generic_jwt/77"),
    ("PUT", "/management/v1/idps/77/jwt_config", "/management/v1/idps/generic_jwt/77"),
    ("PUT", "/admin/v1/idps/77/jwt_config", "/management/v1/idps/generic_jwt/77"),
    ("DELETE", "/management/v1/idps/77", "/management/v1/idps/templates/77"),
]


def test_old_calls_say_what_replaces_them(server: Server) -> None:
    """Whether they are carried out or refused; the new ones say nothing of the kind."""
    with closing(Json(server)) as rest:
        for verb, path, successor in OLD_CALLS:
            body: dict[str, Any] | None = {} if verb in {"POST", "PUT"} else None
            answer = rest.client.request(verb, path, headers=server.bearer(), json=body)
            assert answer.headers["deprecation"] == SINCE
            assert answer.headers["link"] == f'<{successor}>; rel="successor-version"'
        new = rest.client.post(
            "/management/v1/idps/templates/_search", headers=server.bearer(), json={}
        )
    assert new.status_code == 200
    assert not {"deprecation", "link"} & new.headers.keys()


@pytest.mark.parametrize("method", ["ListOrgIDPs", "RemoveOrgIDP"])
def test_old_methods_say_it_as_metadata(server: Server, method: str) -> None:
    """One is carried out, the other is refused."""
    kind = METHODS[METHOD + method].request
    message = message_from(kind, {} if method == "ListOrgIDPs" else {"idpId": "77"})
    successor = {"ListOrgIDPs": "ListProviders", "RemoveOrgIDP": "DeleteProvider"}[method]
    told = {"deprecation": SINCE, "link": f'<{METHOD}{successor}>; rel="successor-version"'}
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(METHOD + method)
        try:
            _, done = call.with_call(message, metadata=tuple(server.bearer().items()), timeout=30)
        except grpc.RpcError as refused:
            done = refused
        trailing = dict(done.trailing_metadata())
    with closing(GrpcWeb(server)) as web:
        content = web.post(METHOD + method, frame(message), tuple(server.bearer().items())).content
    (*_, (_, trailers)) = frames(content)

    assert told.items() <= trailing.items()
    assert told.items() <= dict(re.findall(r"([a-z-]+):(.*)\r\n", trailers.decode())).items()
