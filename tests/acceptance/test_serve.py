"""``serve`` as a process: how it begins, how it ends, and what it tells on the way."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.conftest import Run
from tests.program import environment, program
from tests.raw_http import exchange, read_response, request
from tests.running import LOG, prepare, running_server
from tests.warm import Copy

PATIENCE = 20.0
ACTIONS = "/management/v1/actions"
Process = Copy | subprocess.Popen[str]


@contextmanager
def serving(
    folder: Path, *arguments: str, is_fresh: bool = False
) -> Iterator[tuple[Process, Path]]:
    """Start ``serve`` in a folder; yield the process and the file of what it says."""
    said = folder / "said.txt"
    words = ["serve", "--listen", "127.0.0.1:0", *arguments]
    process: Process
    with said.open("w", encoding="utf-8") as stderr:
        if is_fresh:  # an interpreter of its own
            process = subprocess.Popen(
                [sys.executable, "-m", "reconciler", *words],
                cwd=folder,
                env=environment(),
                stderr=stderr,
                text=True,
            )
        else:
            process = Copy(words, folder, environment(), stderr=stderr.fileno())
    try:
        yield process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def port_of(process: Process, said: Path) -> int:
    """Wait until a server says where it listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in said.read_text(encoding="utf-8").splitlines():
            if "listening on http" in line:
                return int(line.rpartition(":")[2].strip('"}'))
        assert process.poll() is None, said.read_text(encoding="utf-8")
        time.sleep(0.02)
    raise AssertionError(said.read_text(encoding="utf-8"))


def stop(process: Process) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE)


def status_of(port: int, verb: str, path: str, headers: Mapping[str, str] | None = None) -> int:
    answer = exchange(port, request(verb, path, headers))
    assert answer is not None
    return answer.status


def test_a_new_store_says_how_to_begin(run: Run, tmp_path: Path) -> None:
    """Health is answered, all else refused, until there is a token; then nothing is restarted.

    The command does the same in the shell of another folder: there, a relative path would make
    a new store, whose token this server refuses.
    """
    store = ("--service", "sqlite:new & shiny/identity.db")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with serving(tmp_path, *store, is_fresh=True) as (process, said):
        port = port_of(process, said)
        (command,) = re.findall(r"^  reconciler (token create .+)$", said.read_text(), re.MULTILINE)
        for path in ("/healthz", "/readyz", "/management/v1/healthz"):
            assert status_of(port, "GET", path) == 200
        for path in ("/openapi.json", "/docs", "/management/v1/orgs/me", "/nowhere"):
            assert status_of(port, "GET", path) == 401

        token = program(elsewhere)(*shlex.split(command)).out.strip()

        bearer = {"authorization": f"Bearer {token}"}
        assert status_of(port, "POST", "/admin/v1/orgs/_search", bearer) == 200
        assert status_of(port, "GET", "/openapi.json") == 200
        assert status_of(port, "GET", "/docs") == 200
        assert not list(elsewhere.iterdir())
        assert run("token", "revoke", "admin", *store).code == 0
        assert status_of(port, "POST", "/admin/v1/orgs/_search", bearer) == 401
        assert stop(process) == 0


def test_the_human_page_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """No script, no picture, no style but its own; and the browser is told so."""
    with running_server(tmp_path) as server:
        answer = exchange(server.port, request("GET", "/docs"))

    assert answer is not None
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; ")
    page = answer.body.decode()
    assert not any(
        word in page for word in ("<script", "<link", "<img", "@import", "url(", 'src="')
    )
    assert "CreateAction" in page


def test_calls_in_flight_are_finished(tmp_path: Path) -> None:
    """SIGTERM: no new connection, but whoever has begun to ask is answered."""
    with running_server(tmp_path) as server:
        body = json.dumps({"name": "last", "script": "function last() {}"}).encode()
        sent = request(
            "POST", ACTIONS, {**server.bearer(), "content-type": "application/json"}, body
        )
        with (
            socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection,
            connection.makefile("rb") as stream,
        ):
            connection.sendall(sent[:-1])
            time.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            _wait_until_closed(server.port)
            connection.sendall(sent[-1:])
            answer = read_response(stream)
        assert server.process.wait(PATIENCE) == 0

        assert answer is not None
        assert (answer.status, answer.closed) == (200, True)
        assert [event for event in server.events() if '"last"' in event.payload]


def _wait_until_closed(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            return
        time.sleep(0.02)
    raise AssertionError("the server still listens")


def test_whoever_never_finishes_does_not_keep_a_server_from_ending(tmp_path: Path) -> None:
    """Draining has an end: ten seconds."""
    with running_server(tmp_path) as server:
        sent = request("POST", ACTIONS, {**server.bearer(), "content-length": "100"})
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
            connection.sendall(sent)
            time.sleep(0.3)
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE) == 0

    assert time.monotonic() - began < 15


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    """The answer comes after the commit, and the next server finds it all."""
    known = prepare(tmp_path / "identity.db")
    bearer = {"authorization": f"Bearer {known.tokens['editor']}"}
    arguments = ("--service", "sqlite:identity.db")
    made = []
    with serving(tmp_path, *arguments) as (process, said):
        port = port_of(process, said)
        for number in range(20):
            body = json.dumps({"name": f"a{number}", "script": "x"}).encode()
            headers = {**bearer, "content-type": "application/json"}
            answer = exchange(port, request("POST", ACTIONS, headers, body))
            assert answer is not None
            made.append(answer.json["id"])
        process.kill()
        process.wait()
    with serving(tmp_path, *arguments) as (process, said):
        port = port_of(process, said)
        assert [status_of(port, "GET", f"{ACTIONS}/{one}", bearer) for one in made] == [200] * 20
        assert stop(process) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--listen", "127.0.0.1"], "not an address", id="no port"),
        pytest.param(["--listen", "127.0.0.1:99999"], "not an address", id="no such port"),
        pytest.param(["--listen", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1", id="not ours"),
        pytest.param(["--listen", "nowhere.invalid:1"], "cannot listen on", id="no such host"),
        pytest.param(["--metrics-listen", "x"], "not an address", id="metrics"),
        pytest.param(["--tls-cert", "c.pem"], "go together", id="no key"),
        pytest.param(
            ["--tls-cert", "c", "--tls-key", "k"], "cannot use the certificate", id="no file"
        ),
        pytest.param(["--service", "http://127.0.0.1:1"], "", id="no store"),
        pytest.param(["--service", "sqlite:"], "", id="no path"),
        pytest.param(["--log-format", "xml"], "", id="log format"),
    ],
)
def test_what_cannot_be_served_is_told_in_words(
    run: Run, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """What is wrong, what to do; exit 1, and nothing was made."""
    ran = run("serve", *arguments)

    assert ran.code == 1
    assert words in ran.err
    assert not list(tmp_path.rglob("*.db"))


@pytest.mark.parametrize(
    ("arguments", "warned"),
    [
        pytest.param(["--listen", "192.0.2.1:1"], True, id="an address of the network"),
        pytest.param(["--listen", "[2001:db8::1]:1"], True, id="one of IPv6"),
        pytest.param(["--listen", "192.0.2.1:1", "--behind-proxy"], False, id="behind a proxy"),
        pytest.param(
            ["--listen", "192.0.2.1:1", "--tls-cert", "c", "--tls-key", "k"], False, id="with TLS"
        ),
        pytest.param(["--listen", "127.0.0.1:99999"], False, id="loopback"),
    ],
)
def test_calls_that_cross_a_network_in_plain_text_are_warned_of(
    run: Run, arguments: list[str], *, warned: bool
) -> None:
    """Before anything listens: the addresses here are none of this machine."""
    ran = run("serve", *arguments)

    assert ran.code == 1
    assert ("warning SERVE-PLAIN: calls to" in ran.err) is warned
    assert ("--behind-proxy" in ran.err) is warned


def test_the_warning_of_plain_text_is_a_record_where_records_are_json(run: Run) -> None:
    """So that each line on stderr can be read by a machine until the error."""
    first = run("serve", "--listen", "192.0.2.1:1", "--log-format", "json").err.splitlines()[0]

    assert json.loads(first)["level"] == "warning"
    assert json.loads(first)["message"].startswith("SERVE-PLAIN: calls to 192.0.2.1:1 are not")


@pytest.mark.parametrize("flag", ["--listen", "--metrics-listen"])
def test_an_address_in_use_is_told_in_words(run: Run, tmp_path: Path, flag: str) -> None:
    """Two servers on one address is the most usual mistake of all."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run("serve", "--listen", "127.0.0.1:0", flag, f"127.0.0.1:{port}")

    assert ran.code == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use\n" in ran.err
    assert f"Choose another address with {flag} HOST:PORT" in ran.err
    assert not list(tmp_path.rglob("*.db"))


def test_tls_is_spoken_where_a_certificate_is_given(tmp_path: Path) -> None:
    """HTTP/1.1 for whoever can choose; plain text gets nowhere."""
    certificate, key = make_certificate(tmp_path)
    with running_server(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        assert server.scheme == "https"
        context = ssl.create_default_context(cafile=str(certificate))
        context.set_alpn_protocols(["h2", "http/1.1"])
        with (
            socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as connection,
            connection.makefile("rb") as stream,
        ):
            assert connection.selected_alpn_protocol() == "http/1.1"
            assert connection.version() == "TLSv1.3"
            connection.sendall(request("POST", f"{ACTIONS}/_search", server.bearer()))
            answer = read_response(stream)
        assert answer is not None
        assert answer.status == 200
        with (
            socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain,
            plain.makefile("rb") as stream,
        ):
            plain.sendall(request("GET", "/healthz"))
            assert not stream.read().startswith(b"HTTP/")


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for localhost that nobody else trusts."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "install openssl"
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


def test_a_renewed_certificate_is_read_at_a_hangup(tmp_path: Path) -> None:
    """New connections get it and those there are go on; a file that is bad changes nothing."""
    files = make_certificate(tmp_path)
    arguments = ("--tls-cert", str(files[0]), "--tls-key", str(files[1]))
    with serving(tmp_path, *arguments) as (process, said), ExitStack() as stack:
        port = port_of(process, said)

        def connected() -> tuple[ssl.SSLSocket, bytes]:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            connection = stack.enter_context(context.wrap_socket(plain))
            return connection, connection.getpeercert(binary_form=True) or b""

        def hang_up(told: str) -> None:
            process.send_signal(signal.SIGHUP)
            wait_for(said, told)

        kept, first = connected()
        make_certificate(tmp_path)
        hang_up("was read again")
        _, second = connected()
        files[1].write_text("nonsense", encoding="ascii")
        hang_up("stays as it is: cannot use the certificate")
        _, third = connected()

        assert second == third != first
        kept.sendall(request("GET", "/healthz"))
        assert kept.recv(15) == b"HTTP/1.1 200 OK"
        assert stop(process) == 0


def test_a_hangup_without_a_certificate_is_one_line_in_the_log(tmp_path: Path) -> None:
    """Whoever reloads every service of a machine ends none of them."""
    with serving(tmp_path) as (process, said):
        port = port_of(process, said)
        process.send_signal(signal.SIGHUP)
        wait_for(said, "no certificate to read again")
        assert status_of(port, "GET", "/healthz") == 200
        assert stop(process) == 0


def wait_for(said: Path, words: str) -> None:
    """Wait until a server has said something."""
    deadline = time.monotonic() + PATIENCE
    while words not in said.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline, said.read_text(encoding="utf-8")
        time.sleep(0.02)


def test_the_log_says_who_did_what_and_nothing_else(tmp_path: Path) -> None:
    """A record for each request, as JSON; no body, token or secret, and nobody else's lines."""
    forged = "x\r\nlevel=info caller=admin"
    with running_server(tmp_path, "--log-format", "json") as server:
        headers = {**server.bearer(), "x-request-id": "run-1", "content-type": "application/json"}
        path = f"/management/v1/projects/{server.known.project}/apps/oidc"
        body = json.dumps({"name": "CANARY-name"}).encode()
        made = exchange(server.port, request("POST", path, headers, body))
        assert made is not None
        exchange(server.port, request("GET", "/nowhere", {"authorization": "Bearer CANARY"}))
        organization = {**headers, "x-service-orgid": "A" * 300}
        exchange(server.port, request("POST", f"{ACTIONS}/_search", organization))
        exchange(server.port, request("GET", f"/{forged}"))
        token = server.token()
    text = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.splitlines()]

    secret = made.json["clientSecret"]
    assert not any(word in text for word in ("CANARY", token, secret, "caller=admin"))
    assert "listening on http://127.0.0.1:" in records[0]["message"]
    seen = [record for record in records if "request_id" in record]
    assert set(seen[0]) == {
        "time", "level", "request_id", "transport", "operation", "organization", "caller",
        "milliseconds", "code", "status",
    }  # fmt: skip
    told = [(one["operation"], one["caller"], one["code"], one["status"]) for one in seen]
    assert told == [("AddOIDCApp", "editor", "0", "200"), ("", "", "16", "401"),
                    ("ListActions", "editor", "3", "400")]  # fmt: skip
    assert seen[0]["request_id"] == "run-1"
    assert seen[2]["organization"] == "A" * 64


def port_of_figures(log: Path) -> int:
    """Return the port that the log of a server names, which is written after it listens."""
    deadline = time.monotonic() + 30
    while not (said := re.search(r"figures: http://127.0.0.1:(\d+)/metrics", log.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(said[1])


def test_figures_are_on_a_port_of_their_own(tmp_path: Path) -> None:
    """In Prometheus' form: calls by outcome, how long they took, events; not on the main port."""
    with running_server(tmp_path, "--metrics-listen", "127.0.0.1:0") as server:
        metrics = port_of_figures(tmp_path / LOG)
        for _ in range(3):
            status_of(server.port, "POST", f"{ACTIONS}/_search", server.bearer())
        status_of(server.port, "POST", ACTIONS)
        exchange(server.port, b"x\r\n\r\n")
        answer = exchange(metrics, request("GET", "/metrics", {"connection": "close"}))
        assert status_of(server.port, "GET", "/metrics", server.bearer()) == 404
        assert status_of(metrics, "GET", ACTIONS) == 404
        events = server.event_count()

    assert answer is not None
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    labels = 'operation="ListActions",transport="json"'
    assert figures[f'reconciler_requests_total{{{labels},code="0"}}'] == "3"
    created = 'operation="CreateAction",transport="json",code="16"'
    assert figures[f"reconciler_requests_total{{{created}}}"] == "1"
    assert figures[f'reconciler_request_seconds_bucket{{{labels},le="+Inf"}}'] == "3"
    assert figures[f"reconciler_request_seconds_count{{{labels}}}"] == "3"
    assert figures["reconciler_events_total"] == str(events)
    assert figures["reconciler_connections_refused_total"] == "1"
    assert figures["reconciler_requests_in_flight"] == "0"
    assert figures["reconciler_store_up"] == "1"
    assert int(figures["reconciler_store_bytes"]) > 0
    for name in {line.split("{")[0].split(" ")[0] for line in figures}:
        base = re.sub("_(bucket|sum|count)$", "", name)
        assert any(line.startswith(f"# TYPE {base} ") for line in lines), name
