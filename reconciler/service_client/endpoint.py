"""The address of a remote service: one origin, and nothing secret in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

from reconciler.errors import UsageError
from reconciler.resources.origin import DEFAULT_PORTS, in_url, is_loopback_host
from reconciler.resources.secret import Secret

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|[0-9a-f:.]+", re.ASCII)
_PROXY_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+", re.ASCII)  # names of containers have a "_"
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)
_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*/?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a service.

    Attributes:
        origin: Scheme, host and port: the only place its token is ever sent to.
        prefix: Path that its addresses hang below; empty or with a slash in front.
    """

    origin: str
    prefix: str = ""

    @property
    def host(self) -> str:
        """Return the host alone."""
        return urlsplit(self.origin).hostname or ""

    @property
    def address(self) -> str:
        """Return the address itself."""
        return self.origin + self.prefix

    @property
    def same_origin(self) -> str:
        """Return the origin as it is compared: without the port that its scheme implies."""
        scheme, _, _ = self.origin.partition(":")
        return self.origin.removesuffix(f":{DEFAULT_PORTS[scheme]}")


def parse_endpoint(address: str) -> Endpoint:
    """Return the endpoint that an address names.

    Raises:
        UsageError: it holds a password, is not encrypted beyond this machine, or is none.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _wrong("the address of the service cannot be read") from None
    # The address is shown in messages and kept in plans, so it must hold no secret.
    if "@" in parts.netloc:
        raise _wrong("the address of the service holds a user or a password")
    if parts.query or parts.fragment or not _PATH.fullmatch(parts.path) or "/.." in parts.path:
        raise _wrong("the address of the service holds more than host, port and path")
    if parts.scheme not in {"http", "https"} or not _HOST.fullmatch(host):
        raise _wrong("the address of the service cannot be read")
    # Only the names and addresses of this machine: 0.0.0.0 and private networks do not count.
    if parts.scheme == "http" and not is_loopback_host(host):
        raise _wrong(f"http to {host} would send the token unencrypted")
    at = f":{port}" if port is not None else ""
    return Endpoint(f"{parts.scheme}://{in_url(host)}{at}", parts.path.rstrip("/"))


class Hook(NamedTuple):
    """The address of a receiver of notices.

    Its path is often a password, so that only the host is shown.
    """

    endpoint: Endpoint
    url: Secret


class Posted(NamedTuple):
    """The result of one POST to it: an HTTP status, or 0 and why none came."""

    status: int
    problem: str = ""


def parse_hook(address: str) -> Hook:
    """Return the receiver that an address names. An error does not repeat the address.

    Raises:
        UsageError: it is not encrypted beyond this machine, or is no address.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _wrong_hook("it cannot be read") from None
    if "@" in parts.netloc:
        raise _wrong_hook("it holds a user or a password")
    is_readable = _PRINTABLE.fullmatch(address) and _HOST.fullmatch(host) and port != 0
    if parts.scheme not in {"http", "https"} or not is_readable or "#" in address:
        raise _wrong_hook("it cannot be read")
    if parts.scheme == "http" and not is_loopback_host(host):
        raise _wrong_hook("http would send the notices unencrypted")
    at = f":{port}" if port is not None else ""
    return Hook(Endpoint(f"{parts.scheme}://{in_url(host)}{at}"), Secret(address))


def _wrong_hook(problem: str) -> UsageError:
    return UsageError(
        f"an address of --notify is not used: {problem}",
        remedy="Write --notify https://HOST[:PORT]/PATH, or set RECONCILER_NOTIFY; http:// is for "
        "this machine alone.",
    )


def parse_proxy(address: str, endpoint: Endpoint) -> str | None:
    """Return the address of the proxy on the way to a service, or None where there is no proxy.

    ``address`` is what ``HTTPS_PROXY`` holds. A host and a port alone are a proxy at ``http://``,
    as in other programs.

    Raises:
        UsageError: it is not the address of an HTTP proxy.
    """
    # An http:// service is on this machine. A proxy would see its token unencrypted.
    if not address or endpoint.origin.startswith("http:"):
        return None
    whole = address if "://" in address else f"http://{address}"
    try:
        parts = urlsplit(whole)
        is_usable = (
            parts.scheme in {"http", "https"}
            and _PROXY_HOST.fullmatch(parts.hostname or "")
            and parts.port != 0
            and _PRINTABLE.fullmatch(whole)
        )
    except ValueError:
        is_usable = False
    if not is_usable:  # the address may hold a password, so it is not shown
        raise UsageError(
            "HTTPS_PROXY is not the address of an HTTP proxy",
            remedy="Write HTTPS_PROXY=http://HOST:PORT, or leave --use-proxy out. SOCKS is not "
            "supported.",
        )
    return whole


def _wrong(problem: str) -> UsageError:
    return UsageError(
        problem,
        remedy="Write --service https://HOST[:PORT]; http:// is for this machine alone. "
        "A token goes into RECONCILER_TOKEN or a --token-file.",
    )
