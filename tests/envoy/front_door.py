"""The example of Envoy as front door, with a real Envoy before a real server: ``make envoy``.

It needs a package of 37 MB that nothing else needs, so ``make test`` does not collect it. What of
the file can be checked without one is checked in ``tests/acceptance/test_serving_docs.py``.
"""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import httpx
import pytest

from reconciler.service.transport.protobuf import METHODS
from tests import http2
from tests.acceptance.test_serve import make_certificate
from tests.raw_http import read_response, request
from tests.running import Server, running_server
from tests.served import a_free_port
from tests.wires import Answered, GrpcWeb, Json, Refused, fields_from, message_from

ENVOY = Path(sys.executable).with_name("envoy")
EXAMPLE = Path(__file__).parents[2] / "docs" / "serving" / "envoy.yaml"
START_WITHIN = 30.0
PATIENCE = 20.0
CREATE = "/zitadel.management.v1.ManagementService/CreateAction"
NOBODY = 16


@dataclass
class Door:
    """An Envoy that runs, and the server behind it.

    Attributes:
        seen: The server as callers see it: at the port of Envoy, with TLS.
        log: File of what Envoy says, its record of requests included.
    """

    seen: Server
    server: Server
    certificate: Path
    log: Path

    def trust(self) -> ssl.SSLContext:
        """Return the settings of a caller that trusts Envoy's certificate, at any address."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False
        return context

    def headers(self) -> list[tuple[str, str]]:
        return list(self.server.bearer().items())


def configured(folder: Path, port: int, server: Server) -> Path:
    """Write the example with other ports and files than its own."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for written, instead in (
        ("address: 0.0.0.0, port_value: 8443", f"address: 127.0.0.1, port_value: {port}"),
        ("port_value: 8080", f"port_value: {server.port}"),
        ("/etc/envoy/chain.pem", str(folder / "cert.pem")),
        ("/etc/envoy/key.pem", str(folder / "key.pem")),
    ):
        assert text.count(written) == 1, written
        text = text.replace(written, instead)
    path = folder / "envoy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def running_envoy(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        str(ENVOY),
        "--config-path",
        str(config),
        "--disable-hot-restart",
        "--concurrency",
        "2",
    ]
    with log.open("wb") as file, subprocess.Popen(command, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Run a server, and Envoy in front of it."""
    folder = tmp_path_factory.mktemp("door")
    certificate, _ = make_certificate(folder)
    with running_server(folder, "--behind-proxy") as server:
        port, log = a_free_port(), folder / "envoy.log"
        door = Door(replace(server, port=port, scheme="https"), server, certificate, log)
        with running_envoy(configured(folder, port, server), log) as process:
            wait_until_ready(door, process)
            yield door


def wait_until_ready(door: Door, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_WITHIN
    while True:
        with suppress(httpx.TransportError):
            if httpx.get(f"{door.seen.address}/readyz", verify=door.trust()).status_code == 200:
                return
        log = door.log.read_text(encoding="utf-8", errors="replace")
        assert process.poll() is None, log
        assert time.monotonic() < deadline, log
        time.sleep(0.05)


def test_envoy_takes_the_example(door: Door) -> None:
    """A field that its version does not know would be an error."""
    config = door.log.with_name("envoy.yaml")
    command = [ENVOY, "--mode", "validate", "--config-path", config]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert "OK" in ran.stdout + ran.stderr
    assert "eprecated" not in ran.stdout + ran.stderr


def action(name: str) -> dict[str, str]:
    return {"name": name, "script": f"function {name}() {{}}"}


@pytest.mark.parametrize("wire", [Json, GrpcWeb])
def test_calls_over_http_1_pass_through(door: Door, wire: type[Json | GrpcWeb]) -> None:
    """With their refusals, as the server words them."""
    caller = wire(door.seen, verify=door.trust())
    name = wire.__name__.lower()

    made = caller.call("CreateAction", action(name), door.headers())
    again = caller.call("CreateAction", action(name), door.headers())
    nobody = caller.call("CreateAction", action(name), ())
    caller.close()

    assert isinstance(made, Answered)
    assert made.fields["id"].isdecimal()
    assert isinstance(again, Refused)
    assert isinstance(nobody, Refused)
    assert (again.code, nobody.code) == (6, NOBODY)


def test_grpc_calls_pass_through(door: Door) -> None:
    """With their metadata and trailers."""
    credentials = grpc.ssl_channel_credentials(door.certificate.read_bytes())
    options = (("grpc.ssl_target_name_override", "localhost"),)
    address = f"127.0.0.1:{door.seen.port}"
    message = message_from(METHODS[CREATE].request, action("overgrpc"))
    with grpc.secure_channel(address, credentials, options) as channel:
        create = channel.unary_unary(CREATE)
        made = METHODS[CREATE].answer.FromString(create(message, metadata=door.headers()))
        with pytest.raises(grpc.RpcError) as refused:
            create(message, metadata=door.headers())

    assert fields_from(made)["id"].isdecimal()
    assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS
    assert dict(refused.value.trailing_metadata())["grpc-status-details-bin"]


@contextmanager
def door_connection(door: Door) -> Iterator[ssl.SSLSocket]:
    """Connect over HTTP/2."""
    context = door.trust()
    context.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", door.seen.port), PATIENCE) as plain,
        context.wrap_socket(plain) as connection,
    ):
        yield connection


@pytest.mark.parametrize(("frames", "goes_on"), [(1, True), (3, False)])
def test_a_flood_of_empty_frames_ends_at_the_door(
    door: Door, frames: int, *, goes_on: bool
) -> None:
    """The server hears nothing of what follows, and others are answered."""
    begun = http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.headers(CREATE, door.headers()))
    flood = http2.frame(http2.DATA, 0, 1) * frames
    ping = http2.frame(http2.PING, 0, 0, bytes(8))
    with door_connection(door) as connection:
        connection.sendall(http2.PREFACE + http2.frame(http2.SETTINGS) + begun + flood + ping)
        kinds = set(kinds_of_frames(connection))

    assert (http2.PING in kinds) is goes_on
    caller = Json(door.seen, verify=door.trust())
    assert isinstance(caller.call("ListOrgs", {}, door.headers()), Answered)
    caller.close()


def kinds_of_frames(connection: ssl.SSLSocket) -> Iterator[int]:
    """Yield the kinds of the frames that come, up to an answer to a ping or the end."""
    with connection.makefile("rb") as stream, suppress(ConnectionError, ssl.SSLError):
        while head := stream.read(9):
            stream.read(int.from_bytes(head[:3]))
            yield head[3]
            if head[3] == http2.PING:
                return


def test_a_body_without_a_token_is_refused_before_it_is_whole(door: Door) -> None:
    """Envoy keeps no request until it is whole: the server judges the token first."""
    headers = {"content-type": "application/json", "content-length": "900000"}
    head = request("POST", "/management/v1/actions", headers)
    context = door.trust()
    with (
        socket.create_connection(("127.0.0.1", door.seen.port), PATIENCE) as plain,
        context.wrap_socket(plain) as connection,
        connection.makefile("rb") as stream,
    ):
        connection.sendall(head + b"{" * 1000)
        answer = read_response(stream)

    assert answer is not None
    assert answer.status == 401


def test_a_head_that_is_too_long_ends_at_the_door(door: Door) -> None:
    """It is refused by Envoy, not by the server: that would answer in the words of its bodies."""
    with httpx.Client(verify=door.trust(), base_url=door.seen.address) as client:
        answer = client.get("/healthz", headers={"x-long": "x" * 20_000})

    assert answer.status_code == 431
    assert not answer.headers["content-type"].startswith("application/json")
