"""Operations by their addresses, and what a call carries beside its fields."""

from __future__ import annotations

import re
from dataclasses import fields

from reconciler.kinds.addresses import ADDRESSES
from reconciler.resources.call import HEADERS, ORDER_KEYS, Call, Code
from tests.rows import each_row

BESIDE = {each.name for each in fields(Call)} - {"operation", "fields"}


def test_no_two_operations_share_an_address() -> None:
    addresses = [re.sub(r"\{\w+\}", "{}", each) for some in ADDRESSES.values() for each in some]

    assert len(set(addresses)) == len(addresses)


@each_row("operation", ADDRESSES)
def test_an_address_is_a_verb_and_a_path(operation: str) -> None:
    for address in ADDRESSES[operation]:
        assert re.fullmatch(r"(?:GET|POST|PUT|DELETE) (?:/(?:[\w-]+|\{[a-zA-Z]+\}))+", address)


def test_every_value_beside_the_fields_has_a_header_and_a_key() -> None:
    """Both spell the same set of values."""
    assert set(HEADERS) == set(ORDER_KEYS) == BESIDE
    assert len(set(HEADERS.values())) == len(set(ORDER_KEYS.values())) == len(BESIDE)


def test_a_call_carries_nothing_that_it_was_not_given() -> None:
    assert Call("Healthz") == Call("Healthz", {}, "", None, "", "", "", "")


def test_the_refusals_are_those_of_grpc() -> None:
    import grpc

    numbers = {status.name: status.value[0] for status in grpc.StatusCode}
    renamed = {"PRECONDITION_FAILED": "FAILED_PRECONDITION"}

    assert {code.name: code.value for code in Code} == {
        code.name: numbers[renamed.get(code.name, code.name)] for code in Code
    }
