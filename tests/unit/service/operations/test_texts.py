"""Texts of objects: the same JSON as ever, each encoded once, within a limit."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from reconciler.kinds.oidc_application.operations import app_view
from reconciler.resources.secret import Secret
from reconciler.service.build import IdentityService
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from reconciler.service.operations.texts import (
    ENTRY_BYTES,
    LONGEST_KEPT,
    Encoded,
    Texts,
    answer_bytes,
    as_json,
    as_part,
    json_bytes,
    longest_text,
    longest_texts,
)
from reconciler.service.transport.protobuf import METHODS, encoding_of, message_of
from tests.memory_store import open_memory
from tests.rows import each_row
from tests.running import Known, furnish

OVER_GRPC = {method.operation: method for method in METHODS.values()}
CONTEXT = '{"tree":"shop \\"é\\"","critical":true,"preventDelete":true,"reason":"\\u0001"}'


@pytest.fixture
def service() -> IdentityService:
    """Return a service with objects of every kind, some of them with a context."""
    return open_memory()


def _call(service: IdentityService, known: Known, operation: str, **fields: Any) -> dict[str, Any]:
    return service.call(
        Request(
            operation,
            fields,
            caller=EMBEDDED,
            organization=known.organization,
            context=CONTEXT if "name" in fields else "",
        )
    )


LISTS: list[tuple[str, dict[str, Any]]] = [
    ("ListActions", {}),
    ("ListActions", {"query": {"limit": 1}, "sortingColumn": "ACTION_FIELD_NAME_NAME"}),
    ("ListActions", {"queries": [{"actionNameQuery": {"name": "nothing"}}]}),
    ("ListProjects", {}),
    ("ListOrgs", {}),
    ("ListOrgIDPs", {}),
    ("ListApps", {"projectId": ""}),
    ("ListObjects", {}),
    ("ListObjects", {"limit": 2}),
    ("ListObjects", {"limit": 2, "cursor": ""}),
]


def test_a_list_as_text_is_the_json_of_the_list(service: IdentityService) -> None:
    """Byte for byte, when it is made and when it is kept."""
    known = furnish(service)
    _call(
        service, known, "CreateAction", name='"grüße" \\ \x7f日', script="function a(){}\n\t\"\x02'"
    )
    _call(service, known, "CreateAction", name="b", script="function b() {}", timeout="1.5s")
    urls = {"issuer": "https://a", "jwtEndpoint": "https://a", "keysEndpoint": "https://a"}
    _call(service, known, "AddOrgJWTIDP", name="idp", headerName="", **urls)
    _call(service, known, "AddOIDCApp", name="app", projectId=known.project)

    for operation, fields in LISTS:
        asked = {**fields, "projectId": known.project} if "projectId" in fields else fields
        plain = Request(operation, asked, caller=EMBEDDED, organization=known.organization)
        as_text = Request(
            operation, asked, caller=EMBEDDED, organization=known.organization, encode=answer_bytes
        )
        expected = json.dumps(service.call(plain), ensure_ascii=False, separators=(",", ":"))
        for _ in range(2):
            assert answer_bytes(service.call(as_text)).decode() == expected


def test_a_list_that_is_encoded_in_parts_is_the_message_of_the_list(
    service: IdentityService,
) -> None:
    """When it is made and when it is kept."""
    known = furnish(service)
    _call_many(service, known, 3, "é")
    _call(service, known, "AddOIDCApp", name="app", projectId=known.project)
    for operation, fields in LISTS:
        if operation not in OVER_GRPC:
            continue
        asked = {**fields, "projectId": known.project} if "projectId" in fields else fields
        in_parts = _in_parts(operation, asked, known)
        encode, message = encoding_of(OVER_GRPC[operation]), OVER_GRPC[operation].answer
        expected = message_of(message, service.call(replace(in_parts, in_parts=False, encode=None)))
        for _ in range(2):
            answer = service.call(in_parts)
            assert isinstance(answer["result"], Encoded)
            assert message.FromString(encode(answer)) == expected


def _in_parts(operation: str, fields: dict[str, Any], known: Known) -> Request:
    return Request(
        operation,
        fields,
        caller=EMBEDDED,
        organization=known.organization,
        in_parts=True,
        encode=encoding_of(OVER_GRPC[operation]),
    )


def test_a_text_follows_every_change(service: IdentityService) -> None:
    """A new name, and a mark that comes without a new sequence."""
    known = furnish(service)
    made = _call(service, known, "CreateAction", name="a", script="function a() {}")

    def listed() -> dict[str, Any]:
        request = Request(
            "ListObjects", {}, caller=EMBEDDED, organization=known.organization, encode=answer_bytes
        )
        objects = json.loads(answer_bytes(service.call(request)))["objects"]
        (found,) = (each for each in objects if each["id"] == made["id"])
        return dict(found)

    before = listed()
    _call(service, known, "UpdateAction", id=made["id"], name="b", script="function b() {}")
    assert (before["name"], listed()["name"], listed()["critical"]) == ("a", "b", True)
    service.call(
        Request(
            "RecordContext",
            {"id": made["id"]},
            caller=EMBEDDED,
            organization=known.organization,
            context='{"critical":false}',
        )
    )
    assert listed()["critical"] is False


def _row(name: str, sequence: int = 1) -> ObjectRow:
    return ObjectRow(
        name, "Action", "1", "1", name, name, "{}", "", "", 1, sequence, 1, "", "", "{}"
    )


class Looked:
    """A store of rows that counts what is looked up."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __call__(self, ids: Collection[str]) -> Sequence[ObjectRow]:
        self.ids += ids
        return [_row(name) for name in ids]


def _view(row: ObjectRow) -> dict[str, Any]:
    return {"id": row.id, "more": "x" * 100}


def _long_view(row: ObjectRow) -> dict[str, Any]:
    return {"id": row.id + "x" * LONGEST_KEPT}


def _texts(texts: Texts, looked: Looked, *names: str, sequence: int = 1) -> Sequence[bytes]:
    keys = [(name, sequence) for name in names]
    return [*chain.from_iterable(texts.of(as_json(_view), keys, looked))]


def test_an_object_is_looked_up_and_encoded_once_for_each_sequence() -> None:
    """Whatever list it is in."""
    texts, looked = Texts(), Looked()
    first = _texts(texts, looked, "1", "2")
    assert _texts(texts, looked, "3", "2", "1")[1:] == [first[1], first[0]]
    assert looked.ids == ["1", "2", "3"]
    _texts(texts, looked, "1", sequence=2)
    assert looked.ids == ["1", "2", "3", "1"]


def test_an_answer_is_encoded_once_for_each_sequence_and_each_encoding() -> None:
    """Also after its object was changed by another server."""
    texts = Texts()
    asked: list[int] = []

    def encoded(encode: Callable[[dict[str, Any]], bytes], sequence: int) -> bytes:
        row = _row("1")._replace(sequence=sequence)
        return texts.of_answer(encode, "one", view, row).body

    def view(row: ObjectRow) -> dict[str, Any]:
        asked.append(row.sequence)
        return {"at": row.sequence}

    def other(answer: dict[str, Any]) -> bytes:
        return b"other %d" % answer["one"]["at"]

    for _ in range(2):
        assert encoded(json_bytes, 1) == b'{"one":{"at":1}}'
        assert encoded(other, 1) == b"other 1"
        assert encoded(json_bytes, 2) == b'{"one":{"at":2}}'
        assert texts.of_answer(json_bytes, "another", _view, _row("1")).body != b'{"one":{"at":1}}'
    assert asked == [1, 1, 2]


def test_texts_keep_to_their_limit() -> None:
    """What was dropped is made again, and all the same."""
    texts, looked = Texts(limit=10 * (ENTRY_BYTES + 120)), Looked()
    first = _texts(texts, looked, "0")
    for number in range(100):
        _texts(texts, looked, "often", str(number))
        kept = [text for view in texts._texts.values() for text in view.values()]
        assert sum(map(len, kept)) + len(kept) * ENTRY_BYTES <= 10 * (ENTRY_BYTES + 120)
    assert looked.ids.count("often") < 20
    assert _texts(texts, looked, "0") == first
    assert looked.ids.count("0") == 2


@pytest.mark.parametrize("length", [1, LONGEST_KEPT + 1])
def test_encodings_that_come_once_take_no_room_for_long(length: int) -> None:
    """Such as those of pages for people, each of which shows something else of an object."""
    texts, most = Texts(limit=10 * ENTRY_BYTES), 10

    for _ in range(10 * most):

        def encode(_: dict[str, Any]) -> bytes:
            return b"x" * length

        texts.of_answer(encode, "one", _view, _row("1"))

        assert len(texts._texts) <= most
    assert texts._bytes <= 10 * ENTRY_BYTES


def test_a_listing_of_large_objects_is_cut_and_goes_on_from_there(
    monkeypatch: pytest.MonkeyPatch, service: IdentityService
) -> None:
    """However large they are, an answer is not; and every object is answered once."""
    known = furnish(service)
    _call_many(service, known, 40, "x" * 900)
    monkeypatch.setattr("reconciler.service.operations.texts.MAX_LIST_BYTES", 10_000)

    ids: list[str] = []
    cursor = ""
    while not ids or cursor:
        page = _page(service, known, "ListObjects", as_text=True, cursor=cursor)
        assert len(page["objects"]) < 14
        ids += [each["id"] for each in page["objects"]]
        cursor = page["next"]
    assert len(set(ids)) == len(ids) == 42  # the organization and its project, too


@pytest.mark.slow
def test_a_page_of_large_objects_is_whole(service: IdentityService) -> None:
    """A client that adds its limit to the offset would miss what was left out."""
    known = furnish(service)
    _call_many(service, known, 1000, "é" * 2000)

    for as_text in (True, False):
        page = _page(service, known, "ListActions", as_text=as_text, query={"limit": 1000})
        assert page["details"]["totalResult"] == "1000"
        assert len({each["name"] for each in page["result"]}) == 1000


def test_a_page_that_is_too_long_is_refused_alike_in_every_form(
    monkeypatch: pytest.MonkeyPatch, service: IdentityService
) -> None:
    """The limit is the length as JSON, whatever is asked for. A smaller page is answered."""
    known = furnish(service)
    _call_many(service, known, 40, "é" * 400)
    whole = _page(service, known, "ListActions", as_text=True)["result"]
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    length = len(text) - len("[]") - (len(whole) - 1)

    for most, is_answered in ((length, True), (length - 1, False)):
        monkeypatch.setattr("reconciler.service.operations.texts.MAX_PAGE_BYTES", most)
        for as_text in (True, False):
            if is_answered:
                page = _page(service, known, "ListActions", as_text=as_text)
                assert page["result"] == whole
            else:
                with pytest.raises(Refusal) as refused:
                    _page(service, known, "ListActions", as_text=as_text)
                assert refused.value.code == Code.INVALID_ARGUMENT
                assert refused.value.details == {"field": "query.limit"}
                assert refused.value.message == (
                    "query.limit: must be smaller: these objects are longer than "
                    f"{length - 1} bytes together"
                )
                with pytest.raises(Refusal) as over_grpc:
                    service.call(_in_parts("ListActions", {}, known))
                assert over_grpc.value.message == refused.value.message
            smaller = _page(
                service, known, "ListActions", as_text=as_text, query={"limit": 20, "offset": 20}
            )
            assert smaller["result"] == whole[20:]


def test_no_text_is_longer_than_is_said_beforehand() -> None:
    """A page is weighed only where it may be too long."""
    worst = {
        "redirectUris": ["https://\U0001f511"] * 9 + [f"http://{n}\x01" for n in range(999)],
        "responseTypes": [],
        "grantTypes": [],
        "postLogoutRedirectUris": ["x"],
        "additionalOrigins": [f"{n}\x01\U0001f511" for n in range(999)],
        "appType": "OIDC_APP_TYPE_WEB",
        "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE",
        "accessTokenType": "OIDC_TOKEN_TYPE_BEARER",
        "version": "OIDC_VERSION_1_0",
        "clockSkew": "1s",
        "devMode": False,
    }
    name = "\x01" * 200
    words = {"grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"] * 999}
    for spec in (worst, {**worst, "redirectUris": [], "additionalOrigins": []}, worst | words):
        text = json.dumps(spec, ensure_ascii=False, separators=(",", ":"))
        row = _row(name)._replace(spec=text, client_id="1" * 200)
        length = len(json_bytes(app_view(row)))
        assert length <= longest_text(row)
        part = as_part(encoding_of(OVER_GRPC["ListApps"]), "result", app_view)(row)
        assert length <= longest_texts([part])


def _call_many(service: IdentityService, known: Known, count: int, script: str) -> None:
    """Make actions with a script."""
    service.call_many(
        [
            Request(
                "CreateAction",
                {"name": f"a{number}", "script": script},
                caller=EMBEDDED,
                organization=known.organization,
            )
            for number in range(count)
        ]
    )


def _page(
    service: IdentityService, known: Known, operation: str, *, as_text: bool, **fields: Any
) -> dict[str, Any]:
    encode = answer_bytes if as_text else None
    request = Request(
        operation, fields, caller=EMBEDDED, organization=known.organization, encode=encode
    )
    page: dict[str, Any] = json.loads(answer_bytes(service.call(request)))
    return page


def test_a_very_long_text_is_not_kept() -> None:
    """A few of them would leave no room for others."""
    texts, looked = Texts(), Looked()
    for _ in range(2):
        [*texts.of(as_json(_long_view), [("1", 1)], looked)]
    assert looked.ids == ["1", "1"]


def test_members_that_are_encoded_go_in_as_they_are() -> None:
    """The others are encoded beside them."""
    answer = {"list": Encoded((b"1",)), "é": {"a": [None, True]}}
    assert answer_bytes(answer).decode() == '{"list":[1],"é":{"a":[null,true]}}'


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_of_texts_is_one_text(count: int) -> None:
    texts = Encoded(b'{"a":%d}' % number for number in range(count))
    list_of_them = b"[" + b",".join(texts) + b"]"

    assert answer_bytes({"list": texts}) == b'{"list":' + list_of_them + b"}"
    answer = {"before": 1, "list": texts, "after": "\u00e9"}
    said = b'{"before":1,"list":%b,"after":"\xc3\xa9"}' % list_of_them
    assert answer_bytes(answer) == said


@each_row(
    "value",
    [
        (
            {
                "name": '"\\/\x00\x08\x1f\x7f\u00e9\u2028\U0001f600',
                "n": [None, True, -(2**63), 2**64 - 1],
            }
        ),
        ({"context": {"of": 2**64, "and": -(10**40)}}),
        ({"a": {}, "b": [], "c": ""}),
    ],
)
def test_json_is_that_of_the_standard_library(value: dict[str, Any]) -> None:
    """Whichever encoder is fast enough: also for numbers of more than 64 bits."""
    expected = json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    assert json_bytes(value).decode() == expected


def test_no_secret_becomes_json_by_accident() -> None:
    with pytest.raises(TypeError):
        json_bytes({"clientSecret": Secret("s3cret")})
