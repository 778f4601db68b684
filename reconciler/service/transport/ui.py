"""Pages for people at ``/ui``: what the service knows, read with the caller's own token.

A page is made of answers of operations that the caller may call over the API as well, so that it
shows nothing else. The token is the password of HTTP Basic, which no other address takes. How a
page looks is decided elsewhere: ``Drawing`` is handed in.

One page is put together at a time. Each object of an answer is reduced on its own to what the page
shows of it, on a thread that reads: a page takes little memory, however large the objects are.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from binascii import Error as NotBase64
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from reconciler.resources.call import HEADERS, JsonObject
from reconciler.resources.ref import Kind, fold
from reconciler.service.domain.refusal import Code, Refusal, not_found
from reconciler.service.operations.callers import unauthenticated
from reconciler.service.operations.dispatch import Incoming
from reconciler.service.operations.request import Headers, caller_key
from reconciler.service.operations.texts import Encoded, json_bytes
from reconciler.service.scheduling.shares import Shares
from reconciler.service.transport.asgi import Receive, Scope, Send
from reconciler.service.transport.http_messages import (
    ALWAYS,
    HTML,
    HttpAnswer,
    allowed,
    answer_of,
    one,
    read_headers,
    send_answer,
    wrong_verb,
)
from reconciler.service.transport.intake import connection_of
from reconciler.service.transport.json_http import read_parameters
from reconciler.service.transport.observer import Answer, Observer

ROOT = "/ui"
PAGE = 100  # rows
LOOKS = 10  # answers that one page is made of, at most
SEARCHED = 1000  # objects of each
WAITING = 64  # pages
WAITING_OF_ONE = 8
LONGEST = 2_000  # characters of a value in a history
LONGEST_BASIC = 1_024
CHALLENGE = (b"www-authenticate", b'Basic realm="reconciler", charset="UTF-8"')

Keep: TypeAlias = Callable[[dict[str, Any]], JsonObject | None]
"""Returns what a page shows of a member of an answer; None where it does not show it."""


class Drawing(NamedTuple):
    """How pages look.

    Attributes:
        draw: Makes a page of its name and what it shows.
        policy: The content security policy that goes with every page.
    """

    draw: Callable[[str, JsonObject], str]
    policy: str


class _Asking(NamedTuple):
    """One caller's request for a page."""

    answer: Answer
    headers: Headers
    query: Mapping[str, str]
    id: str

    async def ask(
        self, operation: str, keep: Keep, organization: str = "", /, **fields: object
    ) -> dict[str, Any]:
        """Return an answer, reduced to what a page shows of its members.

        Raises:
            Refusal: the service says no.
        """
        named = {HEADERS["organization"]: [organization]} if organization else {}
        encode = partial(_reduced, keep)
        call = Incoming(operation, fields, {**self.headers, **named}, encode)
        received = await self.answer(call)
        if isinstance(received.answer, Refusal):
            raise received.answer
        found: dict[str, Any] = json.loads(received.body)
        return found

    async def rows(self, operation: str, member: str, **fields: object) -> JsonObject:
        """Return a page of an operation that has pages itself."""
        cursor = self.query.get("cursor", "")
        found = await self.ask(operation, _whole, "", cursor=cursor or None, limit=PAGE, **fields)
        return {member: found[member], "next": found["next"]}


def _reduced(keep: Keep, answer: Mapping[str, Any]) -> bytes:
    """Return an answer with its members reduced, one after the other."""
    return json_bytes(
        {
            name: [*_kept(keep, value)] if isinstance(value, Encoded) else value
            for name, value in answer.items()
        }
    )


def _kept(keep: Keep, members: Encoded) -> Iterator[JsonObject]:
    for text in members:
        kept = keep(json.loads(text))
        if kept is not None:
            yield kept


def _whole(view: dict[str, Any]) -> JsonObject:
    return view


# The pages. Each returns what it shows.


async def _overview(asking: _Asking) -> JsonObject:
    """Return the organizations that the caller sees."""
    text = fold(asking.query.get("text", ""))

    def keep(head: dict[str, Any]) -> JsonObject | None:
        return head if text in fold(head["name"]) or text == head["id"] else None

    found = await asking.ask("ListHeads", keep, cursor=asking.query.get("cursor", ""))
    return _cut("organizations", found["organizations"], found["next"])


def _cut(member: str, rows: list[JsonObject], following: str) -> JsonObject:
    """Return the rows of one page; the next one goes on after the last of them."""
    if len(rows) > PAGE:
        rows = rows[:PAGE]
        following = rows[-1]["id"]
    return {member: rows, "next": following}


async def _organization(asking: _Asking) -> JsonObject:
    """Return an organization with its trees.

    Raises:
        Refusal: the caller does not see it, or there is none.
    """
    found = await asking.ask("ListHeads", _whole, asking.id)
    if not found["organizations"]:
        raise not_found("organization")
    return {"organization": found["organizations"][0]}


async def _objects(asking: _Asking) -> JsonObject:
    """Return objects of an organization that fit what is searched for."""
    shown = await _organization(asking)
    keep = _fitting(asking.query)
    is_searched = any(map(asking.query.get, ("text", "kind", "state")))
    limit = SEARCHED if is_searched else PAGE
    rows: list[JsonObject] = []
    following = asking.query.get("cursor", "")
    for _ in range(LOOKS):
        found = await asking.ask(
            "ListObjects", keep, organizationId=asking.id, cursor=following, limit=limit
        )
        rows += found["objects"]
        following = found["next"]
        if len(rows) >= PAGE or not following:
            break
    return {**shown, "kinds": [kind.value for kind in Kind], **_cut("objects", rows, following)}


def _fitting(query: Mapping[str, str]) -> Keep:
    text, kind, state = (query.get(name, "") for name in ("text", "kind", "state"))
    folded = fold(text)

    def keep(held: dict[str, Any]) -> JsonObject | None:
        is_found = folded in fold(held["name"]) or text in {held["id"], held["clientId"]}
        if not is_found or kind not in {"", held["kind"]} or state not in {"", held["state"]}:
            return None
        names = ("kind", "id", "name", "state", "details", "owner", "changedBy")
        return {name: held[name] for name in names}

    return keep


async def _changes(asking: _Asking) -> JsonObject:
    """Return what happened in an organization, newest first."""
    shown = await _organization(asking)
    fields = {"organizationId": asking.id, "order": "newest"}
    return {**shown, **await asking.rows("ListChanges", "changes", **fields)}


async def _owed(asking: _Asking) -> JsonObject:
    """Return the client secrets that wait for their delivery, by name."""
    shown = await _organization(asking)
    page = await asking.rows("ListOwedSecrets", "owedSecrets", organizationId=asking.id)
    return {**shown, **page}


async def _tokens(asking: _Asking) -> JsonObject:
    return await asking.rows("ListTokens", "tokens")


async def _history(asking: _Asking) -> JsonObject:
    """Return the last events of an object, newest first, and what each set to another value."""
    last: deque[JsonObject] = deque(maxlen=PAGE)
    said: dict[str, str] = {}  # by the events up to now
    after, count = "", 0
    for _ in range(LOOKS):
        found = await asking.ask(
            "GetObjectHistory", partial(_news, said), id=asking.id, after=after
        )
        last.extend(found["events"])
        count += len(found["events"])
        after = found["next"]
        if not after:
            break
    events = [*reversed(last)]
    shown = {"id": asking.id, "name": said.get("name", ""), "events": events}
    return {**shown, "count": count, "is_all": not after}


def _news(said: dict[str, str], event: dict[str, Any]) -> JsonObject:
    """Return an event, with the fields that it gave another value than was said before it."""
    payload = event.pop("payload")
    spec = payload.pop("spec", None)
    values = {**payload, **(spec if isinstance(spec, dict) else {})}
    texts = {name: _value(value) for name, value in values.items()}
    fields = [
        [name, said[name][:LONGEST] if name in said else None, text[:LONGEST]]
        for name, text in texts.items()
        if said.get(name) != text
    ]
    said.update(texts)
    return {**event, "fields": fields}


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_Make: TypeAlias = Callable[[_Asking], Awaitable[JsonObject]]
_PAGES: Mapping[str, tuple[str, _Make]] = {
    ROOT: ("overview", _overview),
    f"{ROOT}/tokens": ("tokens", _tokens),
    f"{ROOT}/objects/{{id}}": ("history", _history),
    f"{ROOT}/organizations/{{id}}": ("objects", _objects),
    f"{ROOT}/organizations/{{id}}/changes": ("changes", _changes),
    f"{ROOT}/organizations/{{id}}/owed": ("owed", _owed),
}


def is_of_ui(path: str) -> bool:
    """Return whether a path is one of these pages, or could be."""
    return path == ROOT or path.startswith(f"{ROOT}/")


class Ui:
    """The application that answers ``/ui`` and what is below it."""

    def __init__(self, answer: Answer, observer: Observer, drawing: Drawing) -> None:
        self._answer = answer
        self._observer = observer
        self._drawing = drawing
        self._shares = Shares(WAITING, WAITING_OF_ONE)
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address, object_id = _address(scope["raw_path"].decode("latin-1"))
        with self._observer.call("page", address) as seen, ExitStack() as delivery:
            seen.code = int(Code.INTERNAL)  # until there is an answer
            try:
                content, seen.caller = await self._page(scope, address, object_id, delivery)
                answer = self._whole(200, content)
                connection_of(scope).judged(is_known=True)
                seen.code = 0
            except Refusal as refusal:
                answer = self._refused(refusal)
                seen.code = int(refusal.code)
            seen.status = answer.status
            await send_answer(send, answer, seen.request_id)

    async def _page(
        self, scope: Scope, address: str, object_id: str, delivery: ExitStack
    ) -> tuple[bytes, str]:
        """Return a page, and the name of its caller.

        Raises:
            Refusal: there is no valid token, no such page, or nothing of that id that it may see.
        """
        if scope["method"] not in {"GET", "HEAD"}:
            raise wrong_verb({"GET"})
        token = password(read_headers(scope))
        asking = _Asking(self._answer, {"authorization": [f"Bearer {token}"]}, {}, object_id)
        info = await asking.ask("GetServiceInfo", _whole)  # judges the token before all else
        if address not in _PAGES:
            raise Refusal(Code.NOT_FOUND, "there is no page at this address", "address.unknown")
        asking = asking._replace(query=read_parameters(scope["query_string"]))
        name, make = _PAGES[address]
        with self._shares.place(caller_key(asking.headers)):
            async with self._turn:
                shown = {"info": info, "query": asking.query, **await make(asking)}
        return await self._drawn(name, shown, asking, scope, delivery)

    async def _drawn(
        self,
        name: str,
        shown: JsonObject,
        asking: _Asking,
        scope: Scope,
        delivery: ExitStack,
    ) -> tuple[bytes, str]:
        """Return a page as text, made on a thread that reads, and counted until it is taken."""

        def draw(_: object) -> bytes:
            return self._drawing.draw(name, shown).encode()

        drop = connection_of(scope).drop
        call = Incoming("GetServiceInfo", {}, asking.headers, draw, delivery=delivery, drop=drop)
        received = await self._answer(call)
        if isinstance(received.answer, Refusal):
            raise received.answer
        return received.body, received.caller

    def _refused(self, refusal: Refusal) -> HttpAnswer:
        shown = {"status": refusal.http_status, "message": refusal.message}
        content = self._drawing.draw("refused", shown).encode()
        challenge = [CHALLENGE] if refusal.code is Code.UNAUTHENTICATED else []
        return self._whole(refusal.http_status, content, *challenge, *allowed(refusal))

    def _whole(self, status: int, content: bytes, *more: tuple[bytes, bytes]) -> HttpAnswer:
        policy = (b"content-security-policy", self._drawing.policy.encode())
        return answer_of(status, content, HTML, policy, *GUARDS, *ALWAYS, *more)


GUARDS = (
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of a page for people beside its policy: no other site frames, reads or learns of it."""


def _address(path: str) -> tuple[str, str]:
    """Return the address of a path in the table of pages, and the id in it."""
    parts = path.rstrip("/").split("/")
    if len(parts) < 4:
        return "/".join(parts), ""
    object_id = unquote(parts[3])
    parts[3] = "{id}"
    found = "/".join(parts)
    return (found, object_id) if found in _PAGES else (f"{ROOT}/", "")


def password(headers: Headers) -> str:
    """Return the password of HTTP Basic (RFC 7617). The name beside it can be any.

    Raises:
        Refusal: there is none, or something else.
    """
    scheme, _, given = one(headers, "authorization").partition(" ")
    if scheme.lower() != "basic" or len(given) > LONGEST_BASIC:
        raise unauthenticated("sign in with any name, and a token of this service as the password")
    try:
        return b64decode(given.strip(), validate=True).decode().partition(":")[2]
    except (NotBase64, ValueError):
        raise unauthenticated("the password cannot be read") from None
