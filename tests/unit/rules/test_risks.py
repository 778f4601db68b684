"""Rules of risks: tests of one field, URIs as who is deceived most easily reads them, triggers."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.kinds.oidc_application.rules import is_stronger, is_weaker
from reconciler.rules.risks import (
    Rule,
    Test,
    Value,
    authority_of,
    differs,
    gains,
    gains_any,
    gains_authority,
    gains_plain_http,
    is_plain_http,
    loses_any,
    plain_http,
    role_assertion_off,
    turned_off,
    turned_on,
)
from tests.rows import each_row

BASIC, NONE = "OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_NONE"


@each_row(
    ("test", "before", "after", "answer"),
    [
        (is_weaker, BASIC, NONE, True),
        (is_stronger, NONE, BASIC, True),
        (is_weaker, BASIC, BASIC, False),
        (differs, None, False, True),
        (turned_on, None, True, True),
        (turned_on, True, True, False),
        (turned_off, True, None, True),
        (turned_off, "", None, False),
        (gains("a"), ["b"], ["a"], True),
        (gains("a"), ["a"], ["a"], False),
        (loses_any, ["a", "b"], ["b", "a"], False),
        (loses_any, ["a"], None, True),
        (gains_any, None, ["a"], True),
        (gains_authority, ["https://a.example/x"], ["https://a.example/y"], False),
        (gains_authority, [], ["https://a.example/y"], True),
        (gains_plain_http, "https://a.example", "http://a.example", True),
    ],
)
def test_a_test_compares_two_values(
    test: Test, before: Value, after: Value, *, answer: bool
) -> None:
    assert test(before, after) is answer


HTTP = "it is sent unencrypted, to be read and changed by anyone on the way"
ROLES = "the roles of users are no longer in the token: what relies on them refuses access"


@each_row(
    ("make", "fields", "rule"),
    [
        (
            plain_http,
            "ab",
            Rule("plain-http", 780, ("a", "b"), gains_plain_http, HTTP, also_new=True),
        ),
        (role_assertion_off, "c", Rule("role-assertion-off", 420, ("c",), turned_off, ROLES)),
    ],
)
def test_kinds_share_a_class_for_fields_of_their_own(
    make: Callable[..., Rule], fields: str, rule: Rule
) -> None:
    """Its name, place and sentence are those of every other kind that has it."""
    assert make(*fields) == rule


@each_row(
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
