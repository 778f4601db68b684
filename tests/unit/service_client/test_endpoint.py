"""Addresses of services that are fit for a token."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.service_client.endpoint import parse_endpoint, parse_proxy
from tests.rows import each_row


@each_row(
    ("address", "origin", "prefix"),
    [
        ("https://id.example.com", "https://id.example.com", ""),
        ("https://ID.example.com:8443/", "https://id.example.com:8443", ""),
        ("https://example.com/identity/", "https://example.com", "/identity"),
        ("http://localhost:8080", "http://localhost:8080", ""),
        ("http://127.0.0.7:1", "http://127.0.0.7:1", ""),
        ("http://[::1]:8080", "http://[::1]:8080", ""),
    ],
)
def test_an_address_is_an_origin_and_a_path(address: str, origin: str, prefix: str) -> None:
    """The origin is where the token goes, and nowhere else."""
    endpoint = parse_endpoint(address)

    assert (endpoint.origin, endpoint.prefix) == (origin, prefix)


@each_row(
    "address",
    [
        "http://id.example.com",
        "http://10.0.0.1",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://0.0.0.0",
        "https://user@id.example.com",
        "https://user:geheim@id.example.com",
        "https://id.example.com/?token=geheim",
        "https://id.example.com/#x",
        "https://id.example.com/../x",
        "https://id.example.com/a b",
        "https://id.example.com:port",
        "https://id.example.com:99999",
        "https://",
        "https://-",
        "https://ex\u00e4mple.com",
        "https://[::1",
        "ftp://id.example.com",
    ],
)
def test_an_address_that_endangers_the_token_is_refused(address: str) -> None:
    """And what it holds is not repeated where it may be a password."""
    with pytest.raises(UsageError) as refused:
        parse_endpoint(address)

    assert "geheim" not in refused.value.problem + refused.value.remedy


@each_row(
    ("named", "used"),
    [
        ("", None),
        ("http://proxy.example.com:3128", "http://proxy.example.com:3128"),
        ("https://proxy.example.com", "https://proxy.example.com"),
        ("http://user:word@proxy.example.com:3128", "http://user:word@proxy.example.com:3128"),
        ("proxy.example.com:3128", "http://proxy.example.com:3128"),
        ("proxy", "http://proxy"),
        ("http://egress_proxy:3128", "http://egress_proxy:3128"),
        ("http://[::1]:3128", "http://[::1]:3128"),
    ],
)
def test_a_proxy_is_used_as_it_is_named(named: str, used: str | None) -> None:
    assert parse_proxy(named, parse_endpoint("https://id.example.com")) == used


@pytest.mark.parametrize("service", ["http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"])
def test_no_proxy_sees_the_token_of_a_service_without_tls(service: str) -> None:
    """The address is one of this machine, and the proxy is not."""
    assert parse_proxy("http://proxy.example.com:3128", parse_endpoint(service)) is None


@pytest.mark.parametrize(
    "named",
    [
        "socks5://user:geheim@proxy.example.com:1080",
        "ftp://geheim@proxy.example.com",
        "http://geheim@",
        "http://geheim@proxy.example.com:99999",
        "http://geheim@proxy.example.com:port",
        "http://[geheim",
        "http://geheim@proxy.example.com:0",
        "http://geheim@ex\u00e4mple.com",
        "http://geheim@\udcff.example.com",
        "http://geheim@proxy .example.com",
        "http://geh\u00e9im:geheim@proxy.example.com",
    ],
)
def test_what_is_no_http_proxy_is_refused(named: str) -> None:
    """The address is not repeated: it may hold a password."""
    with pytest.raises(UsageError, match="not the address of an HTTP proxy") as refused:
        parse_proxy(named, parse_endpoint("https://id.example.com"))

    assert "geheim" not in refused.value.problem + refused.value.remedy
