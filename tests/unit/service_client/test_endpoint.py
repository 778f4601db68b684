"""Addresses of services that are fit for a token."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.service_client.endpoint import parse_endpoint
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
