"""Measures a store of very many objects: pages, start-up, upkeep, size and memory."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from bench.generate import MIX
from bench.measure import ours, run_once, section
from bench.served import Store, served
from reconciler.service.build import IdentityService, open_sqlite
from reconciler.service.domain.refusal import Refusal
from reconciler.service.operations.callers import EMBEDDED
from reconciler.service.operations.request import Request
from tests.running import Known, furnish
from tests.served import Served

BATCH = 1000
PAGE = 1000
WATCHED = 20
STARTS = 5
MEGABYTE = 1 << 20
SCRIPT = "function greet(ctx, api) { api.v1.claims.setClaim('claim', ctx.v1.user.field%d); }"


def large_store_section(scratch: Path, count: int) -> list[str]:
    """Return a section of results about a store of so many objects."""
    folder = scratch / "large"
    folder.mkdir()
    path = folder / "identity.db"
    began = time.perf_counter()
    known = build(path, count)
    built = time.perf_counter() - began
    held = _size_of(path)
    store = Store(f"sqlite:{path}", (), known)
    small = _empty_store(scratch / "small")
    starts = _starts({"large": store, "empty": small}, scratch)
    with served(store, folder) as server:
        fresh = _memory_of(server)
        own, offset = _own_pages(server, known), _offset_pages(server, known)
        paged = _memory_of(server)
    verify, rebuild = (
        run_once(ours(name, folder, "store", name, "--service", store.service))
        for name in ("verify", "rebuild")
    )
    rows = [
        ("made in process", f"{built:.0f} s, {count / built:,.0f} objects/s"),
        ("size", f"{held / MEGABYTE:,.0f} MB, {held / count:,.0f} bytes an object"),
        ("start of `serve` to its first answer", f"{starts['large']:.2f} s"),
        ("the same, empty store", f"{starts['empty']:.2f} s"),
        (f"all objects, pages of {PAGE:,}: start, middle, end", _in_ms(own)),
        ("actions, pages of 100 by offset: start, middle, end", _in_ms(offset)),
        ("memory of `serve`: at start, after all pages", f"{fresh:.0f} MB, {paged:.0f} MB"),
        ("`store verify`", f"{verify.seconds:.0f} s, {verify.megabytes:,.0f} MB"),
        ("`store rebuild`", f"{rebuild.seconds:.0f} s, {rebuild.megabytes:,.0f} MB"),
    ]
    title = f"A store of {count:,} objects, all of one organization"
    return [*section(title, "| what | figure |"), *(f"| {a} | {b} |" for a, b in rows)]


def build(path: Path, count: int) -> Known:
    """Make a store of so many objects by the operations that everybody calls."""
    with closing(open_sqlite(path, create=True)) as service:
        known = furnish(service)
        requests = _requests(service, known, count)
        while batch := [request for request, _ in zip(requests, range(BATCH), strict=False)]:
            for answer in service.call_many(batch):
                if isinstance(answer, Refusal):
                    raise SystemExit(f"refused: {answer.message}")
    return known


def _requests(service: IdentityService, known: Known, count: int) -> Iterator[Request]:
    """Yield creates in the mix of a grown organization; projects come before what they own."""
    dice = random.Random(1)
    kinds = [(kind, share) for kind, share in MIX if kind not in {"org", "project"}]
    projects = [known.project]
    while len(projects) < max(count // 10, 2):
        batch = [
            _call(known, "AddProject", name=f"project-{len(projects) + n}") for n in range(BATCH)
        ]
        made = service.call_many(batch)
        projects += [answer["id"] for answer in made if not isinstance(answer, Refusal)]
    names, weights = zip(*kinds, strict=True)
    for number, kind in enumerate(dice.choices(names, weights, k=count - len(projects))):
        yield _create(known, kind, number, projects[number // 10 % len(projects)])


def _create(known: Known, kind: str, number: int, project: str) -> Request:
    host = f"https://app-{number}.example.com"
    if kind == "app":
        return _call(
            known, "AddOIDCApp", projectId=project, name=f"app-{number:07d}",
            redirectUris=[f"{host}/callback"], postLogoutRedirectUris=[host],
            authMethodType="OIDC_AUTH_METHOD_TYPE_NONE", appType="OIDC_APP_TYPE_USER_AGENT",
        )  # fmt: skip
    if kind == "action":
        return _call(known, "CreateAction", name=f"action{number:07d}", script=SCRIPT % number)
    return _call(
        known, "AddOrgJWTIDP", name=f"partner-{number:07d}", issuer=host,
        jwtEndpoint=f"{host}/jwt", keysEndpoint=f"{host}/keys", headerName="authorization",
    )  # fmt: skip


def _call(known: Known, operation: str, **fields: Any) -> Request:
    return Request(operation, fields, caller=EMBEDDED, organization=known.organization)


def _empty_store(folder: Path) -> Store:
    folder.mkdir()
    path = folder / "identity.db"
    with closing(open_sqlite(path, create=True)) as service:
        known = furnish(service)
    return Store(f"sqlite:{path}", (), known)


def _starts(stores: Mapping[str, Store], scratch: Path) -> Mapping[str, float]:
    """Return the median seconds that a server of each store takes to its first answer."""
    took: dict[str, list[float]] = {name: [] for name in stores}
    for _ in range(STARTS):
        for name, store in stores.items():
            began = time.perf_counter()
            with served(store, scratch):
                took[name].append(time.perf_counter() - began)
    return {name: statistics.median(seconds) for name, seconds in took.items()}


def _own_pages(server: Served, known: Known) -> Sequence[float]:
    """Read every object; return the medians at the start, in the middle and at the end."""
    took, cursor = [], ""
    address = f"/reconciler/v1/organizations/{known.organization}/objects"
    with _client(server, known) as client:
        while not took or cursor:
            began = time.perf_counter()
            answer = client.get(address, params={"cursor": cursor, "limit": PAGE})
            took.append(time.perf_counter() - began)
            cursor = answer.raise_for_status().json()["next"]
    middle = len(took) // 2
    # The last page may not be full.
    parts = took[:WATCHED], took[middle : middle + WATCHED], took[-WATCHED - 1 : -1]
    return [statistics.median(part) for part in parts]


def _offset_pages(server: Served, known: Known) -> Sequence[float]:
    """Read pages of actions as the compatible API has them: by offset."""
    with _client(server, known) as client:

        def page(offset: int) -> tuple[float, int]:
            began = time.perf_counter()
            body = {"query": {"offset": offset, "limit": 100, "asc": True}}
            answer = client.post("/management/v1/actions/_search", json=body)
            seconds = time.perf_counter() - began
            return seconds, int(answer.raise_for_status().json()["details"]["totalResult"])

        _, total = page(0)
        return [
            statistics.median(page(offset)[0] for _ in range(STARTS))
            for offset in (0, total // 2, max(total - 100, 0))
        ]


def _client(server: Served, known: Known) -> httpx.Client:
    headers = {"authorization": f"Bearer {known.tokens['editor']}"}
    return httpx.Client(base_url=server.address, headers=headers, timeout=120)


def _size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def _memory_of(server: Served) -> float:
    if server.process is None:
        raise AssertionError("the server runs")
    pages = Path(f"/proc/{server.process.pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / MEGABYTE


def _in_ms(seconds: Sequence[float]) -> str:
    return ", ".join(f"{one * 1000:.1f}" for one in seconds) + " ms"
