"""The authority of a URI: read as whoever is deceived most easily would read it."""

from __future__ import annotations

import pytest

from reconciler.plan.authority import authority_of, is_plain_http


@pytest.mark.parametrize(
    ("uri", "authority", "is_plain"),
    [
        ("https://a.example/x", "https://a.example", False),
        ("HTTPS://A.Example/x", "https://a.example", False),
        ("http://a.example", "http://a.example", True),
        ("HTTP://a.example", "http://a.example", True),
        ("http://a.example:80/x?y#z", "http://a.example:80", True),
        ("http://127.0.0.1:3000/", "http://127.0.0.1:3000", False),
        ("http://[::1]/", "http://[::1]", False),
        ("http://localhost/", "http://localhost", False),
        ("http://localhost.evil.example/", "http://localhost.evil.example", True),
        ("http://localhost@evil.example/", "http://localhost@evil.example", True),
        ("http://evil.example\\@localhost/", "http://evil.example", True),
        ("http:///x", "http:", True),
        ("http:x", "http:", True),
        ("com.example.app:/cb", "com.example.app:", False),
        ("com.example.app://host/cb", "com.example.app://host", False),
        ("no uri at all", "no uri at all", False),
        ("", "", False),
    ],
)
def test_where_a_uri_leads(uri: str, authority: str, *, is_plain: bool) -> None:
    """Read as whoever is deceived most easily would read it."""
    assert (authority_of(uri), is_plain_http(uri)) == (authority, is_plain)
