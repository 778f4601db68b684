"""The strict decoder, on the wire."""

from __future__ import annotations

import pytest

from reconciler.service.transport.limits import MAX_JSON
from tests.contract.json_transport.asking import ACTIONS, BOM, SEARCH, an_action, ask, refused, send
from tests.running import Server

# The strict decoder, on the wire.


MALFORMED = {
    "nothing but space": b" ",
    "cut off": b'{"query"',
    "a list": b"[]",
    "no quotes": b"{query:{}}",
    "a byte order mark": BOM + b"{}",
    "UTF-16": '{"query":{}}'.encode("utf-16"),
    "UTF-16 without a mark": "{}".encode("utf-16-le"),
    "Latin-1": '{"queries":[{"actionNameQuery":{"name":"é"}}]}'.encode("latin-1"),
    "an overlong form": b'{"queries":[{"actionNameQuery":{"name":"\xc0\xaf"}}]}',
    "a surrogate in UTF-8": b'{"queries":[{"actionNameQuery":{"name":"\xed\xa0\x80"}}]}',
    "a name twice": b'{"query":{},"query":{}}',
    "a name twice, once escaped": b'{"query":{},"qu\\u0065ry":{}}',
    "NaN": b'{"query":{"limit":NaN}}',
    "1e999": b'{"query":{"limit":1e999}}',
    "1.5": b'{"query":{"limit":1.5}}',
    "1e-1": b'{"query":{"limit":1e-1}}',
    "-1": b'{"query":{"limit":-1}}',
    "2^63": b'{"query":{"limit":9223372036854775808}}',
    "2^64 as text": b'{"query":{"limit":"18446744073709551616"}}',
    "4,301 digits": b'{"query":{"limit":' + b"1" * 4301 + b"}}",
    "4,301 decimals": b'{"query":{"limit":1.' + b"1" * 4301 + b"}}",
    "a leading zero": b'{"query":{"limit":01}}',
    "a plus": b'{"query":{"limit":+1}}',
    "hexadecimal": b'{"query":{"limit":0x1}}',
    "digits with an underscore": b'{"query":{"limit":"1_0"}}',
    "full-width digits": b'{"query":{"limit":"\xef\xbc\x91"}}',
    "a flag for a number": b'{"query":{"limit":true}}',
    "a number for a flag": b'{"query":{"asc":1}}',
    "a text for a flag": b'{"query":{"asc":"true"}}',
    "an object for a list": b'{"queries":{}}',
    "a list for an object": b'{"query":[]}',
    "null for an unknown field": b'{"":null}',
    "null for an unknown field, inside": b'{"query":{"page":null}}',
    "null for a query": b'{"queries":[{"actionNameQuery":null}]}',
    "null beside a query": b'{"queries":[{"actionNameQuery":{},"x":null}]}',
    "null in a list": b'{"queries":[null]}',
    "an unknown field": b'{"quary":{}}',
    "an unknown field, inside": b'{"query":{"page":1}}',
    "snake_case": b'{"sorting_column":"ACTION_FIELD_NAME_NAME"}',
    "another case": b'{"Query":{}}',
    "an unknown word": b'{"sortingColumn":"ACTION_FIELD_NAME_AGE"}',
    "a word in another case": b'{"sortingColumn":"action_field_name_name"}',
    "a number for a word": b'{"sortingColumn":1}',
    "NUL": b'{"queries":[{"actionNameQuery":{"name":"\\u0000"}}]}',
    "a raw NUL": b'{"queries":[{"actionNameQuery":{"name":"\x00"}}]}',
    "a raw line feed": b'{"queries":[{"actionNameQuery":{"name":"\n"}}]}',
    "half a character": b'{"queries":[{"actionNameQuery":{"name":"\\ud800"}}]}',
    "half a character in a name": b'{"\\ud800":1}',
    "an escape that is none": b'{"queries":[{"actionNameQuery":{"name":"\\x41"}}]}',
    "nested 33 deep": b'{"query":' + b"[" * 32 + b"]" * 32 + b"}",
    "a prototype": b'{"__proto__":{"x":1}}',
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_json_is_refused(server: Server, body: bytes) -> None:
    """Whatever two readers could read differently is read by nobody."""
    refused(ask(server, "POST", SEARCH, body), 400, 3)


WELL_FORMED = {
    "empty": b"",
    "an empty object": b"{}",
    "space around": b" \t\r\n{} \n",
    "null for a field": b'{"query":null,"queries":null,"sortingColumn":null}',
    "null, inside": b'{"query":{"limit":null}}',
    "a number": b'{"query":{"limit":3}}',
    "a number as text": b'{"query":{"limit":"3"}}',
    "a whole number with a point": b'{"query":{"limit":3.0}}',
    "minus zero": b'{"query":{"limit":-0}}',
    "2^53+1": b'{"query":{"offset":9007199254740993}}',
    "2^63-1": b'{"query":{"offset":9223372036854775807}}',
    "an escaped pair": b'{"queries":[{"actionNameQuery":{"name":"\\ud83d\\udd11"}}]}',
    "an escaped back-slash": b'{"queries":[{"actionNameQuery":{"name":"\\\\u0000"}}]}',
}


@pytest.mark.parametrize("body", WELL_FORMED.values(), ids=list(WELL_FORMED))
def test_well_formed_json_is_taken(server: Server, body: bytes) -> None:
    """Strict is not narrow: what protobuf's JSON form allows is allowed."""
    answer = ask(server, "POST", SEARCH, body)

    assert answer.status == 200, answer.body


@pytest.mark.parametrize(("extra", "status"), [(0, 400), (1, 413)], ids=["at it", "beyond it"])
def test_a_body_has_a_greatest_size(server: Server, extra: int, status: int) -> None:
    """At the limit it is read (and found to be no request); one byte more is not read.

    What is not read to its end ends the connection.
    """
    start, end = b'{"x":"', b'"}'
    body = start + b"x" * (MAX_JSON - len(start) - len(end) + extra) + end

    answer = ask(server, "POST", SEARCH, body)

    refused(answer, status, 3 if status == 400 else 8)
    assert answer.closed is (status == 413)


def test_refused_requests_write_nothing(server: Server) -> None:
    """Each field of a refused create is refused before the store is touched."""
    before = server.event_count()
    for wrong in (
        {"timeout": "1m"}, {"timeout": "-1s"}, {"timeout": "21s"}, {"timeout": 1},
        {"allowedToFail": "yes"}, {"allowedToFail": 0}, {"unknown": 1}, {"name": None},
        {"script": 1}, {"name": ["x"]},
    ):  # fmt: skip
        message = refused(send(server, "POST", ACTIONS, an_action(**wrong)), 400, 3)
        assert message.startswith(f"{next(iter(wrong))}: "), message

    assert server.event_count() == before


def test_null_is_the_same_as_left_out(server: Server) -> None:
    """For a field that there is; a field that must be there is missing then."""
    made = send(server, "POST", ACTIONS, an_action(timeout=None, allowedToFail=None))
    assert made.status == 200
    read = ask(server, "GET", f"{ACTIONS}/{made.json['id']}").json["action"]
    assert (read["timeout"], read["allowedToFail"]) == ("20s", False)

    assert "is required" in refused(send(server, "POST", ACTIONS, an_action(script=None)), 400, 3)
    assert "is not a field" in refused(send(server, "POST", ACTIONS, an_action(x=None)), 400, 3)
