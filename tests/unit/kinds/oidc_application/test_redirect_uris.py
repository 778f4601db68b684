"""Redirect URIs: what can never be right, what is dangerous, and what is fine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kinds.oidc_application.redirect_uris import redirect_uri_problems
from reconciler.rules.texts import is_ordinary
from tests.rows import each_row

# The corpus of B13 that is ours: the class of the input is in the id.
ERRORS = [
    ("", "URI-EMPTY", "nothing"),
    ("https://good\\@evil/", "URI-CHARACTER", "a backslash"),
    ("https://a.example.com/\\..\\x", "URI-CHARACTER", "backslashes in the path"),
    ("java\nscript:alert(1)", "URI-CHARACTER", "a line break in the scheme"),
    ("https://a.example.com/\tcb", "URI-CHARACTER", "a tab"),
    (" https://a.example.com/cb", "URI-CHARACTER", "a leading space"),
    ("https://a.example.com/cb ", "URI-CHARACTER", "a trailing space"),
    ("https://a.example.com/c b", "URI-CHARACTER", "a space inside"),
    ("https://a.example.com/cb\r\n", "URI-CHARACTER", "a line end"),
    ("https://a.example.com/\x7f", "URI-CHARACTER", "DEL"),
    ("https://a.example.com/\x00", "URI-CHARACTER", "NUL"),
    ("https://ex\uff41mple.com/", "URI-CHARACTER", "a full-width letter"),
    ("https://\u0430pple.com/", "URI-CHARACTER", "a Cyrillic letter"),
    ("https://a\u3002com/", "URI-CHARACTER", "an ideographic full stop"),
    ("https://\u24d0.com/", "URI-CHARACTER", "a circled letter"),
    ("https://\u2100.com/", "URI-CHARACTER", "a letter that becomes a slash"),
    ("https://a.example.com/ü", "URI-CHARACTER", "a letter outside ASCII in the path"),
    ("https://a.example.com/{tenant}", "URI-CHARACTER", "braces"),
    ("https://a.example.com/<x>", "URI-CHARACTER", "angle brackets"),
    ("https://a.example.com/cb#", "URI-FRAGMENT", "an empty fragment"),
    ("https://a.example.com/cb#x", "URI-FRAGMENT", "a fragment"),
    ("https://*.example.com/cb", "URI-WILDCARD", "a wildcard host"),
    ("https://a.example.com/*", "URI-WILDCARD", "a wildcard path"),
    ("https://a.example.com/?x=*", "URI-WILDCARD", "a wildcard query"),
    ("https://u:p@a.example.com/", "URI-USERINFO", "user and password"),
    ("https://@a.example.com/", "URI-USERINFO", "an empty user"),
    ("https://a.example.com@evil.test/", "URI-USERINFO", "a host as user"),
    ("https:///cb", "URI-HOST", "an empty host"),
    ("https:/a.example.com", "URI-HOST", "one slash"),
    ("https:a.example.com", "URI-HOST", "no slash"),
    ("https://", "URI-HOST", "nothing after the slashes"),
    ("https://?x", "URI-HOST", "a query instead of a host"),
    ("https://:443/", "URI-HOST", "a port instead of a host"),
    ("//a.example.com/cb", "URI-SCHEME", "no scheme"),
    ("/cb", "URI-SCHEME", "a path alone"),
    ("a.example.com/cb", "URI-SCHEME", "a host alone"),
    ("1https://a.example.com/", "URI-SCHEME", "a scheme that starts with a digit"),
    ("javascript:alert(1)", "URI-SCHEME", "javascript"),
    ("JavaScript:alert(1)", "URI-SCHEME", "javascript in mixed case"),
    ("data:text/html,x", "URI-SCHEME", "data"),
    ("file:///etc/passwd", "URI-SCHEME", "file"),
    ("vbscript:x", "URI-SCHEME", "vbscript"),
    ("blob:https://a.example.com/x", "URI-SCHEME", "blob"),
    ("about:blank", "URI-SCHEME", "about"),
    ("HTTPS://a.example.com/", "URI-CASE", "an upper-case scheme"),
    ("https://A.example.com/", "URI-CASE", "an upper-case host"),
    ("https://%67ood.com/", "URI-HOST", "an escape in the host"),
    ("https://good_host.com/", "URI-HOST", "an underscore in the host"),
    ("https://good;evil.com/", "URI-HOST", "a semicolon in the host"),
    ("https://host./", "URI-HOST", "a trailing dot"),
    ("https://.host/", "URI-HOST", "a leading dot"),
    ("https://a..b/", "URI-HOST", "an empty label"),
    ("https://-a.com/", "URI-HOST", "a label that starts with a hyphen"),
    ("https://a-.com/", "URI-HOST", "a label that ends with a hyphen"),
    (f"https://{'a' * 64}.com/", "URI-HOST", "a label of 64"),
    (f"https://{'a' * 300}/", "URI-HOST", "a label of 300"),
    (f"https://{'a.' * 126}com/", "URI-HOST", "a host of 255"),
    ("https://127.1/", "URI-HOST", "a short IPv4 address"),
    ("https://2130706433/", "URI-HOST", "an IPv4 address as one number"),
    ("https://0x7f000001/", "URI-HOST", "an IPv4 address as one hex number"),
    ("https://0x7f.0.0.1/", "URI-HOST", "an IPv4 address with a hex part"),
    ("https://0177.0.0.1/", "URI-HOST", "an IPv4 address with an octal part"),
    ("https://1.2.3.4.5/", "URI-HOST", "five parts"),
    ("https://256.0.0.1/", "URI-HOST", "a part above 255"),
    ("https://a.0x7f/", "URI-HOST", "a name that ends like a number"),
    ("https://[::1/", "URI-HOST", "an open bracket"),
    ("https://[1::2::3]/", "URI-HOST", "no IPv6 address"),
    ("https://[fe80::1%25eth0]/", "URI-HOST", "an IPv6 address with a zone"),
    ("https://a.example.com:/", "URI-PORT", "an empty port"),
    ("https://a.example.com:0/", "URI-PORT", "port 0"),
    ("https://a.example.com:08443/", "URI-PORT", "a port with a leading zero"),
    ("https://a.example.com:65536/", "URI-PORT", "a port too large"),
    ("https://a.example.com:99999999/", "URI-PORT", "a port far too large"),
    ("https://a.example.com:80:80/", "URI-PORT", "two ports"),
    ("https://a.example.com:+80/", "URI-PORT", "a port with a sign"),
    ("https://a.example.com:8_0/", "URI-PORT", "a port with an underscore"),
    ("https://a.example.com:x/", "URI-PORT", "a port of letters"),
    ("https://a.example.com/../cb", "URI-PATH", "a dot segment"),
    ("https://a.example.com/./cb", "URI-PATH", "a single dot"),
    ("https://a.example.com/x/..", "URI-PATH", "a dot segment at the end"),
    ("https://a.example.com/%2e%2E/cb", "URI-PATH", "an escaped dot segment"),
    ("https://a.example.com/.%2e/cb", "URI-PATH", "a half escaped dot segment"),
    ("https://a.example.com/a%2fb", "URI-PATH", "an escaped slash"),
    ("https://a.example.com/a%5Cb", "URI-PATH", "an escaped backslash"),
    ("https://a.example.com/a%00b", "URI-ESCAPE", "an escaped NUL"),
    ("https://a.example.com/a?x=%00", "URI-ESCAPE", "an escaped NUL in the query"),
    ("https://a.example.com/100%", "URI-ESCAPE", "a percent sign"),
    ("https://a.example.com/%zz", "URI-ESCAPE", "an escape of no digits"),
]

NATIVE_ERRORS = [
    ("com.example.app:", "URI-PATH", "a custom scheme alone"),
    ("com.example.app:///", "URI-PATH", "a custom scheme and slashes"),
    ("com.example.app:/../cb", "URI-PATH", "a dot segment behind a custom scheme"),
    ("com.example.app://cb/a%2Fb", "URI-PATH", "an escaped slash behind a custom scheme"),
    ("com.example.app://u@cb/", "URI-USERINFO", "a user behind a custom scheme"),
    ("com.example.app://[::1/cb", "URI-HOST", "an open bracket behind a custom scheme"),
    ("com.example.app://a]/cb", "URI-HOST", "a bracket that was never open"),
    ("Com.Example.App:/cb", "URI-CASE", "a custom scheme in upper case"),
    ("com.example.app:/cb#x", "URI-FRAGMENT", "a fragment behind a custom scheme"),
    ("javascript:alert(1)", "URI-SCHEME", "javascript in a native application"),
]

FINE = [
    "https://shop.example.com/callback",
    "https://shop.example.com",
    "https://shop.example.com/",
    "https://shop.example.com?x=1",
    "https://shop.example.com/cb?next=%2Fhome&x=a..b",
    "https://shop.example.com:8443/cb",
    "https://xn--mnchen-3ya.example.com/cb",
    "https://localhost/cb",
    "https://192.0.2.1/cb",
    "https://[2001:db8::1]:8443/cb",
    "https://a.example.com/a%20b/c;d=e,f/(x)!$&'+~",
    "https://a.example.com/.well-known/x",
    "https://a.example.com/a...b/..c",
    "https://a.example.com//",
    "https://7eleven.example.com/",
    "https://a.b7/",
]

NATIVE_FINE = [
    "com.example.app:/callback",
    "com.example.app://callback",
    "com.example.app:callback",
    "http://localhost/cb",
    "http://localhost:3000/cb",
    "http://127.0.0.1:49152/cb",
    "http://[::1]/cb",
]


@each_row(("uri", "code"), [pytest.param(uri, code, id=what) for uri, code, what in ERRORS])
@each_row("dev_mode", [False, True])
def test_what_can_never_be_right_is_an_error(uri: str, code: str, *, dev_mode: bool) -> None:
    [problem] = redirect_uri_problems(uri, native=False, dev_mode=dev_mode)

    assert problem.is_error
    assert problem.code == code
    assert problem.remedy
    assert "  " not in problem.remedy  # it names something
    assert not is_ordinary(uri)


@each_row("uri", ["https:///cb", "https://?x", "https://:443/", "https://:/"])
def test_a_host_that_is_left_out_is_told_as_such(uri: str) -> None:
    """Also where a port is written: what follows the slashes is no host."""
    [problem] = redirect_uri_problems(uri, native=False, dev_mode=False)

    assert (problem.summary, problem.remedy) == ("the host is empty", "Write a host name.")


@each_row(("uri", "code"), [pytest.param(uri, code, id=what) for uri, code, what in NATIVE_ERRORS])
def test_native_applications_have_rules_too(uri: str, code: str) -> None:
    [problem] = redirect_uri_problems(uri, native=True, dev_mode=False)

    assert (problem.is_error, problem.code) == (True, code)


@each_row("uri", FINE)
@each_row("native", [False, True])
def test_what_is_right_is_not_talked_about(uri: str, *, native: bool) -> None:
    assert redirect_uri_problems(uri, native=native, dev_mode=False) == ()


@each_row("uri", NATIVE_FINE)
def test_native_applications_may_do_more(uri: str) -> None:
    assert redirect_uri_problems(uri, native=True, dev_mode=False) == ()


@each_row(
    ("uri", "native", "dev_mode", "codes"),
    [
        pytest.param("http://a.example.com/", False, False, ["URI-HTTP"], id="plain http"),
        pytest.param("http://a.example.com/", False, True, ["URI-HTTP"], id="plain http in dev"),
        pytest.param("http://10.0.0.1/", True, False, ["URI-HTTP"], id="plain http, native"),
        pytest.param("http://localhost.evil.test/", True, False, ["URI-HTTP"], id="a lookalike"),
        pytest.param("http://localhost/", False, False, ["URI-LOOPBACK"], id="localhost, web"),
        pytest.param("http://localhost/", False, True, [], id="localhost, web, in development"),
        pytest.param("https://a.test:443/", False, False, ["URI-DEFAULT-PORT"], id="port 443"),
        pytest.param(
            "http://a.test:80/", False, False, ["URI-HTTP", "URI-DEFAULT-PORT"], id="port 80"
        ),
        pytest.param("https://a.test:80/", False, False, [], id="the port of the other scheme"),
    ],
)
def test_what_is_dangerous_is_a_warning(
    uri: str, codes: list[str], *, native: bool, dev_mode: bool
) -> None:
    problems = redirect_uri_problems(uri, native=native, dev_mode=dev_mode)

    assert [problem.code for problem in problems] == codes
    assert not any(problem.is_error for problem in problems)


@given(
    host=st.text("ab09.:@-", max_size=12),
    path=st.lists(st.text("aZ0_.~%*#-é", max_size=6), max_size=3),
)
def test_the_short_way_agrees_with_the_long_one(host: str, path: list[str]) -> None:
    """What is accepted at a glance has nothing wrong with it."""
    uri = "/".join([f"https://{host}a", *path])
    if is_ordinary(uri):
        assert redirect_uri_problems(uri, native=False, dev_mode=False) == ()


@given(
    uri=st.text("aé\u200b\u2028\ud800\0 \n😀/:%", max_size=40)
    | st.text("htps:/.@#?%[]0123456789-ab\\", max_size=40)
)
def test_no_text_makes_judging_fail(uri: str) -> None:
    for native in (False, True):
        problems = redirect_uri_problems(uri, native=native, dev_mode=False)

        assert not is_ordinary(uri) or problems == ()


@pytest.mark.parametrize(
    ("uri", "native"),
    [
        pytest.param("com.example.app:/cb", False, id="in an application that is not native"),
        pytest.param("myapp://cb", True, id="without a dot"),
        pytest.param("urn:ietf:wg:oauth:2.0:oob", True, id="of out-of-band codes"),
    ],
)
def test_a_custom_scheme_that_others_could_claim_is_a_warning(uri: str, *, native: bool) -> None:
    """Services hold such URIs, and what a service holds can be declared."""
    [problem] = redirect_uri_problems(uri, native=native, dev_mode=False)

    assert (problem.is_error, problem.code) == (False, "URI-CUSTOM-SCHEME")
