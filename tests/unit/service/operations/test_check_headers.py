"""How long, how deep and of which characters what comes beside a request may be."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request, check_headers

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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
