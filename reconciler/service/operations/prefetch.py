"""Guesses of the lookups that the calls of a batch will make in a store, for speed alone.

Nothing has been checked yet, so anything that no store could hold is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.resources.ref import fold
from reconciler.service.eventstore.rows import Lookups
from reconciler.service.operations.request import Request

MAX_TEXT = 300
IDS = ("projectId", "appId", "idpId", "id")  # fields that name an object


def expected_lookups(requests: Sequence[Request]) -> Lookups:
    """Return what calls may look up: their keys, objects, and names that may be taken."""
    return Lookups(
        records=frozenset(
            (request.caller.account, request.idempotency_key)
            for request in requests
            if request.idempotency_key and _can_be(request.idempotency_key)
        ),
        objects=frozenset(filter(_can_be, _objects(requests))),
        names=frozenset(
            fold(name)
            for request in requests
            if isinstance(name := request.fields.get("name"), str) and _can_be(name)
        ),
        events=len(requests),
    )


def _objects(requests: Sequence[Request]) -> Iterator[str]:
    for request in requests:
        yield request.organization
        yield request.caller.only_organization
        for name in IDS:
            object_id = request.fields.get(name)
            if isinstance(object_id, str):
                yield object_id


def _can_be(text: str) -> bool:
    """Return whether a store could hold a text: no NUL, no half of a character, not endless."""
    return 0 < len(text) <= MAX_TEXT and "\0" not in text and _is_whole(text)


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
