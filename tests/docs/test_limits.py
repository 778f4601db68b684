"""The limits in the documents are those of the server."""

from __future__ import annotations

import re

import pytest

from reconciler.service.operations.lists import MAX_PAGE
from reconciler.service.operations.texts import MAX_LIST_BYTES, MAX_PAGE_BYTES
from reconciler.service.scheduling.shares import (
    UNREAD,
    WAITING_OF_ONE,
)
from reconciler.service.transport.grpc_messages import DENSE
from reconciler.service.transport.grpc_streams import MOST_ASKED
from reconciler.service.transport.http2 import (
    AGE_SECONDS,
    ALLOWANCE,
    ALLOWANCE_OF_KNOWN,
    GRACE_SECONDS,
    NEW_OF_ONE,
    PING_SECONDS,
    QUIET_SECONDS,
    STREAMS,
)
from reconciler.service.transport.json_bodies import MAX_SIGNS
from reconciler.service.transport.limits import (
    CONNECTION_WINDOW,
    KIB,
    MAX_JSON,
    MAX_MESSAGE,
    MIB,
    SMALL_BODY,
    SMALL_MESSAGE,
    STREAM_WINDOW,
    STREAMS_OF_STRANGER,
    Limits,
    most_memory,
)
from tests.program import ROOT

LIMITS = Limits()
LARGE = f"{SMALL_BODY // KIB} KiB"
SMALL = f"{SMALL_MESSAGE // KIB} KiB"


NUMBERS = {3: "three", 4: "four", 5: "five"}


def kib(size: int) -> str:
    return f"{size // KIB} KiB"


def mib(size: int) -> str:
    return f"{size // MIB} MiB"


SERVING = {
    "Request line and headers": [kib(LIMITS.head_bytes), f"{LIMITS.headers} headers"],
    "Address": [kib(LIMITS.target_bytes)],
    "Body": [mib(MAX_JSON), f"{MAX_SIGNS:,} names"],
    f"Bodies over {LARGE} (over HTTP/2, {SMALL}), and shorter ones of thousands of values, at one "
    "time": [
        mib(LIMITS.large_bytes),
        mib(LIMITS.large_share_bytes),
    ],
    "Chunks of a body": [f"{LIMITS.chunks:,};", f"{LIMITS.chunk_bytes} bytes"],
    "Requests before the answer to the first of them": [f"{LIMITS.pipelined} on"],
    "Page of a list": [f"{MAX_PAGE:,} objects", mib(MAX_PAGE_BYTES)],
    "Page of `ListObjects`": [f"{MAX_PAGE:,} objects", mib(MAX_LIST_BYTES)],
    "Answers to reads that are not taken yet": [mib(UNREAD)],
    "Calls that wait, of one token": [f"{WAITING_OF_ONE:,},"],
    "Time for the head of a request": [f"{LIMITS.head_seconds} s"],
    "Time for a body": [
        f"{LIMITS.body_seconds} s",
        f"{kib(LIMITS.progress_bytes)} every {LIMITS.progress_seconds} s",
    ],
    "Time between requests": [f"{LIMITS.idle_seconds} s"],
    "Time to take an answer": [f"{LIMITS.write_seconds} s"],
    "Connections, those included that shake hands for TLS": [f"{LIMITS.connections}"],
    "Time for the handshake of TLS, and for the first byte": [f"{LIMITS.head_seconds} s"],
}
GRPC = {
    "Message, after decompression": [mib(MAX_MESSAGE)],
    f"Messages over {SMALL} at one time": [
        mib(LIMITS.large_bytes),
        mib(LIMITS.large_share_bytes),
        f"{NUMBERS[DENSE]} times",
        f"{LIMITS.large_seconds} s",
    ],
    "Metadata of a call": [kib(LIMITS.head_bytes), f"{LIMITS.headers} headers"],
    "Calls at once on a connection": [
        f"{STREAMS};",
        f"beyond {STREAMS_OF_STRANGER} only",
        f"{LIMITS.http2_calls:,}",
    ],
    "New calls whose token is not judged yet": [f"{NEW_OF_ONE} of a connection that"],
    "Bytes of a call that may come before they are asked for": [
        kib(STREAM_WINDOW),
        kib(CONNECTION_WINDOW + 1),
    ],
    "Time for the message of a call": [f"{LIMITS.body_seconds} s", f"{LIMITS.head_seconds} s"],
    "Calls at once": [
        f"{LIMITS.http2_known},",
        f"{LIMITS.http2_known_of_one} of them",
        f"{LIMITS.http2_open} that",
        f"{LIMITS.http2_open_of_one} of them",
    ],
    "Open streams of reflection and of the watch over health": [
        f"{LIMITS.http2_open},",
        f"{LIMITS.http2_open_of_one} of them",
        f"{LIMITS.stream_seconds // 60} minutes",
        f"{MOST_ASKED:,} questions",
    ],
    "Frames that carry no call": [f"{ALLOWANCE} of", f"{ALLOWANCE_OF_KNOWN} more"],
    "Connections": [f"{LIMITS.connections} of all"],
    "Time that a connection may be idle": [
        f"{QUIET_SECONDS / 60:.0f} minute",
        f"{PING_SECONDS:.0f} s",
    ],
    "Age of a connection": [f"{AGE_SECONDS / 60:.0f} minutes", f"{GRACE_SECONDS / 60:.0f} minute"],
}


@pytest.mark.parametrize(("page", "limits"), [("serving", SERVING), ("grpc", GRPC)])
def test_a_table_of_limits_says_what_holds(page: str, limits: dict[str, list[str]]) -> None:
    """A limit that is changed is changed there, too."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE))

    assert {
        (name, part)
        for name, parts in limits.items()
        for part in parts
        if not re.search(rf"(?<![\d,.]){re.escape(part)}", rows.get(name, ""))
    } == set()


def test_the_sum_of_all_limits_in_the_guide_is_the_one_that_is_logged() -> None:
    """It is in the line as the server writes it."""
    text = (ROOT / "docs/serving.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"memory: at most (\d+) MiB", text)

    assert int(said) == sum(most_memory(LIMITS).values()) // MIB
    assert f"connections: at most {LIMITS.connections}`" in text
