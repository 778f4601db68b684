"""Carrying out calls: who may, what is asked, once only, in a transaction."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from reconciler.resources.call import WRITE_BATCH
from reconciler.service.domain.oidc_application import hash_of
from reconciler.service.domain.refusal import (
    Code,
    Refusal,
    invalid,
    key_reused,
    not_allowed,
    secret_gone,
    store_unusable,
)
from reconciler.service.eventstore.errors import (
    ConflictError,
    SealingError,
    StoreError,
    StreamConflictError,
)
from reconciler.service.eventstore.port import EventStore, Snapshot, Transaction
from reconciler.service.eventstore.rows import Record
from reconciler.service.operations import custody
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.batch import HELD_SECONDS, Orders, Write, work_share, write_batch
from reconciler.service.operations.callers import least_role, valid_token
from reconciler.service.operations.custody import KEPT, SHOWN_ONCE, with_secret_shown
from reconciler.service.operations.idempotency import digest, held_still, tie
from reconciler.service.operations.operation import Admitted, Operation
from reconciler.service.operations.prefetch import foreseen
from reconciler.service.operations.request import Request, check_headers
from reconciler.service.operations.runtime import Batch, Runtime
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.table import operation_of, operations, writes
from reconciler.service.projections.objects import canonical

TRIES = 5
T = TypeVar("T")
LOG = logging.getLogger("reconciler.service")


@dataclass(slots=True)
class _Met:
    """Causes of failed tries of a commit: the calls that caused them are refused in the next one.

    Attributes:
        unknown: Refusals of calls, by the hash of their token.
        unsealed: Refusal of calls that make a secret to be sealed, or None.
        alone: Whether calls that make a secret fail alone if it cannot be sealed.
    """

    alone: bool
    unknown: dict[bytes, Refusal] = field(default_factory=dict)
    unsealed: Refusal | None = None

    def cannot_seal(self, failure: SealingError) -> None:
        """Refuse calls that make a secret from now on; the log says why, once.

        Raises:
            SealingError: no call fails alone.
        """
        if not self.alone:
            raise failure
        LOG.error("the store failed: %s. %s", failure.problem, failure.remedy)
        self.unsealed = store_unusable()


class Engine:
    """Carries out calls of operations on a store."""

    def __init__(self, store: EventStore, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        self._work_share = 0.5  # of the time of a batch's commit, what its orders may take

    def load(self) -> None:
        """Load what calls need. A server that ran short of memory or files could not later."""
        operations()
        with suppress(StoreError):
            self._runtime.seals.open(b"")

    def run(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls in their order; those that write share one commit.

        A call that is refused leaves no trace and keeps no other from being carried out.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        if any(request.operation == WRITE_BATCH for request in requests):
            return [answer for request in requests for answer in self._run_one(request)]
        if any(writes(request.operation) for request in requests):
            return self.write(requests, alone=False)
        with self._store.snapshot() as view:
            return self.read(view, requests)

    def write(self, requests: Sequence[Request], *, alone: bool = True) -> list[Answer | Refusal]:
        """Carry out calls of which any may write.

        Calls of one caller fail together, with the cause, if a secret cannot be sealed. Those of
        many callers fail ``alone``.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        done = self._committed(
            requests, lambda write: [write(request) for request in requests], alone=alone
        )
        return done or [_in_the_way() for _ in requests]

    def take_orders(self, request: Request) -> Orders:
        """Return the orders of a batch, to be carried out.

        Raises:
            Refusal: the caller may write nothing, or the batch as a whole is malformed.
        """
        _permitted(request)
        return write_batch(request, operation_of)

    def write_orders(self, orders: Orders) -> None:
        """Carry out the next orders of a batch in one commit, of about ``HELD_SECONDS``.

        The time that is left for the orders themselves is learned: a database is sent their
        rows at the commit, which takes as long again.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        began = worked = 0.0

        def work(write: Write) -> list[Any]:
            nonlocal began, worked
            began = monotonic()
            end = began + HELD_SECONDS * self._work_share
            done = orders.tried(write, lambda: monotonic() >= end)
            worked = monotonic() - began
            return done

        done = self._committed(orders.ahead(), work)
        if done:
            orders.add(done)
            self._work_share = work_share(worked, monotonic() - began)
        else:
            orders.end(_in_the_way())

    def _run_one(self, request: Request) -> list[Answer | Refusal]:
        """Carry out one call; a batch of orders in as many commits as it takes."""
        if request.operation != WRITE_BATCH:
            return self.run((request,))
        try:
            orders = self.take_orders(request)
        except Refusal as refusal:
            return [refusal]
        while not orders.are_done:
            self.write_orders(orders)
        return [orders.answer()]

    def read(self, view: Snapshot, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Answer calls of which none writes from one view."""
        return [self._answered(view, request, Batch()) for request in requests]

    def _committed(
        self, requests: Sequence[Request], work: Callable[[Write], list[T]], *, alone: bool = True
    ) -> list[T]:
        """Do work in one transaction; return what it returned.

        ``requests`` are those it is going to write, as far as they are known. It is done again
        where other writers got in the way. Where they always did, nothing is written and nothing
        returned.
        """
        met = _Met(alone)
        for _ in range(TRIES):
            with suppress(ConflictError):
                return self._committed_once(requests, work, met)
        return []

    def _committed_once(
        self,
        requests: Sequence[Request],
        work: Callable[[Write], list[T]],
        met: _Met,
    ) -> list[T]:
        """Do work in one transaction, in which calls are refused that failed others before.

        Raises:
            ConflictError: other writers got in the way, tokens stopped being valid while the
                calls waited, or no secret can be sealed: see ``met``. Nothing was written.
        """
        with self._store.transaction() as tx:
            tx.foresee(foreseen(requests))
            batch = Batch(unsealed=met.unsealed)
            done = work(
                lambda request: (
                    met.unknown.get(request.caller.token) or self._written(tx, request, batch)
                )
            )
            self._seal(tx, batch, met)
            self._check_tokens(tx, requests, met.unknown)
        return done

    def _seal(self, tx: Transaction, batch: Batch, met: _Met) -> None:
        """Seal the secrets of a batch. Where that fails, calls that make one are refused."""
        try:
            custody.seal_batch(tx, batch, self._runtime)
        except SealingError as failure:
            met.cannot_seal(failure)
            raise ConflictError from failure

    def _check_tokens(
        self, tx: Transaction, requests: Sequence[Request], unknown: dict[bytes, Refusal]
    ) -> None:
        """Look at the tokens again once no call waits for a lock any more."""
        now, before = self._runtime.now(), len(unknown)
        for token in {request.caller.token for request in requests} - unknown.keys() - {b""}:
            try:
                valid_token(tx, token, now)
            except Refusal as refusal:
                unknown[token] = refusal
        if len(unknown) > before:
            raise ConflictError

    def _answered(self, view: Snapshot, request: Request, batch: Batch) -> Answer | Refusal:
        try:
            operation, asked, _ = _admitted(request)
            answer: Answer = operation.handler(Reading(view, request, self._runtime, batch), asked)
        except Refusal as refusal:
            return refusal
        return answer

    def _written(self, tx: Transaction, request: Request, batch: Batch) -> Answer | Refusal:
        if not writes(request.operation):
            return self._answered(tx, request, batch)
        try:
            admitted = _admitted(request)
            if not request.idempotency_key:
                answer = self._done(tx, request, batch, admitted)
                custody.keep(tx, request, answer, batch, self._runtime)
                return with_secret_shown(answer)
            return self._done_once(tx, request, batch, admitted)
        except Refusal as refusal:
            batch.leases.clear()  # what was locked in an undone block is not any more
            return refusal

    def _done(self, tx: Transaction, request: Request, batch: Batch, admitted: Admitted) -> Answer:
        """Carry out a write; again if another writer was faster, or an id is in use."""
        operation, asked, text = admitted
        for _ in range(TRIES):
            try:
                with tx.savepoint():
                    call = Writing(tx, request, self._runtime, batch)
                    answer: Answer = operation.handler(call, asked)
                    call.end()
                    custody.check_seal(request, answer, batch)
            except StreamConflictError:
                batch.leases.clear()
                asked = operation.read(request.fields, text)  # reading may use it up
                continue
            return answer
        raise _in_the_way()

    def _done_once(
        self, tx: Transaction, request: Request, batch: Batch, admitted: Admitted
    ) -> Answer:
        caller, key = request.caller.account, request.idempotency_key
        asked = digest(request, admitted)
        now = self._runtime.now()
        known = tx.record(caller, key)
        if known is not None and known.expires_at > now:
            return self._replayed(tx, request, known, asked, batch)
        try:
            answer = self._done(tx, request, batch, admitted)
        except Refusal:
            known = tx.record(caller, key)
            if known is not None and known.expires_at > now:  # done elsewhere while we waited
                return self._replayed(tx, request, known, asked, batch)
            raise
        seal, slot = custody.keep(tx, request, answer, batch, self._runtime)
        kept = canonical({name: answer[name] for name in answer if name != SHOWN_ONCE})
        tied = tie(asked, kept, seal, slot)
        tx.put_record(Record(caller, key, tied, kept, seal, slot, now + KEPT))
        return with_secret_shown(answer)

    def _replayed(
        self, tx: Transaction, request: Request, known: Record, asked: bytes, batch: Batch
    ) -> Answer:
        """Return the first answer again, if it still holds.

        Raises:
            Refusal: another request had the key, the object is gone, or its secret is.
        """
        if known.digest != tie(asked, known.answer, known.seal, known.slot):
            raise key_reused()
        answer: Answer = json.loads(known.answer)
        held = held_still(tx, request, answer)
        if known.seal is None:
            return answer
        secret = custody.unsealed(tx, (known.seal, known.slot), batch, self._runtime)
        if held is None or hash_of(secret) != held.secret_hash:
            raise secret_gone()
        return {**answer, SHOWN_ONCE: secret.reveal()}


def _in_the_way() -> Refusal:
    return Refusal(Code.ABORTED, "another request wrote at the same time", "write.conflict")


def _admitted(request: Request) -> Admitted:
    """Return the operation of a call, its request, and the JSON text of its fields.

    Raises:
        Refusal: there is no such operation, the caller may not, or the request is malformed.
    """
    operation = _permitted(request)
    check_headers(request)
    text = _text(request) if operation.writes or operation.request else ""
    return Admitted(operation, operation.read(request.fields, text), text)


def _permitted(request: Request) -> Operation:
    """Return the operation of a call.

    Raises:
        Refusal: there is no such operation, or the caller may not.
    """
    operation = operation_of(request.operation)
    if operation is None:
        raise Refusal(Code.UNIMPLEMENTED, "there is no such operation", "operation.unknown")
    if operation.permission and not request.caller.may(operation.permission):
        raise not_allowed(operation.permission, least_role(operation.permission))
    return operation


def _text(request: Request) -> str:
    try:
        return canonical(request.fields)
    except TypeError:
        raise invalid("request", "must be JSON") from None
