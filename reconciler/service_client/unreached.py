"""Words for a service that cannot be reached: each cause has a message and a remedy of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import NamedTuple

from reconciler.service_client.endpoint import Endpoint

_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"


class Why(NamedTuple):
    """The cause that kept a connection from being made, and what to do about it."""

    problem: str
    remedy: str


def why_unreached(failure: Exception, endpoint: Endpoint, *, through_proxy: bool) -> Why:
    """Return what kept a connection from being made, and what to do about it.

    Args:
        failure: What the HTTP library raised, with the system's own error as its cause.
        endpoint: The service that was to be reached.
        through_proxy: Whether the connection is made to a proxy instead.
    """
    origin = endpoint.origin
    if is_untrusted(failure):
        return Why(
            f"the certificate of {origin} cannot be trusted",
            "Install the certificate authority that signed it on this machine, or correct the "
            "address.",
        )
    if through_proxy:
        return Why(
            f"{origin} cannot be reached through the proxy ({kind_of(failure)})",
            "Check HTTPS_PROXY, or leave --use-proxy out.",
        )
    causes = tuple(_causes(failure))
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return Why(
            f"{origin} cannot be reached: connection refused, no server listens there",
            "Start the service, or correct the host and the port in --service.",
        )
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Why(
            f"{origin} cannot be reached: the host {endpoint.host} is unknown",
            "Correct the host in --service. If it is right, check that this machine has a network "
            "and can look up names.",
        )
    return Why(
        f"{origin} cannot be reached ({kind_of(failure)})",
        "Check the address in --service, the network and any firewall, then run the command again.",
    )


def is_untrusted(failure: Exception) -> bool:
    """Return whether the certificate of the service was refused."""
    return _UNTRUSTED in str(failure)


def kind_of(failure: Exception) -> str:
    """Return what went wrong on the way, in words that hold nothing of the request."""
    if any(isinstance(cause, TimeoutError) for cause in _causes(failure)):
        return "it took too long"
    if "ssl" in str(failure).lower():
        return "no encrypted connection could be made"
    return "the connection failed"


def _causes(failure: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those it was raised from; the HTTP library wraps the system's."""
    while failure is not None:
        yield failure
        failure = failure.__cause__ or failure.__context__
