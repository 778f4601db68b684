"""The host and path that rules see are those that browsers use, or there is an error."""

from __future__ import annotations

import pytest

from reconciler.policy.uris import host, path
from tests.rows import each_row


@each_row(
    ("uri", "its_host", "its_path"),
    [
        ("https://a.example.com/cb", "a.example.com", "/cb"),
        ("https://A.Example.COM", "a.example.com", ""),
        ("https://a.example.com:8443/cb?x=/y#/z", "a.example.com", "/cb"),
        ("https://a.example.com?x", "a.example.com", ""),
        ("https://user:password@a.example.com/", "a.example.com", "/"),
        ("https://*.example.com/cb", "*.example.com", "/cb"),
        ("http://127.0.0.1:3000/", "127.0.0.1", "/"),
        ("http://[::1]:3000/", "[::1]", "/"),
        ("com.example.app://login_callback", "login_callback", ""),
        ("com.example.app:/cb", "", "/cb"),
        ("com.example.app:cb", "", "cb"),
        ("com.example.app:///cb", "", "/cb"),
        ("urn:example:a", "", "example:a"),
        ("https://a.example.com/%2e%2e/é", "a.example.com", "/%2e%2e/é"),
    ],
)
def test_an_address_has_a_host_and_a_path(uri: str, its_host: str, its_path: str) -> None:
    assert (host(uri), path(uri)) == (its_host, its_path)


@each_row(
    "uri",
    [
        "",
        "a.example.com",
        "/cb",
        "//a.example.com/cb",
        ":cb",
        "https:a.example.com",
        "https:/a.example.com",
        "https:///a.example.com",
        "HTTPS:a.example.com",
        "http://",
        "http://:80/",
        "http://user@/",
        "https://good.example.com\\@evil.example.com/",
        "https://good.example.com\\.evil.example.com/",
        "https://a@b@evil.example.com/",
        "https://evil%2eexample.com/",
        "https://evil\uff0eexample.com/",
        "https://ex\u00e4mple.com/",
        "https://a.example.com:80:90/",
        "https://a.example.com:x/",
        "https://[::1/",
        "https://[::1]evil.example.com/",
        "https://a b/",
        " https://a.example.com/",
        "https://a.example.com/\n",
        "ht\ttps://a.example.com/",
        "https://a.example.com/\x00",
    ],
)
def test_what_a_browser_repairs_is_an_error(uri: str) -> None:
    """A rule about the text would otherwise be about another host than the browser's."""
    for call in (host, path):
        with pytest.raises(ValueError, match="not an absolute URI"):
            call(uri)
