"""Hosts and origins, parsed strictly from the text itself.

Parsers of URLs repair what they read (backslashes, tabs, upper case); what is repaired here
and not in a browser is a hole (reliability-security 3.7). So nothing is repaired.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_HOST = 253

_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]+))?", re.ASCII)
_USUAL_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_LOOKS_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)


class Origin(NamedTuple):
    """Scheme, host and port; ``port`` is None where none is written."""

    scheme: str
    host: str
    port: int | None

    @property
    def is_loopback(self) -> bool:
        """Return whether the host can only be the machine itself."""
        return is_loopback_host(self.host)


def parse_origin(text: str) -> Origin:
    """Return the origin that a text is, all of it.

    Raises:
        ValueError: the text is no ``scheme://host[:port]``; the message says what to write.
    """
    found = _ORIGIN.fullmatch(text)
    if found is None:
        raise ValueError(_why_no_origin(text))
    scheme, host, port = found.groups()
    check_host(host)
    number = parse_port(port) if port is not None else None
    if number is not None and DEFAULT_PORTS.get(scheme) == number:
        raise ValueError(f"leave out :{number}, it is the port of {scheme} anyway")
    return Origin(scheme, host, number)


def _why_no_origin(text: str) -> str:
    found = _ORIGIN.match(text)
    if found is not None and text[found.end()] in "/?#":
        return f"an origin has no path, query or fragment: write {found.group()}"
    if text != text.lower() and _ORIGIN.fullmatch(text.lower()):
        return f"write it in lower case: {text.lower()}"
    return "write scheme, host and port only, such as https://app.example.com"


def check_host(host: str) -> None:
    """Accept a host name, an IPv4 address or a bracketed IPv6 address.

    Raises:
        ValueError: the host is none of these; the message says why.
    """
    if len(host) <= MAX_HOST and _USUAL_HOST.fullmatch(host):
        return
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except AddressValueError:
            raise ValueError(f"{host} is not an IPv6 address") from None
        return
    labels = host.split(".")
    if _LOOKS_NUMERIC.fullmatch(labels[-1]):
        try:
            IPv4Address(host)
        except AddressValueError:
            problem = f"{host} is not an IPv4 address: write four numbers up to 255"
            raise ValueError(problem) from None
        return
    if len(host) > MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(
            f"{host} is not a host name: lower-case letters, digits and inner hyphens, "
            "parts of at most 63 joined by dots"
        )


def as_localhost(address: str) -> str:
    """Return an address with ``localhost`` in place of another name of this machine.

    For comparisons in which two names of one server must count as equal.
    """
    found = _ORIGIN.match(address)
    if found is None or not is_loopback_host(found[2]):
        return address
    return address[: found.start(2)] + "localhost" + address[found.end(2) :]


def parse_port(digits: str) -> int:
    """Return a port from 1 to 65535.

    Raises:
        ValueError: the digits are no such number in its plain form.
    """
    if not _PORT.fullmatch(digits) or int(digits) > 65535:
        raise ValueError(
            f"{digits or 'an empty port'} is not a port: write a number from 1 to 65535"
        )
    return int(digits)


def in_url(host: str) -> str:
    """Return a host as it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback_host(host: str) -> bool:
    """Return whether a host is ``localhost`` or a loopback address, of IPv6 in brackets or not."""
    if host == "localhost":
        return True
    try:
        if host.startswith("["):
            return IPv6Address(host[1:-1]).is_loopback
        return ip_address(host).is_loopback
    except ValueError:
        return False
