"""Messages to fields and answers to messages: nothing lost, nothing made up."""

from __future__ import annotations

from typing import Any, cast

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.resources.fields import NANOSECONDS, parse_duration
from reconciler.service.domain.refusal import Code, Refusal, not_found
from reconciler.service.transport.protobuf import (
    METHODS,
    MOST_PARTS,
    fields_of,
    message_class,
    message_of,
    request_fields,
    status_bytes,
)
from tests.effort import cases
from tests.rows import each_row

MANAGEMENT = "/zitadel.management.v1.ManagementService"
AddApp: Any = METHODS[f"{MANAGEMENT}/AddOIDCApp"].request
CreateAction: Any = METHODS[f"{MANAGEMENT}/CreateAction"].request
UpdateConfig: Any = METHODS[f"{MANAGEMENT}/UpdateOrgIDPJWTConfig"].request
ListOrgs: Any = METHODS["/zitadel.admin.v1.AdminService/ListOrgs"].request
DETAILS: Any = message_class("zitadel.v1.ObjectDetails")


def test_an_absent_field_is_what_protobuf_says_it_is() -> None:
    """Over gRPC a missing header name is an empty one (design 5.2)."""
    assert fields_of(UpdateConfig(idp_id="1")) == {
        "idpId": "1", "jwtEndpoint": "", "issuer": "", "keysEndpoint": "", "headerName": "",
    }  # fmt: skip


def test_where_protobuf_tells_absent_from_empty_so_do_the_fields() -> None:
    """A timeout that is left out is the default; one of no time is none."""
    unsaid, zero = CreateAction(name="a"), CreateAction(name="a")
    zero.timeout.SetInParent()

    assert "timeout" not in fields_of(unsaid)
    assert fields_of(zero)["timeout"] == "0s"


def test_enums_are_words_and_a_number_without_one_stays_a_number() -> None:
    """No operation takes a number for a word, so it is refused with its field named."""
    fields = fields_of(AddApp(app_type=2, response_types=[0, 7], auth_method_type=99))

    assert fields["appType"] == "OIDC_APP_TYPE_NATIVE"
    assert fields["responseTypes"] == ["OIDC_RESPONSE_TYPE_CODE", 7]
    assert fields["authMethodType"] == 99


def test_of_several_choices_only_the_chosen_one_is_there() -> None:
    """Lists look at which query a query is."""
    asked = ListOrgs(queries=[{"name_query": {"name": "acme", "method": 5}}])

    assert fields_of(asked)["queries"] == [
        {"nameQuery": {"name": "acme", "method": "TEXT_QUERY_METHOD_CONTAINS_IGNORE_CASE"}}
    ]


@each_row(
    ("seconds", "nanos", "text"),
    [
        (0, 0, "0s"),
        (1, 500_000_000, "1.5s"),
        (0, 1, "0.000000001s"),
        (20, 0, "20s"),
        (-1, 0, "-1s"),
        (0, -1, "-0.000000001s"),
        (-1, -500_000_000, "-1.5s"),
        (315_576_000_000, 999_999_999, "315576000000.999999999s"),
    ],
)
def test_durations_keep_every_nanosecond(seconds: int, nanos: int, text: str) -> None:
    """What is refused for its size or sign is refused by the operation, in its words."""
    asked = CreateAction()
    asked.timeout.seconds, asked.timeout.nanos = seconds, nanos

    assert fields_of(asked)["timeout"] == text


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(1, -1), (-1, 1), (0, NANOSECONDS), (0, -NANOSECONDS), (5, 2**31 - 1)]
)
def test_a_duration_that_protobuf_does_not_know_is_refused(seconds: int, nanos: int) -> None:
    """Two ways to write one duration would be two requests that mean the same."""
    asked = CreateAction()
    asked.timeout.seconds, asked.timeout.nanos = seconds, nanos

    with pytest.raises(Refusal, match=r"^timeout: must have nanos") as caught:
        fields_of(asked)

    assert caught.value.code is Code.INVALID_ARGUMENT


@settings(max_examples=cases(30), deadline=None)
@given(st.integers(0, 20 * NANOSECONDS))
def test_durations_go_out_and_come_in_as_the_same_time(total: int) -> None:
    """To the nanosecond, in the shortest text."""
    asked = CreateAction()
    asked.timeout.seconds, asked.timeout.nanos = divmod(total, NANOSECONDS)
    text = fields_of(asked)["timeout"]

    assert parse_duration(str(text)) == total
    assert message_of(CreateAction, {"timeout": text}) == asked


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"\xa0\x06\x01", "100: is not the number of a field", id="at the top"),
        pytest.param(
            b"\x1a\x05\x0a\x03\xa0\x06\x01",
            "queries[0].nameQuery.100: is not the number of a field",
            id="inside",
        ),
    ],
)
def test_an_unknown_field_is_refused(data: bytes, message: str) -> None:
    """A field that is ignored looks, to its author, like one that was understood."""
    with pytest.raises(Refusal) as caught:
        fields_of(ListOrgs.FromString(data))

    assert caught.value.message == message


@pytest.mark.parametrize("time", ["2027-01-15T08:00:00.123456Z", "1970-01-01T00:00:00.000000Z"])
def test_times_keep_every_microsecond(time: str) -> None:
    """The sequence is the time of the event, and the two must agree."""
    details = message_of(DETAILS, {"creationDate": time})

    assert MessageToDict(details)["creationDate"] in {time, time.replace(".000000", "")}


def test_a_part_of_zeros_is_there_all_the_same() -> None:
    """Clock skew of no time is shown as such, not left out."""
    action: Any = message_of(message_class("zitadel.action.v1.Action"), {"timeout": "0s"})

    assert action.HasField("timeout")


@pytest.mark.parametrize("answer", [{"secretHash": "x"}, {"details": {"secretHash": "x"}}])
def test_an_answer_with_a_field_that_the_message_lacks_is_a_defect(answer: dict[str, Any]) -> None:
    """It must not be dropped silently; the contract suite asks every operation."""
    with pytest.raises(KeyError):
        message_of(METHODS[f"{MANAGEMENT}/AddProject"].answer, answer)


def _enums(message: Descriptor, path: str = "") -> list[str]:
    """Return the paths of all enum fields of a request."""
    found = []
    for field in message.fields:
        if field.enum_type is not None:
            found.append(path + field.json_name)
        elif field.message_type is not None:
            found += _enums(field.message_type, f"{path}{field.json_name}.")
    return found


def test_requests_have_enums() -> None:
    """The contract suite refuses an undefined number in each; an empty list would prove nothing."""
    found = [
        path
        for method in METHODS.values()
        for path in _enums(cast("Descriptor", method.request.DESCRIPTOR))
    ]

    assert len(found) > 20


METHOD = METHODS["/zitadel.management.v1.ManagementService/AddProject"]
STATUS: Any = message_class("google.rpc.Status")
INFO: Any = message_class("google.rpc.ErrorInfo")


def test_what_is_no_message_of_the_request_is_refused() -> None:
    with pytest.raises(Refusal, match="must be a message zitadel"):
        request_fields(METHOD, b"\xff\xff")


def test_a_status_has_the_detail_of_json_and_the_facts_beside_it() -> None:
    plain = STATUS.FromString(status_bytes(not_found("action")))
    facts = STATUS.FromString(status_bytes(Refusal(Code.ABORTED, "m", "r", holder="ana")))

    assert (plain.code, plain.message, len(plain.details)) == (5, "there is no such action", 1)
    assert [each.type_url.rpartition(".")[2] for each in facts.details] == [
        "ErrorDetail",
        "ErrorInfo",
    ]
    assert INFO.FromString(facts.details[1].value).metadata == {"holder": "ana"}


def test_a_message_of_very_many_values_is_refused_before_they_are_objects() -> None:
    """Two bytes can be an object of a hundred: a message of a mebibyte took 60 MB and 60 ms."""
    method = METHODS["/zitadel.management.v1.ManagementService/AddOIDCApp"]
    sent = b"\x1a\x00" * (MOST_PARTS + 1)  # empty redirect URIs

    with pytest.raises(Refusal, match="values in lists") as refused:
        request_fields(method, sent)
    assert refused.value.details == {"field": "request"}
    assert request_fields(method, sent[2:])


def test_values_within_messages_count() -> None:
    method = METHODS["/zitadel.management.v1.ManagementService/ListActions"]
    (field,) = [each for each in method.request.DESCRIPTOR.fields if each.is_repeated]
    sent = bytes((field.number << 3 | 2, 0)) * (MOST_PARTS + 1)

    with pytest.raises(Refusal, match="values in lists"):
        request_fields(method, sent)
