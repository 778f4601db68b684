"""An interruption ends a request; certificates are read where there is TLS, and only there."""

from __future__ import annotations

import signal
import ssl
from pathlib import Path
from unittest.mock import Mock

import anyio
import httpx
import pytest

from reconciler.errors import InterruptedRunError, LocalFileError
from reconciler.resources.call import Call
from reconciler.resources.secret import Secret
from reconciler.service_client.credentials import FixedToken
from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.http_wire import HttpWire, _trust_for
from tests.http_clients import http_wire


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), InterruptedRunError(signal.SIGTERM)])
def test_an_interruption_while_connecting_is_raised_as_itself(
    interruption: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library connects in a task group, which puts what it raises into a group."""

    async def connect(*_: object) -> None:
        async with anyio.create_task_group(), anyio.create_task_group():
            raise interruption

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", connect)
    with http_wire("http://127.0.0.1:9", "token") as wire, pytest.raises(type(interruption)) as at:
        wire.send([Call("GetServiceInfo")])

    assert at.value is interruption


def test_certificates_are_read_where_there_is_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "create_default_context", default := Mock())

    with http_wire("http://127.0.0.1:9", "token"):
        default.assert_not_called()
    with http_wire("https://id.example.com", "token"):
        default.assert_called_once_with()


def test_without_tls_no_certificate_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpx, "AsyncHTTPTransport", transport := Mock())
    HttpWire(parse_endpoint("http://127.0.0.1:9"), FixedToken(Secret("token")))

    trust = transport.call_args.kwargs["verify"]

    assert (trust.verify_mode, trust.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not trust.get_ca_certs()


def test_a_key_log_that_cannot_be_written_is_an_error_of_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library raises the error of the system, from which nobody could tell the variable."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))

    with pytest.raises(LocalFileError) as refused:
        _trust_for(parse_endpoint("https://id.example.com"))

    assert refused.value.problem == (
        "the file in SSLKEYLOGFILE cannot be written: No such file or directory"
    )


def test_the_key_log_is_not_blamed_for_an_error_of_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the error of the key log names a file."""
    monkeypatch.setattr(ssl, "create_default_context", Mock(side_effect=ssl.SSLError("no room")))

    with pytest.raises(ssl.SSLError, match="no room"):
        _trust_for(parse_endpoint("https://id.example.com"))
