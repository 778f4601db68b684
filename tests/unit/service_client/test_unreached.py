"""Each cause for which a service cannot be reached has words of its own."""

from __future__ import annotations

import socket

import pytest

from reconciler.service_client.endpoint import parse_endpoint
from reconciler.service_client.http_messages import connection_failure
from reconciler.service_client.refusals import service_error
from reconciler.service_client.wire import WireRefusal, unsent

SERVICE = parse_endpoint("https://id.example.com")


def wrapped(cause: Exception | None, message: str = "All connection attempts failed") -> Exception:
    """Return a failure as the HTTP library raises it, with the system's as the cause."""
    failure, middle = RuntimeError(message), RuntimeError(message)
    middle.__cause__ = cause
    failure.__cause__ = middle
    return failure


@pytest.mark.parametrize(
    ("failure", "problem", "remedy"),
    [
        (
            wrapped(ConnectionRefusedError(111, "refused")),
            "https://id.example.com cannot be reached: connection refused, no server listens there",
            "Start the service",
        ),
        (
            wrapped(socket.gaierror(-2, "Name or service not known")),
            "https://id.example.com cannot be reached: the host id.example.com is unknown",
            "Correct the host in --service.",
        ),
        (
            wrapped(TimeoutError()),
            "https://id.example.com cannot be reached (it took too long)",
            "Check the address",
        ),
        (
            wrapped(None, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
            "the certificate of https://id.example.com cannot be trusted",
            "Install the certificate authority",
        ),
    ],
)
def test_each_cause_has_its_own_words(failure: Exception, problem: str, remedy: str) -> None:
    """They reach the reader, who otherwise reads to try again."""
    why = connection_failure(failure, SERVICE, through_proxy=False)
    told = service_error(unsent(*why))

    assert told.problem == problem
    assert told.remedy.startswith(remedy)


def test_behind_a_proxy_the_proxy_is_what_cannot_be_reached() -> None:
    why = connection_failure(wrapped(ConnectionRefusedError()), SERVICE, through_proxy=True)

    assert "through the proxy" in why.problem
    assert "HTTPS_PROXY" in why.remedy


@pytest.mark.parametrize("reason", ["token.expired", "token.revoked"])
def test_a_token_that_has_ended_says_how_to_have_another(reason: str) -> None:
    told = service_error(WireRefusal(16, "the token has expired", {"id": reason}))

    assert told.problem == "the service refused: the token has expired"
    assert "`reconciler token create`" in told.remedy
