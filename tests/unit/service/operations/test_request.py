"""Calls with the values of their headers, from any transport."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.resources.call import Call
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import (
    Fields,
    Headers,
    Request,
    bearer_token,
    check_headers,
    header_values,
)
from tests.rows import each_row

LARGEST = "9" * 19


def read(headers: Headers) -> Call:
    return Call("GetAction", {"id": "3"}, **header_values(headers))


@pytest.mark.parametrize(
    ("values", "token"),
    [
        (["Bearer abc"], "abc"),
        (["bearer abc"], "abc"),
        (["BEARER !~"], "!~"),
        (["\t Bearer abc "], "abc"),
        (["Bearer " + "x" * 512], "x" * 512),
    ],
)
def test_a_bearer_token_is_taken_as_it_is(values: list[str], token: str) -> None:
    """The scheme is written as anybody likes, the token as it was given out."""
    assert bearer_token({"authorization": values}) == token


@each_row(
    ("values", "message"),
    [
        ([], "a bearer token is needed: Authorization: Bearer TOKEN"),
        *(
            (values, "the authorization header must be one bearer token")
            for values in (
                [""], ["abc"], ["Bearer"], ["Bearer "], ["Bearer  a"], ["Bearer a b"],
                ["Bearer a\n"], ["Bearer \u00e4"], ["Basic abc"], ["Bearer a", "Bearer a"],
                ["Bearer " + "x" * 513],
            )
        ),
    ],
)  # fmt: skip
def test_what_is_no_bearer_token_is_nobody(values: list[str], message: str) -> None:
    """What was sent is not repeated: it may be half of a secret."""
    with pytest.raises(Refusal) as caught:
        bearer_token({"authorization": values} if values else {})

    refusal = caught.value
    assert (refusal.code, refusal.message, refusal.reason) == (
        Code.UNAUTHENTICATED,
        message,
        "token.invalid",
    )


def test_a_call_without_headers_has_its_fields_alone() -> None:
    """The organization is then the token's own, and nothing is expected of an object."""
    assert read({}) == Call("GetAction", {"id": "3"})


@pytest.mark.parametrize("name", ["x-service-orgid", "x-zitadel-orgid"])
def test_every_header_of_a_call_is_read(name: str) -> None:
    """The organization by either of its names."""
    headers = {
        name: ["7"],
        "if-match": ['"41"'],
        "idempotency-key": ["k"],
        "x-reconciler-lease": ["1.a,2.b"],
        "x-reconciler-context": ["{}"],
    }

    assert read(headers) == Call("GetAction", {"id": "3"}, "7", 41, "k", "1.a,2.b", "{}")
    padded = {name: [f" \t{value}\t "] for name, (value,) in headers.items()}
    assert read(padded) == read(headers)


@pytest.mark.parametrize(
    ("own", "other", "organization"),
    [
        (["7"], ["7"], "7"),
        (["7"], [""], "7"),
        ([""], ["7"], "7"),
        ([""], [""], ""),
    ],
)
def test_both_names_of_the_organization_may_be_given(
    own: list[str], other: list[str], organization: str
) -> None:
    """A client that sends both says the same twice."""
    call = read({"x-service-orgid": own, "x-zitadel-orgid": other})

    assert call.organization == organization


@each_row(
    ("headers", "message"),
    [
        (
            {"x-service-orgid": ["7"], "x-zitadel-orgid": ["8"]},
            "x-service-orgid: and x-zitadel-orgid must not differ",
        ),
        *(
            ({name: ["7", "7"]}, f"{name}: must be given once")
            for name in (
                "x-service-orgid", "x-zitadel-orgid", "if-match", "idempotency-key",
                "x-reconciler-lease", "x-reconciler-context",
            )
        ),
        *(
            (
                {"if-match": [value]},
                'if-match: must be a sequence in quotes, such as "1700000000000000"',
            )
            for value in (
                "41", "*", '"01"', '"-1"', '"4.1"', '""', '"1", "2"', 'W/"1"', '"\u0661"',
                f'"{LARGEST}0"',
            )
        ),
    ],
)  # fmt: skip
def test_what_is_repeated_or_malformed_is_refused_by_its_name(
    headers: dict[str, list[str]], message: str
) -> None:
    """Nobody guesses which of two was meant."""
    with pytest.raises(Refusal) as caught:
        read(headers)

    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, message)


@pytest.mark.parametrize(
    ("value", "sequence"), [('"0"', 0), ("", None), (f'"{LARGEST}"', int(LARGEST))]
)
def test_an_expectation_is_a_sequence_in_quotes(value: str, sequence: int | None) -> None:
    """An empty header is none."""
    assert read({"if-match": [value]}).expected_sequence == sequence


ORGANIZATION = "x-service-orgid: must be the id of one organization"
KEY = "idempotency-key: must be at most 200 printable characters"
CONTEXT = (
    "x-reconciler-context: must be a flat JSON object of texts, whole numbers, true, false and "
    "null, of at most 8192 characters"
)


def of_length(length: int) -> str:
    return '{"a":"' + "x" * (length - 8) + '"}'


def request(**beside: Any) -> Request:
    return Request("GetIAM", {}, caller=EMBEDDED, **beside)


@each_row(
    "beside",
    [
        {},
        {"organization": "a"},
        {"organization": "A-Z_09" * 33 + "xx"},
        {"idempotency_key": "k" * 200},
        {"idempotency_key": "\u00e4 \U0001f600"},
        {"context": "{}"},
        {"context": of_length(8192)},
        {"context": '{"a":1,"b":true}'},
        {"context": '{"tree":"default","preventDelete":null}'},
    ],
)
def test_what_is_within_the_limits_is_accepted(beside: dict[str, str]) -> None:
    """Up to the last character."""
    check_headers(request(**beside))


@each_row(
    ("beside", "message"),
    [
        ({"organization": "x" * 201}, ORGANIZATION),
        ({"organization": "a b"}, ORGANIZATION),
        ({"organization": "a\n"}, ORGANIZATION),
        ({"organization": "\u0661"}, ORGANIZATION),
        ({"organization": "../a"}, ORGANIZATION),
        ({"idempotency_key": "k" * 201}, KEY),
        ({"idempotency_key": "a\tb"}, KEY),
        ({"idempotency_key": "a\u202eb"}, KEY),
        ({"context": of_length(8193)}, CONTEXT),
        ({"context": '{"a":{}}'}, CONTEXT),
        ({"context": '{"a":["b"]}'}, CONTEXT),
        ({"context": "[]"}, CONTEXT),
        ({"context": "null"}, CONTEXT),
        ({"context": "{"}, CONTEXT),
        ({"context": '{"tree":"a","tree":"b"}'}, CONTEXT),
        ({"context": '{"a":"\\u0000"}'}, CONTEXT),
        ({"context": '{"a":"\udc00"}'}, CONTEXT),
        ({"context": '{"a":NaN}'}, CONTEXT),
    ],
)
def test_what_is_beyond_them_is_refused_by_its_name(beside: dict[str, str], message: str) -> None:
    """Before anything is looked up or written."""
    with pytest.raises(Refusal) as caught:
        check_headers(request(**beside))

    assert (caught.value.code, caught.value.message) == (Code.INVALID_ARGUMENT, message)


@pytest.mark.parametrize(
    ("sent", "length"),
    [({}, 7), ({"limit": None}, 7), ({"limit": 0}, 7), ({"limit": 6}, 6), ({"limit": "8"}, 7)],
)
def test_a_page_is_at_most_as_long_as_pages_are(sent: dict[str, object], length: int) -> None:
    """A client that asks for more gets what there is room for."""
    assert Fields(sent).limit(7) == length


def test_a_length_that_is_no_number_is_refused() -> None:
    with pytest.raises(Refusal, match="limit: must be a whole number, 0 or more"):
        Fields({"limit": -1}).limit(7)
