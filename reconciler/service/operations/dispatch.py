"""Calls from outside: callers and headers are checked, then the operations carried out.

Every transport calls this module, so that tokens and headers are checked in one place.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from reconciler.service.domain.refusal import Code, Refusal, store_unusable
from reconciler.service.eventstore.errors import (
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.eventstore.writers import WRITERS, require_current
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.batch import Orders
from reconciler.service.operations.callers import (
    Caller,
    Role,
    caller_of,
    unauthenticated,
)
from reconciler.service.operations.engine import Engine
from reconciler.service.operations.request import (
    Headers,
    Request,
    bearer_token,
    caller_key,
    header_values,
    organization_named,
)
from reconciler.service.operations.table import needs_token, writes
from reconciler.service.operations.texts import EncodedAnswer

T = TypeVar("T")
LOG = logging.getLogger("reconciler.service")
ANYBODY = Caller("", Role.VIEWER, frozenset())
FAILED = Refusal(Code.INTERNAL, "the service failed", "service.failed")
OF_WRITING = (StoreFullError, StoreReadOnlyError)
OF_THE_STORE = (StoreUnreachableError, StoreBusyError, *OF_WRITING)
MOST_CALLERS = 1024  # that are known without a look at the store
TURN_BYTES = 1 << 20  # of answers to reads; then the rest of the calls waits for its next turn
OUT_OF_RESOURCES = Refusal(
    Code.UNAVAILABLE, "the service is short of memory or files", "service.exhausted"
)


@dataclass(slots=True)
class Incoming:
    """One call as a transport took it in.

    Attributes:
        operation: Its name in the table.
        fields: JSON-shaped; or why they could not be read, which only a valid caller sees.
        headers: Every value of every header, by lower-case name.
        encode: Makes the body of an answer to a read. It is called on the thread that makes the
            answer, because it would block the event loop. Lists in it are JSON text already.
        in_parts: Whether they are encoded by ``encode`` itself instead; see ``as_part``.
        has_left: Returns whether its caller has gone away. Only batches ask: other calls are short.
        delivery: Ends once the network has taken the answer, or the caller went away.
        drop: Ends the delivery, because others need the room of an answer that is not taken.
        caller: Hash of its token, by which its caller is known; see ``caller_key``.
    """

    operation: str
    fields: Mapping[str, object] | Refusal
    headers: Headers
    encode: Callable[[Answer], bytes] | None = None
    in_parts: bool = False
    has_left: Callable[[], bool] = lambda: False
    delivery: ExitStack | None = None
    drop: Callable[[], None] = lambda: None
    caller: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.caller = caller_key(self.headers)


class Received(NamedTuple):
    """The result of a call.

    Attributes:
        caller: Name of the caller's token; empty where it is not known.
        body: The answer, encoded; empty where that is left to the transport.
    """

    caller: str
    answer: Answer | Refusal
    body: bytes = b""


class _Failure(NamedTuple):
    """An exception, and the refusal that callers receive for it.

    Attributes:
        may_be_of_one: Whether one of several calls may have caused it, and the others could be
            answered without that one. It is not in the log yet.
    """

    cause: Exception
    refusal: Refusal
    may_be_of_one: bool = False


class Dispatcher:
    """Takes calls from outside, on any thread."""

    def __init__(self, store: EventStore, engine: Engine, now: Callable[[], int]) -> None:
        self._store = store
        self._engine = engine
        self._now = now
        self._failing = ""  # the problem of the store that was logged, while it lasts
        self._can_be_read = True  # whether that problem keeps only writes from being carried out
        # Callers by the hash of their token. All that can change is whether the token is valid.
        self._callers: dict[bytes, Caller] = {}

    def load(self) -> None:
        """Load what calls need, before the first one comes."""
        self._engine.load()

    def receive(
        self, calls: Sequence[Incoming], seconds: float = math.inf, *, is_shared: bool = False
    ) -> list[Received]:
        """Answer calls; those that write share one commit. Nothing is raised.

        A call that fails, fails alone: nothing was written, so the halves of the calls are tried,
        each on its own. One failure among 256 calls costs eight more commits.

        If all calls read, there may be fewer answers than calls: after the first one, none is
        begun once ``seconds`` are over or the answers have ``TURN_BYTES``. If writes of several
        organizations share the commit, there may be none: something keeps one of them waiting, and
        each must be tried alone.
        """
        done = self._tried(lambda: self._received(calls, seconds, is_shared=is_shared), calls)
        if not isinstance(done, _Failure):
            return done
        if not done.may_be_of_one:
            return [Received("", done.refusal)] * len(calls)
        half = len(calls) // 2
        first = self.receive(calls[:half], seconds, is_shared=is_shared)
        is_over = len(first) < half
        return (
            first if is_over else first + self.receive(calls[half:], seconds, is_shared=is_shared)
        )

    def take_batch(self, call: Incoming) -> Orders | Received:
        """Return the orders of a batch, to be carried out; or why there are none."""
        done = self._tried(lambda: self._orders(call))
        return Received("", done.refusal) if isinstance(done, _Failure) else done

    def carry_out(self, orders: Orders) -> None:
        """Carry out the next orders of a batch in one commit. Nothing is raised.

        An order that fails, fails alone: of a commit that fails, half as many are tried next.
        """
        done = self._tried(lambda: self._engine.write_orders(orders))
        if not isinstance(done, _Failure):
            self._works(wrote=True)
        elif isinstance(done.cause, (*OF_THE_STORE, MemoryError, OSError)):
            orders.end(done.refusal)
        else:
            orders.fail(done.refusal)

    def _tried(self, work: Callable[[], T], calls: Sequence[Incoming] = ()) -> T | _Failure:
        """Return the result of work, or its failure; nothing is raised.

        A failure that one of several calls may have caused is logged once that call is tried
        alone.
        """
        try:
            return work()
        except Exception as failure:
            if len(calls) > 1 and not _is_of_all(failure, calls):
                return _Failure(failure, FAILED, may_be_of_one=True)
            refusal = self._refused(failure)
            if refusal is FAILED:  # a defect of ours must not take the server down
                LOG.exception("a call failed")
            return _Failure(failure, refusal)

    def answer_of(self, call: Incoming, orders: Orders) -> Received:
        """Return the answer of a batch that was carried out."""
        return _encoded(call, Received(orders.caller.name, orders.answer()))

    def _refused(self, failure: Exception) -> Refusal:
        """Return the refusal for a failure, without its details, which are logged."""
        if isinstance(failure, StoreError):
            self._fails(failure)
            return _store_refusal(failure)
        if isinstance(failure, (MemoryError, OSError)):
            LOG.warning("out of memory or file descriptors: %r", failure)
            return OUT_OF_RESOURCES
        return FAILED

    def organization_of(self, call: Incoming) -> str:
        """Return the organization a call is made for, as far as that is known without the store.

        It may be wrong: nothing may depend on it but speed.
        """
        if named := organization_named(call.headers):
            return named
        caller = self._callers.get(call.caller)
        return caller.only_organization if caller else ""

    def is_ready(self) -> bool:
        """Return whether the store can be read, and takes writes of this program."""
        try:
            self._store.require_writable()
            with self._store.snapshot() as view:
                can = bool(view.meta("instance"))
                require_current(view.meta(WRITERS))
        except StoreError as failure:
            self._fails(failure)
            return False
        self._works()
        return can

    def _fails(self, failure: StoreError) -> None:
        """Log what is wrong with the store; a problem of the store as a whole is logged once."""
        if self._failing != failure.problem:
            LOG.error("the store failed: %s. %s", failure.problem, failure.remedy)
        self._failing = failure.problem if isinstance(failure, OF_THE_STORE) else ""
        self._can_be_read = isinstance(failure, OF_WRITING)

    def _works(self, *, wrote: bool = False) -> None:
        """Log that a problem is over, which a read does not show of one that only writes have."""
        if self._failing and (wrote or not self._can_be_read):
            LOG.warning("the store can be used again")
            self._failing = ""

    def _received(
        self, calls: Sequence[Incoming], seconds: float, *, is_shared: bool
    ) -> list[Received]:
        """Answer calls; reads are answered from the same view that their tokens were found in.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        if any(map(_may_write, calls)):
            return self._written(calls, is_shared=is_shared)
        with self._store.snapshot() as view:
            known: dict[bytes, Caller] = {}
            # Lazy: a read that must wait for its next turn is checked again then.
            requests = (self._request(call, view, known) for call in calls)
            answers = self._read(view, zip(calls, requests, strict=True))
            answered = list(_until(answers, time.perf_counter() + seconds))
        self._works()
        return answered

    def _written(self, calls: Sequence[Incoming], *, is_shared: bool) -> list[Received]:
        """Answer calls, some of which write, from one commit."""
        judged = self._judged(calls)
        asked = [request for request in judged if isinstance(request, Request)]
        try:
            written = iter(self._engine.write(asked, is_shared=is_shared) if asked else ())
        except StoreBusyError:
            if is_shared:
                return []
            raise
        self._works(wrote=bool(asked))
        return [
            Received("", request)
            if isinstance(request, Refusal)
            else self._answered(request, next(written))
            for request in judged
        ]

    def _answered(self, request: Request, answer: Answer | Refusal) -> Received:
        if isinstance(answer, Refusal) and answer.code is Code.UNAUTHENTICATED:
            self._callers.pop(request.caller.token, None)  # the next call looks first
        return _received_from(request, answer)

    def _judged(self, calls: Sequence[Incoming]) -> list[Request | Refusal]:
        """Return the requests of calls that write, or why there are none.

        Callers that are known need no look at the store: the commit checks their tokens. But a
        reason to refuse a call is shown only to a caller whose token was found valid just now.
        """
        judged = self._requests(calls, None)
        if any(isinstance(each, Refusal) for each in judged):
            with self._store.snapshot() as view:
                view.hold_tokens({call.caller for call in calls})
                judged = self._requests(calls, view)
        return judged

    def _requests(
        self, calls: Sequence[Incoming], view: Snapshot | None
    ) -> list[Request | Refusal]:
        known: dict[bytes, Caller] = {}
        return [self._request(call, view, known) for call in calls]

    def _orders(self, call: Incoming) -> Orders | Received:
        with self._store.snapshot() as view:
            request = self._request(call, view, {})
        if isinstance(request, Refusal):
            return Received("", request)
        try:
            return self._engine.take_orders(request)
        except Refusal as refusal:
            return Received(request.caller.name, refusal)

    def _read(
        self, view: Snapshot, asked: Iterable[tuple[Incoming, Request | Refusal]]
    ) -> Iterator[Received]:
        """Answer calls that read, one after the other.

        A call that asks the same as the one before it gets the same answer, from the same view:
        several jobs with one token often ask for the same page at the same time.
        """
        before: Request | Refusal | None = None
        received = Received("", {})
        for call, request in asked:
            if isinstance(request, Refusal):
                received = Received("", request)
            elif not request.asks_the_same(before):
                (answer,) = self._engine.read(view, (request,))
                received = _encoded(call, _received_from(request, answer))
            before = request
            yield received

    def _request(
        self, call: Incoming, view: Snapshot | None, known: dict[bytes, Caller]
    ) -> Request | Refusal:
        try:
            caller = self._caller(call, view, known)
            if isinstance(call.fields, Refusal):
                return call.fields
            return Request(
                call.operation,
                call.fields,
                caller=caller,
                in_parts=call.in_parts,
                encode=call.encode,
                **header_values(call.headers),
            )
        except Refusal as refusal:
            return refusal

    def _caller(self, call: Incoming, view: Snapshot | None, known: dict[bytes, Caller]) -> Caller:
        """Return the caller of a call; without a view one that was known before.

        Raises:
            Refusal: it has no valid token, or is not known.
        """
        if not needs_token(call.operation):
            return ANYBODY
        caller = known.get(call.caller)
        if caller is not None:
            return caller
        token = bearer_token(call.headers)
        if view is None:
            caller = self._callers.get(call.caller)
            if caller is None:
                raise unauthenticated("the token is not known yet")
        else:
            caller = caller_of(view, token, self._now())
            if len(self._callers) >= MOST_CALLERS:
                self._callers = {}
            self._callers[caller.token] = caller
        known[call.caller] = caller
        return caller


def _may_write(call: Incoming) -> bool:
    return writes(call.operation) and not isinstance(call.fields, Refusal)


def _is_of_all(failure: Exception, calls: Sequence[Incoming]) -> bool:
    """Return whether a failure concerns every call, or may have come after the commit.

    A store that fails as a whole fails every call. Memory may run out after the commit, and then
    the calls must not be carried out again.
    """
    if isinstance(failure, (MemoryError, OSError)):
        return any(writes(call.operation) for call in calls)
    return isinstance(failure, OF_THE_STORE)


def _until(answers: Iterator[Received], end: float) -> Iterator[Received]:
    """Yield answers, and ask for no more once the time is over, or there are many bytes."""
    size = 0
    for answer in answers:
        yield answer
        size += len(answer.body)
        if size >= TURN_BYTES or time.perf_counter() > end:
            return


def _encoded(call: Incoming, received: Received) -> Received:
    """Return an answer to a read with its body, if the transport takes one."""
    if call.encode is None or received.body or isinstance(received.answer, Refusal):
        return received
    return received._replace(body=call.encode(received.answer))


def _received_from(request: Request, answer: Answer | Refusal) -> Received:
    body = answer.body if isinstance(answer, EncodedAnswer) else b""
    return Received(request.caller.name, answer, body)


def _store_refusal(failure: StoreError) -> Refusal:
    """Return that the store failed, without the cause, which is for the log of the operator."""
    if isinstance(failure, StoreFullError):
        return Refusal(Code.RESOURCE_EXHAUSTED, "the store is full", "store.full")
    if isinstance(failure, StoreBusyError):
        return Refusal(Code.UNAVAILABLE, "the store is busy", "store.busy")
    return store_unusable()
