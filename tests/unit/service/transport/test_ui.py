"""Pages for people: how many are made at a time, and what memory an answer may take."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import httpx

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.operations.texts import Encoded
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.ui import PAGE, WAITING_OF_ONE, Ui
from tests.examples import NAMES_ALONE
from tests.unit.service.transport.asgi import connected

HEAD = {"name": "acme", "sequence": "1", "owed": "0", "pauses": [], "applied": []}


class _Service:
    """Answers calls as a service of many organizations; heads wait until they may."""

    def __init__(self, organizations: int = 1) -> None:
        self.may = asyncio.Event()
        self.at_once = self.most = 0
        heads = [json.dumps({**HEAD, "id": f"{n:06}"}).encode() for n in range(organizations)]
        self._heads = {"instance": "1", "organizations": Encoded(heads), "next": ""}

    async def answer(self, call: Incoming) -> Received:
        assert call.encode is not None
        assert set(call.headers) <= {"authorization", "x-service-orgid"}
        if call.operation == "GetServiceInfo":
            return Received("viewer", {}, call.encode({"role": "viewer"}))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await self.may.wait()
        self.at_once -= 1
        return Received("viewer", {}, call.encode(self._heads))


def client_of(answer: Any, drawing: Any = NAMES_ALONE) -> httpx.AsyncClient:
    basic = b64encode(b"ana:token").decode()
    transport = httpx.ASGITransport(connected(Ui(answer, Observer(), drawing)))
    headers = {"authorization": f"Basic {basic}", "x-forwarded-for": "1.2.3.4"}
    return httpx.AsyncClient(transport=transport, base_url="http://x", headers=headers)


def test_one_page_is_made_at_a_time_and_a_token_has_few_that_wait() -> None:
    async def main() -> None:
        service = _Service()
        async with client_of(service.answer) as client:
            asked = [asyncio.create_task(client.get("/ui")) for _ in range(WAITING_OF_ONE + 1)]
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert [each.result().status_code for each in done] == [429]
            service.may.set()
            codes = sorted([(await each).status_code for each in asked])
            assert codes == [200] * WAITING_OF_ONE + [429]
            assert service.most == 1

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_page_shows_a_hundred_rows_of_many_and_where_it_goes_on() -> None:
    shown: list[dict[str, Any]] = []

    def draw(name: str, given: Any) -> str:
        shown.append(given)
        return name

    async def main() -> None:
        service = _Service(PAGE + 5)
        service.may.set()
        async with client_of(service.answer, NAMES_ALONE._replace(draw=draw)) as client:
            assert (await client.get("/ui")).text == "overview"
            assert (await client.get("/ui?text=ACME&cursor=x")).text == "overview"
            assert (await client.get("/ui?text=nobody")).text == "overview"
            assert (await client.get("/ui?text=a&text=b")).status_code == 400
            assert (await client.get("/ui/elsewhere/1")).status_code == 404

    asyncio.run(asyncio.wait_for(main(), 20))
    first, found, none = shown[:3]
    assert (len(first["organizations"]), first["next"]) == (PAGE, f"{PAGE - 1:06}")
    assert len(found["organizations"]) == PAGE
    assert (none["organizations"], none["next"]) == ([], "")


def test_a_page_that_cannot_be_made_is_refused_without_its_cause() -> None:
    async def broken(call: Incoming) -> Received:
        return Received("", Refusal(Code.INTERNAL, "the service failed", "service.failed"))

    async def main() -> httpx.Response:
        async with client_of(broken) as client:
            return await client.get("/ui")

    answer = asyncio.run(asyncio.wait_for(main(), 20))
    assert (answer.status_code, answer.text) == (500, "refused")
    assert "www-authenticate" not in answer.headers
