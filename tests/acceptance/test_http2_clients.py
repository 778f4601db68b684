"""Clients that others wrote exercise HTTP/2: gRPC's own for Node.js, those of ZITADEL, and curl.

Those for Node.js do what ``tests/web/exercise.js`` says, each over one connection.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.service.transport.protobuf import DESCRIPTORS, SERVICES
from tests.node_program import told_by_node
from tests.running import Server, running_server

AT_ONCE, LARGE_AT_ONCE = 200, 100
LARGE = 400  # actions of one answer, together 1.6 MB: 25 times the first window of HTTP/2
FIRST = 10**15  # id of an action
SCRIPT = "é" * 2000
OK, CANCELLED, DEADLINE_EXCEEDED, UNAUTHENTICATED = 0, 1, 4, 16


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run one server with many actions."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        running.put_actions(running.known.other_organization, LARGE, FIRST, SCRIPT)
        yield running


@pytest.fixture(scope="module")
def tls_server(
    tmp_path_factory: pytest.TempPathFactory, certificate: tuple[Path, Path]
) -> Iterator[Server]:
    """Run one that speaks TLS."""
    arguments = ("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    with running_server(tmp_path_factory.mktemp("tls-server"), *arguments) as running:
        running.put_actions(running.known.other_organization, LARGE, FIRST, SCRIPT)
        yield running


def a_job(server: Server, name: str, **more: str) -> dict[str, str]:
    """Return what a program needs to know; its token needs the header of the organization."""
    return {
        "address": server.address,
        "target": f"127.0.0.1:{server.port}",
        "token": server.token("admin"),
        "organization": server.known.other_organization,
        "name": name,
        "descriptors": str(DESCRIPTORS),
        "protos": str(DESCRIPTORS.parent),
        **more,
    }


def check_exercise(told: Mapping[str, Any], job: Mapping[str, str]) -> None:
    """Check what came of the calls that every client makes."""
    assert told["unknown"] == [UNAUTHENTICATED] * AT_ONCE
    assert told["nobody"]["details"] == ["token.invalid"]
    assert told["instances"] == [True] * AT_ONCE
    assert told["owner"] == job["organization"]
    assert Counter(told["lengths"])[len(SCRIPT)] == LARGE
    assert told["taken"] == {
        "code": 6,
        "message": "there is another action of this name (ignoring case)",
        "details": ["name.taken"],
    }
    assert told["late"] == DEADLINE_EXCEEDED
    codes = Counter(told["cancelled"])
    assert codes[OK] + codes[CANCELLED] == LARGE_AT_ONCE
    assert codes[CANCELLED]
    assert told["names"] == [job["name"]] * AT_ONCE


def check_streams(told: Mapping[str, Any]) -> None:
    """Check what came of health and reflection."""
    assert told["watched"] == ["SERVING", CANCELLED]
    assert told["lateWatch"] == DEADLINE_EXCEEDED
    assert {*SERVICES, "grpc.health.v1.Health"} <= {*told["reflected"]["names"]}
    assert told["reflected"]["files"] > 5
    assert told["reflected"]["code"] == OK


@pytest.mark.parametrize("compression", ["identity", "gzip", "deflate"])
def test_grpc_js_calls_and_streams(server: Server, compression: str) -> None:
    """With requests compressed as it is able to."""
    job = a_job(server, f"grpc-js-{compression}", compression=compression)
    told = told_by_node("grpc_js.js", job)

    check_exercise(told, job)
    check_streams(told)


def test_grpc_js_calls_and_streams_over_tls(
    tls_server: Server, certificate: tuple[Path, Path]
) -> None:
    """It offers HTTP/2 alone."""
    job = a_job(tls_server, "grpc-js", certificate=str(certificate[0]))
    told = told_by_node("grpc_js.js", job)

    check_exercise(told, job)
    check_streams(told)


PROGRAMS = ["zitadel_client.js", "zitadel_node.js"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_clients_of_zitadel_call(server: Server, program: str) -> None:
    """One calls by its own code over HTTP/2, the other by grpc-js."""
    job = a_job(server, program)

    check_exercise(told_by_node(program, job), job)


@pytest.mark.parametrize("program", PROGRAMS)
def test_clients_of_zitadel_call_over_tls(
    tls_server: Server, certificate: tuple[Path, Path], program: str
) -> None:
    """One is told which certificate to trust, the other finds it by its environment."""
    trusted = str(certificate[0])
    job = a_job(tls_server, program, certificate=trusted)

    check_exercise(
        told_by_node(program, job, GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=trusted),
        job,
    )


OVER_HTTP1, OVER_HTTP2 = "--http1.1", "--http2-prior-knowledge"
OF_ONE_ANSWER = {"date", "x-request-id", "connection", "keep-alive"}  # or of HTTP/1.1 alone


class Told(NamedTuple):
    """An answer as curl shows it."""

    version: str
    status: str
    headers: Mapping[str, str]
    body: bytes


def curl(*words: str) -> bytes:
    """Run curl, and return what it writes."""
    program = shutil.which("curl")
    assert program is not None, "install curl"
    done = subprocess.run(
        [program, "--silent", "--show-error", "--max-time", "60", *words],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def answer(*words: str) -> Told:
    """Return one answer."""
    head, _, body = curl("--include", *words).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    version, status, *_ = first.split(" ")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    kept = {name: value for name, value in headers.items() if name not in OF_ONE_ANSWER}
    return Told(version, status, kept, body)


def as_admin(server: Server) -> list[str]:
    """Return the headers of calls of the organization with many actions."""
    said = {
        "x-zitadel-orgid": server.known.other_organization,
        "content-type": "application/json",
    }
    headers = [word for name, value in said.items() for word in ("--header", f"{name}: {value}")]
    return ["--oauth2-bearer", server.token("admin"), *headers]


def a_body(folder: Path, size: int) -> str:
    """Return the words by which curl sends an action with so long a script."""
    file = folder / "body.json"
    file.write_text(json.dumps({"name": "long", "script": "x" * size}), encoding="ascii")
    return f"@{file}"


NO_TOKEN = ("--oauth2-bearer", "nothing")
LARGE_LIST = ("--data", json.dumps({"query": {"limit": 1000}}))


@pytest.mark.parametrize(
    ("status", "path", "words"),
    [
        ("200", f"/management/v1/actions/{FIRST}", ()),
        ("200", "/management/v1/actions/_search", LARGE_LIST),
        ("200", "/healthz", ()),
        ("200", "/healthz", ("--head",)),
        ("400", "/management/v1/actions", ("--data", "{")),
        ("401", f"/management/v1/actions/{FIRST}", NO_TOKEN),
        ("401", "/management/v1/actions", (*NO_TOKEN, "--request", "POST")),
        ("400", "/management/v1/actions", ("--data", "900000")),
        ("404", "/management/v1/actions/1", ()),
        ("404", "/management/v1/nothing", ()),
        ("405", "/management/v1/actions", ("--request", "PATCH")),
    ],
)
def test_curl_is_answered_the_same_over_both_versions(
    server: Server, tmp_path: Path, status: str, path: str, words: tuple[str, ...]
) -> None:
    """A number in place of data is the length of a script.

    Answers that come before the end of a body are not among them: curl 7.88 loses some of them over
    HTTP/2, whoever serves.
    """
    sent = [a_body(tmp_path, int(word)) if word.isdigit() else word for word in words]
    asked = [*as_admin(server), *sent, f"{server.address}{path}"]
    older, newer = answer(OVER_HTTP1, *asked), answer(OVER_HTTP2, *asked)

    assert (older.version, newer.version) == ("HTTP/1.1", "HTTP/2")
    assert older.status == status
    assert newer[1:] == older[1:]


def test_curl_makes_what_it_reads(server: Server) -> None:
    """Both over HTTP/2."""
    asked = [OVER_HTTP2, *as_admin(server)]
    action = json.dumps({"name": "curl", "script": "function f() {}"})
    made = json.loads(curl(*asked, "--data", action, f"{server.address}/management/v1/actions"))
    read = json.loads(curl(*asked, f"{server.address}/management/v1/actions/{made['id']}"))

    assert read["action"]["name"] == "curl"


def test_curl_asks_on_many_connections_at_once(server: Server, tmp_path: Path) -> None:
    """On one that is not there yet, curl 7.88 asks for nothing at once, whoever serves."""
    told = curl(
        OVER_HTTP2, *as_admin(server), "--parallel", "--parallel-immediate", "--parallel-max", "50",
        "--output", str(tmp_path / "#1"), "--write-out", "%{http_version} %{http_code}\n",
        f"{server.address}/management/v1/actions/[{FIRST}-{FIRST + 49}]",
    )  # fmt: skip
    read = {file.name: json.loads(file.read_bytes())["action"] for file in tmp_path.iterdir()}

    assert Counter(told.decode().splitlines()) == {"2 200": 50}
    assert {name: action["id"] for name, action in read.items()} == {
        str(number): str(number) for number in range(FIRST, FIRST + 50)
    }


def test_curl_that_offers_both_versions_over_tls_gets_the_first(
    tls_server: Server, certificate: tuple[Path, Path]
) -> None:
    """As browsers do."""
    asked = ["--http2", "--cacert", str(certificate[0]), *as_admin(tls_server), *LARGE_LIST]
    told = answer(*asked, f"{tls_server.address}/management/v1/actions/_search")

    assert told.version == "HTTP/1.1"
    assert len(json.loads(told.body)["result"]) >= LARGE


def test_curl_that_asks_to_upgrade_is_answered_over_http1(server: Server) -> None:
    """That way to HTTP/2 is obsolete."""
    told = answer("--http2", *as_admin(server), f"{server.address}/management/v1/actions/{FIRST}")

    assert (told.version, told.status) == ("HTTP/1.1", "200")
