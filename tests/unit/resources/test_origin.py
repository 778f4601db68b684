"""Origins: parsed strictly from the text, so that what is accepted is what is compared."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.resources.origin import (
    Origin,
    as_localhost,
    in_url,
    is_loopback_host,
    parse_origin,
    parse_port,
)
from tests.effort import cases
from tests.rows import each_row

LONGEST = ".".join(["a" * 63] * 3 + ["b" * 61])  # of 253 characters


def written(origin: Origin) -> str:
    port = "" if origin.port is None else f":{origin.port}"
    return f"{origin.scheme}://{origin.host}{port}"


@each_row(
    ("text", "origin"),
    [
        ("https://app.example.com", Origin("https", "app.example.com", None)),
        ("https://app.example.com:8443", Origin("https", "app.example.com", 8443)),
        ("http://localhost:3000", Origin("http", "localhost", 3000)),
        ("https://192.0.2.1", Origin("https", "192.0.2.1", None)),
        ("https://[2001:db8::1]:8443", Origin("https", "[2001:db8::1]", 8443)),
        ("https://a", Origin("https", "a", None)),
        ("https://xn--mnchen-3ya.test", Origin("https", "xn--mnchen-3ya.test", None)),
        ("http://a.test:443", Origin("http", "a.test", 443)),
        ("https://a.test:65535", Origin("https", "a.test", 65535)),
        ("capacitor://localhost", Origin("capacitor", "localhost", None)),
    ],
)
def test_an_origin_is_scheme_host_and_port(text: str, origin: Origin) -> None:
    assert parse_origin(text) == origin


@each_row(
    ("text", "hint"),
    [
        pytest.param("", "scheme, host and port", id="nothing"),
        pytest.param("null", "scheme, host and port", id="null"),
        pytest.param("*", "scheme, host and port", id="a wildcard"),
        pytest.param("https://*.a.test", "scheme, host and port", id="a wildcard host"),
        pytest.param("a.test", "scheme, host and port", id="a host alone"),
        pytest.param("//a.test", "scheme, host and port", id="no scheme"),
        pytest.param("https:a.test", "scheme, host and port", id="no slashes"),
        pytest.param("https://", "scheme, host and port", id="no host"),
        pytest.param("https://a.test/", "write https://a.test", id="a slash at the end"),
        pytest.param("https://a.test/app", "write https://a.test", id="a path"),
        pytest.param("https://a.test?x", "write https://a.test", id="a query"),
        pytest.param("https://a.test#x", "write https://a.test", id="a fragment"),
        pytest.param("HTTPS://a.test", "lower case: https://a.test", id="an upper-case scheme"),
        pytest.param("https://A.test", "lower case: https://a.test", id="an upper-case host"),
        pytest.param("https://u@a.test", "scheme, host and port", id="a user"),
        pytest.param("https://a.test ", "scheme, host and port", id="a space at the end"),
        pytest.param("https://a.test\n", "scheme, host and port", id="a line end"),
        pytest.param("https://a\\.test", "scheme, host and port", id="a backslash"),
        pytest.param("https://\u0430.test", "scheme, host and port", id="a Cyrillic letter"),
        pytest.param("https://a.test:443", "leave out :443", id="the port of https"),
        pytest.param("http://a.test:80", "leave out :80", id="the port of http"),
        pytest.param("https://a.test:", "scheme, host and port", id="an empty port"),
        pytest.param("https://a.test:0", "from 1 to 65535", id="port 0"),
        pytest.param("https://a.test:065", "from 1 to 65535", id="a port with a zero in front"),
        pytest.param("https://a.test:65536", "from 1 to 65535", id="a port too large"),
        pytest.param(
            "https://a.test:" + "9" * 5000, "from 1 to 65535", id="a port of 5,000 digits"
        ),
        pytest.param("https://a.test:\uff18", "scheme, host and port", id="a full-width digit"),
        pytest.param("https://a.test:80:80", "scheme, host and port", id="two ports"),
        pytest.param("https://a..b", "not a host name", id="an empty label"),
        pytest.param("https://a.", "not a host name", id="a dot at the end"),
        pytest.param("https://-a.test", "not a host name", id="a hyphen at the start"),
        pytest.param(f"https://{'a' * 64}.test", "not a host name", id="a label of 64"),
        pytest.param(f"https://{'a.' * 126}com", "not a host name", id="a host of 255"),
        pytest.param("https://127.1", "not an IPv4 address", id="a short IPv4 address"),
        pytest.param("https://2130706433", "not an IPv4 address", id="an address as a number"),
        pytest.param("https://0x7f.1", "not an IPv4 address", id="an address in hex"),
        pytest.param("https://0177.0.0.1", "not an IPv4 address", id="an address in octal"),
        pytest.param("https://a.0x", "not an IPv4 address", id="a name that ends like a number"),
        pytest.param("https://[::g]", "scheme, host and port", id="no hex digit"),
        pytest.param("https://[1::2::3]", "not an IPv6 address", id="no IPv6 address"),
        pytest.param("https://[::12345]", "not an IPv6 address", id="too long at its end"),
        pytest.param("HTTPS://A.TEST", "in lower case: https://a.test", id="capitals alone"),
        pytest.param("https://a.testX", "in lower case: https://a.testx", id="one capital"),
        pytest.param("Hello World", "scheme, host and port", id="capitals of no origin"),
        pytest.param(f"https://{LONGEST}a", "not a host name", id="a host of 254"),
        pytest.param("https://[::1", "scheme, host and port", id="an open bracket"),
    ],
)
def test_what_is_no_origin_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_origin(text)

    assert hint in str(caught.value)


NEARLY = st.from_regex(r"[a-z]{1,6}://[a-z0-9.:\[\]-]{1,30}(:[0-9]{1,5})?", fullmatch=True)


@settings(max_examples=cases(60))
@given(text=NEARLY | st.text(max_size=60))
def test_what_is_accepted_is_written_as_it_was(text: str) -> None:
    """Nothing is repaired, so nothing can be accepted in one form and used in another."""
    try:
        origin = parse_origin(text)
    except ValueError:
        return

    assert written(origin) == text


@pytest.mark.parametrize("host", [LONGEST, f"{LONGEST[:-1]}1"])
def test_a_host_may_have_253_characters(host: str) -> None:
    assert parse_origin(f"https://{host}").host == host


@pytest.mark.parametrize(("digits", "shown"), [("", "an empty port"), ("0", "0"), ("x", "x")])
def test_what_is_no_port_is_told_by_its_digits(digits: str, shown: str) -> None:
    with pytest.raises(
        ValueError, match=f"^{shown} is not a port: write a number from 1 to 65535$"
    ):
        parse_port(digits)


def test_an_address_without_brackets_is_loopback_too() -> None:
    """Parsers of URLs and options take them away."""
    assert is_loopback_host("::1")
    assert not is_loopback_host("::2")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_the_machine_itself_is_loopback(host: str) -> None:
    assert is_loopback_host(host)
    assert parse_origin(f"http://{host}").is_loopback


@pytest.mark.parametrize(
    ("address", "same"),
    [
        ("http://127.0.0.1:8/a", "http://localhost:8/a"),
        ("http://[::1]", "http://localhost"),
        ("https://id.example.com/127.0.0.1", "https://id.example.com/127.0.0.1"),
        ("http://127.0.0.1.evil.test", "http://127.0.0.1.evil.test"),
        ("/var/identity.db", "/var/identity.db"),
    ],
)
def test_names_of_this_machine_compare_as_one(address: str, same: str) -> None:
    assert as_localhost(address) == same


@each_row(
    "host",
    [
        "",
        "localhost.evil.test",
        "127.0.0.1.evil.test",
        "127.1",
        "10.0.0.1",
        "[::2]",
        "128.0.0.1",
        "[]",
    ],
)
def test_nothing_else_is_loopback(host: str) -> None:
    assert not is_loopback_host(host)


@pytest.mark.parametrize(
    ("host", "written"), [("::1", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("a.example", "a.example")]
)
def test_a_host_stands_in_a_url_with_brackets_if_it_is_of_ipv6(host: str, written: str) -> None:
    assert in_url(host) == written
