"""Clients that others wrote call the three operations of the source document, and more."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from reconciler.service.transport.protobuf import DESCRIPTORS, METHODS, SERVICES
from tests.node_program import WEB, told_by_node
from tests.running import Server, running_server
from tests.web_page import told_by_browser
from tests.wires import Answered, GrpcWeb, Json

MANAGEMENT = "zitadel.management.v1.ManagementService"
ADMIN = "zitadel.admin.v1.AdminService"
SECRET = re.compile(r"[A-Za-z0-9]{64}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


def stub(channel: grpc.Channel, service: str, name: str) -> Any:
    """Return a method as generated code would have it."""
    method = METHODS[f"/{service}/{name}"]
    return channel.unary_unary(
        f"/{service}/{name}",
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.answer.FromString,
    )


def request(service: str, method: str, /, **fields: Any) -> Any:
    return METHODS[f"/{service}/{method}"].request(**fields)


def call_them(channel: grpc.Channel, server: Server, name: str) -> None:
    """Call the three operations of the source with grpcio's own client."""
    metadata = tuple(server.bearer().items())

    def call(method: str, service: str = MANAGEMENT, /, **fields: Any) -> Any:
        return stub(channel, service, method)(
            request(service, method, **fields), metadata=metadata, timeout=30
        )

    assert call("GetIAM").iam_project_id  # which some clients ask for first
    config = {"jwt_endpoint": "https://a", "issuer": "i", "keys_endpoint": "https://k"}
    idp = call("AddOrgJWTIDP", name=name, **config)
    updated = call("UpdateOrgIDPJWTConfig", idp_id=idp.idp_id, **{**config, "issuer": "j"})
    again = call("UpdateIDPJWTConfig", ADMIN, idp_id=idp.idp_id, **{**config, "issuer": "k"})
    app = call("AddOIDCApp", project_id=server.known.project, name=name)
    action = call("CreateAction", name=name, script="function f() {}", timeout={"seconds": 5})
    read = call("GetAction", id=action.id).action
    at_trigger = call("SetTriggerActions", flow_type="2", trigger_type="5", action_ids=[action.id])
    flow = call("GetFlow", type="2").flow
    flags = {"project_role_check": True, "private_labeling_setting": 1}
    project = call("AddProject", name=name, has_project_check=True)
    flagged = call("UpdateProject", id=project.id, name=name, **flags)
    shown = call("GetProjectByID", id=project.id).project
    cleared = call("ClearFlow", type="2")

    assert idp.details.sequence < updated.details.sequence < again.details.sequence
    assert again.details.change_date.ToMicroseconds() == again.details.sequence
    assert SECRET.fullmatch(app.client_secret)
    assert app.none_compliant
    assert (read.name, read.timeout.seconds, read.allowed_to_fail) == (name, 5, False)
    assert read.details.resource_owner == server.known.organization
    assert [(each.trigger_type.id, [*each.actions]) for each in flow.trigger_actions] == [
        ("5", [read])
    ]
    assert project.details.sequence < flagged.details.sequence == shown.details.sequence
    assert (shown.project_role_check, shown.has_project_check) == (True, False)
    assert shown.private_labeling_setting == 1
    assert at_trigger.details.sequence == flow.details.sequence < cleared.details.sequence


def test_grpcio_calls_the_operations_of_the_source(server: Server) -> None:
    """Without TLS, HTTP/2 by prior knowledge, on the port that also speaks HTTP/1.1."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call_them(channel, server, "plain")


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_calls_are_understood(server: Server, compression: grpc.Compression) -> None:
    """Public clients compress by default."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", compression=compression) as channel:
        call_them(channel, server, compression.name)


@pytest.fixture(scope="module")
def tls_server(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[Server]:
    """Run a server that speaks TLS."""
    cert, key = certificate
    folder = tmp_path_factory.mktemp("tls-server")
    with running_server(folder, "--tls-cert", str(cert), "--tls-key", str(key)) as running:
        yield running


def test_grpcio_calls_the_operations_of_the_source_over_tls(
    tls_server: Server, certificate: tuple[Path, Path]
) -> None:
    """HTTP/2 is agreed on in the handshake."""
    trusted = grpc.ssl_channel_credentials(certificate[0].read_bytes())
    with grpc.secure_channel(f"localhost:{tls_server.port}", trusted) as channel:
        call_them(channel, tls_server, "tls")


@pytest.mark.parametrize("wire", [Json, GrpcWeb])
def test_http_goes_over_the_same_port_with_tls(
    tls_server: Server, certificate: tuple[Path, Path], wire: Any
) -> None:
    """Who offers both versions of HTTP gets the first, as browsers do."""
    made = wire(tls_server, verify=ssl.create_default_context(cafile=certificate[0]))
    try:
        assert made.call("ListActions", {}, list(tls_server.bearer().items())).code == 0
    finally:
        made.close()


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_health_is_told_to_anybody(server: Server, service: str) -> None:
    """Load balancers have no token."""
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service=service), timeout=10
        )

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_shows_what_there_is(server: Server, version: str) -> None:
    """A command-line client needs no descriptor file."""
    asked = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol=MANAGEMENT),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="grpc.health.v1.Health"),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="nobody.v1.Nothing"),
    ]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        ask = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        listed, management, health, nothing = ask(iter(asked), timeout=10)

    named = {service.name for service in listed.list_services_response.service}
    assert {*SERVICES, "grpc.health.v1.Health"} <= named
    assert len(management.file_descriptor_response.file_descriptor_proto) > 5
    assert len(health.file_descriptor_response.file_descriptor_proto) == 1
    assert nothing.error_response.error_code == 5


def test_calls_are_answered_beside_open_reflection(server: Server) -> None:
    """Command-line clients keep it open on the connection of their call; others ask meanwhile."""
    ended = Event()
    streams: list[Any] = []

    def asked() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        ended.wait()

    with ExitStack() as channels:
        channels.callback(ended.set)
        opened = [
            channels.enter_context(
                grpc.insecure_channel(
                    f"127.0.0.1:{server.port}", options=[("grpc.use_local_subchannel_pool", 1)]
                )
            )
            for _ in range(3)
        ]
        for channel in opened[1:]:
            ask = channel.stream_stream(
                "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
            )
            streams.append(ask(asked(), timeout=60))  # one that is let go of is cancelled
            next(streams[-1])
        for channel in opened:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=5
            )
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("method", [f"/{MANAGEMENT}/AddHumanUser", "/nobody.v1.Nothing/Do"])
def test_a_method_that_is_not_there_is_unimplemented(server: Server, method: str) -> None:
    """Newer clients try newer methods first, and fall back on this code."""
    with (
        grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary(method)(b"", timeout=10)

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def a_job(server: Server, name: str) -> dict[str, Any]:
    """Return what a gRPC-web client is to do, as its program reads it."""
    config = {"jwtEndpoint": "https://a", "issuer": "i", "keysEndpoint": "https://k"}
    wire = Json(server)
    try:
        made = wire.call(
            "AddOrgJWTIDP",
            {"name": name, **config, "headerName": ""},
            list(server.bearer().items()),
        )
    finally:
        wire.close()
    assert isinstance(made, Answered), made
    return {
        "address": server.address,
        "token": server.token(),
        "organization": server.known.organization,
        "project": server.known.project,
        "idp": made.fields["idpId"],
        "name": name,
        "descriptors": str(DESCRIPTORS),
    }


def check_result(result: Mapping[str, Any], server: Server, name: str) -> None:
    """Check what a gRPC-web client says came of its job, against the store."""
    sequences = {str(event.sequence): event.type for event in server.events()}

    assert result["updated"] == result["again"]
    assert sequences[result["updated"]] == "provider.changed"
    assert result["app"]["secret"] == 64
    assert result["owner"] == server.known.organization
    assert name in result["names"]
    assert result["taken"] == {
        "code": "AlreadyExists",
        "message": "there is another action of this name (ignoring case)",
        "details": ["name.taken"],
    }
    assert (result["nobody"]["code"], result["nobody"]["details"]) == (
        "Unauthenticated",
        ["token.invalid"],
    )
    assert (result["stale"]["code"], result["stale"]["details"]) == (
        "FailedPrecondition",
        ["object.moved_on"],
    )
    assert result["late"]["code"] == "DeadlineExceeded"


def test_a_public_grpc_web_client_calls_them_under_node(server: Server) -> None:
    """The client that browsers use, without a browser."""
    check_result(told_by_node("calls.js", a_job(server, "node")), server, "node")


def test_a_public_grpc_web_client_calls_them_from_a_page_on_another_origin(server: Server) -> None:
    """With preflight and all: the browser decides what the page may see."""
    told = told_by_browser(a_job(server, "browser"), DESCRIPTORS)

    assert "failure" not in told, told["failure"]
    assert told["origin"] != server.address
    check_result(told["result"], server, "browser")


def test_the_lock_of_the_web_client_names_no_host() -> None:
    """Where packages come from is the business of whoever installs them."""
    lock = json.loads((WEB / "package-lock.json").read_text(encoding="utf-8"))
    packages = [found for name, found in lock["packages"].items() if name]
    for found in packages:
        found.pop("funding", None)  # pages of their authors

    assert packages
    assert all("integrity" in found and "resolved" not in found for found in packages)
    assert "://" not in json.dumps(lock)
