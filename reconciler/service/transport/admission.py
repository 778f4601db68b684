"""Admission of requests: judged by their headers, before their bodies are taken in."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.callers import token_hash
from reconciler.service.operations.dispatch import NEEDS_NO_TOKEN, Incoming
from reconciler.service.operations.request import Headers, bearer_token, caller_key
from reconciler.service.transport.observer import Answer

FRESH_SECONDS = 2.0
MOST_KNOWN = 1024
NOBODY = b""  # stands for every caller of an operation that needs no token
_ADMITTED = Refusal(Code.INTERNAL, "no request was read", "request.unread")


async def admitted(answer: Answer, headers: Headers) -> bytes:
    """Return what stands for the caller (the hash of its token), from one look at the store.

    The service tells a caller why its request cannot be read, and anybody else that it is no
    caller. So a call whose request "cannot be read" asks just that, and many share one look.

    Raises:
        Refusal: it is no caller; or the store cannot be asked.
    """
    token = bearer_token(headers)
    received = await answer(Incoming("", _ADMITTED, headers))
    if isinstance(received.answer, Refusal) and received.answer is not _ADMITTED:
        raise received.answer
    return token_hash(token)


class Admission:
    """Knows which tokens were valid a moment ago."""

    def __init__(self, answer: Answer, now: Callable[[], float] = time.monotonic) -> None:
        """Judge tokens by ``answer``, which tells what is wrong with a call only to its caller."""
        self._answer = answer
        self._now = now
        self._valid_until: dict[bytes, float] = {}  # by hash, the oldest verdict first

    async def caller(self, operation: str, headers: Headers) -> bytes:
        """Return the key of a caller that may send a message.

        A token that was valid within the last ``FRESH_SECONDS`` needs no look at the store.

        Raises:
            UnreadError: the token is not valid, or the store cannot be asked.
        """
        if operation in NEEDS_NO_TOKEN:
            return NOBODY
        token = caller_key(headers)
        if self._valid_until.get(token, 0.0) > self._now():
            return token
        try:
            token = await admitted(self._answer, headers)
        except Refusal as refusal:
            raise UnreadError(
                refusal.code, refusal.message, refusal.reason, **refusal.details
            ) from None
        self._remember(token)
        return token

    def _remember(self, token: bytes) -> None:
        self._valid_until.pop(token, None)
        if len(self._valid_until) >= MOST_KNOWN:
            del self._valid_until[next(iter(self._valid_until))]
        self._valid_until[token] = self._now() + FRESH_SECONDS


class UnreadError(Refusal):
    """A call that is refused before its message is read. Its caller may know why at once."""


def too_many_calls() -> UnreadError:
    """Refuse a call because of others."""
    return UnreadError(
        Code.RESOURCE_EXHAUSTED, "there are too many calls at once; ask again", "service.busy"
    )


class Shares:
    """Calls at one time: a number for all callers, and a smaller one for each."""

    def __init__(self, total: int, share: int) -> None:
        self._total = total
        self._share = share
        self._count = 0
        self._by_caller: Counter[bytes] = Counter()

    @contextmanager
    def place(self, caller: bytes) -> Iterator[None]:
        """Count a call of a caller for as long as the block runs.

        Raises:
            UnreadError: there are too many calls already, of this caller or of all.
        """
        if self._count >= self._total or self._by_caller[caller] >= self._share:
            raise too_many_calls()
        self._count += 1
        self._by_caller[caller] += 1
        try:
            yield
        finally:
            self._count -= 1
            self._by_caller[caller] -= 1
            if not self._by_caller[caller]:
                del self._by_caller[caller]
