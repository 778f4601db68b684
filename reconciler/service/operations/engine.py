"""Carrying out calls: who may, what is asked, once only, in a transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from time import monotonic
from typing import Any, TypeVar

from reconciler.resources.secret import Secret
from reconciler.service.domain.client_secret import hash_of
from reconciler.service.domain.refusal import (
    Code,
    Refusal,
    invalid,
    key_reused,
    not_allowed,
    object_gone,
    secret_gone,
)
from reconciler.service.eventstore.errors import ConflictError, StoreError, StreamConflictError
from reconciler.service.eventstore.port import EventStore, Snapshot, Transaction
from reconciler.service.eventstore.rows import ObjectRow, Record
from reconciler.service.operations import custody
from reconciler.service.operations.answers import made_id
from reconciler.service.operations.batch import HELD_SECONDS, Orders, Write, work_share, write_batch
from reconciler.service.operations.caller import least_role
from reconciler.service.operations.custody import KEPT, SHOWN_ONCE
from reconciler.service.operations.foresight import foreseen
from reconciler.service.operations.means import Batch, Means
from reconciler.service.operations.operation import Operation, handler_of, reader_of
from reconciler.service.operations.request import Request
from reconciler.service.operations.session import Reading, Writing, check_headers
from reconciler.service.operations.table import OPERATIONS, WRITE_BATCH, writes
from reconciler.service.operations.tokens import valid_token
from reconciler.service.projections.codec import canonical

TRIES = 5
REGENERATE = "RegenerateOIDCClientSecret"
CLAIMED = "secrets"  # answers that hold several secrets have them here

Answer = dict[str, Any]
T = TypeVar("T")


class Engine:
    """Carries out calls of operations on a store."""

    def __init__(self, store: EventStore, means: Means) -> None:
        self._store = store
        self._means = means
        self._work_share = 0.5  # of the time of a batch's commit, what its orders may take

    def load(self) -> None:
        """Load what calls need. A server that ran short of memory or files could not later."""
        for operation in OPERATIONS.values():
            handler_of(operation)
            reader_of(operation)
        with suppress(StoreError):
            self._means.seals.open(b"")

    def run(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls in their order; those that write share one commit.

        A call that is refused leaves no trace and keeps no other from being carried out.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        if any(request.operation == WRITE_BATCH for request in requests):
            return [answer for request in requests for answer in self._run_one(request)]
        if any(writes(request.operation) for request in requests):
            return self.write(requests)
        with self._store.snapshot() as view:
            return self.read(view, requests)

    def write(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls of which any may write.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        done = self._committed(requests, lambda write: [write(request) for request in requests])
        return done or [_in_the_way() for _ in requests]

    def take_orders(self, request: Request) -> Orders:
        """Return the orders of a batch, to be carried out.

        Raises:
            Refusal: the caller may write nothing, or the batch as a whole is malformed.
        """
        _permitted(request)
        return write_batch(request)

    def write_orders(self, orders: Orders, held_seconds: float = HELD_SECONDS) -> None:
        """Carry out the next orders of a batch in one commit, which takes about so long.

        The time that is left for the orders themselves is learned: a database is sent their
        rows at the commit, which takes as long again.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        began = worked = 0.0

        def work(write: Write) -> list[Any]:
            nonlocal began, worked
            began = monotonic()
            end = began + held_seconds * self._work_share
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

    def _committed(self, requests: Sequence[Request], work: Callable[[Write], list[T]]) -> list[T]:
        """Do work in one transaction; return what it returned.

        ``requests`` are those it is going to write, as far as they are known. It is done again
        where other writers got in the way. Where they always did, nothing is written and nothing
        returned.
        """
        unknown: dict[bytes, Refusal] = {}
        for _ in range(TRIES):
            with suppress(ConflictError):
                return self._committed_once(requests, work, unknown)
        return []

    def _committed_once(
        self,
        requests: Sequence[Request],
        work: Callable[[Write], list[T]],
        unknown: dict[bytes, Refusal],
    ) -> list[T]:
        """Do work in one transaction, in which calls of tokens that are not valid are refused.

        Raises:
            ConflictError: other writers got in the way, or tokens stopped being valid while the
                calls waited: these are in ``unknown`` now. Nothing was written.
        """
        with self._store.transaction() as tx:
            tx.foresee(foreseen(requests))
            batch = Batch()
            done = work(
                lambda request: (
                    unknown.get(request.caller.token) or self._written(tx, request, batch)
                )
            )
            custody.seal_batch(tx, batch, self._means)
            self._check_tokens(tx, requests, unknown)
        return done

    def _check_tokens(
        self, tx: Transaction, requests: Sequence[Request], unknown: dict[bytes, Refusal]
    ) -> None:
        """Look at the tokens again once no call waits for a lock any more."""
        now, before = self._means.now(), len(unknown)
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
            return handler_of(operation)(Reading(view, request, self._means, batch), asked)
        except Refusal as refusal:
            return refusal

    def _written(self, tx: Transaction, request: Request, batch: Batch) -> Answer | Refusal:
        if not writes(request.operation):
            return self._answered(tx, request, batch)
        try:
            operation, asked, text = _admitted(request)
            if not request.idempotency_key:
                answer = self._done(tx, request, batch, (operation, asked, text))
                custody.keep(tx, request, answer, batch, self._means)
                return _with_secret_shown(answer)
            return self._done_once(tx, request, batch, (operation, asked, text))
        except Refusal as refusal:
            batch.leases.clear()  # what was locked in an undone block is not any more
            return refusal

    def _done(
        self, tx: Transaction, request: Request, batch: Batch, what: tuple[Operation, Any, str]
    ) -> Answer:
        """Carry out a write, again if somebody else wrote meanwhile, or an id is in use."""
        operation, asked, text = what
        for _ in range(TRIES):
            try:
                with tx.savepoint():
                    call = Writing(tx, request, self._means, batch)
                    answer = handler_of(operation)(call, asked)
                    call.end()
            except StreamConflictError:
                batch.leases.clear()
                asked = reader_of(operation)(request.fields, text)  # reading may use it up
                continue
            return answer
        raise _in_the_way()

    def _done_once(
        self, tx: Transaction, request: Request, batch: Batch, what: tuple[Operation, Any, str]
    ) -> Answer:
        caller, key = request.caller.account, request.idempotency_key
        digest = _digest(request, what)
        now = self._means.now()
        known = tx.record(caller, key)
        if known is not None and known.expires_at > now:
            return self._replayed(tx, request, known, digest, batch)
        try:
            answer = self._done(tx, request, batch, what)
        except Refusal:
            known = tx.record(caller, key)
            if known is not None and known.expires_at > now:  # done elsewhere while we waited
                return self._replayed(tx, request, known, digest, batch)
            raise
        seal, slot = custody.keep(tx, request, answer, batch, self._means)
        kept = canonical({name: answer[name] for name in answer if name != SHOWN_ONCE})
        tie = _tie(digest, kept, seal, slot)
        tx.put_record(Record(caller, key, tie, kept, seal, slot, now + KEPT))
        return _with_secret_shown(answer)

    def _replayed(
        self, tx: Transaction, request: Request, known: Record, digest: bytes, batch: Batch
    ) -> Answer:
        """Return the first answer again, if it still holds.

        Raises:
            Refusal: another request had the key, the object is gone, or its secret is.
        """
        if known.digest != _tie(digest, known.answer, known.seal, known.slot):
            raise key_reused()
        answer: Answer = json.loads(known.answer)
        held = _held_still(tx, request, answer)
        if known.seal is None:
            return answer
        secret = custody.unsealed(tx, (known.seal, known.slot), batch, self._means)
        if held is None or hash_of(secret) != held.secret_hash:
            raise secret_gone()
        return {**answer, SHOWN_ONCE: secret.reveal()}


def _digest(request: Request, what: tuple[Operation, Any, str]) -> bytes:
    """Return the digest of what a request means: a default may be said, an own one be named."""
    operation, asked, text = what
    organization = request.organization or request.caller.only_organization
    meaning = asked.model_dump_json() if operation.request else text
    return sha256(f"{operation.name}\n{organization}\n{meaning}".encode()).digest()


def _held_still(tx: Transaction, request: Request, answer: Answer) -> ObjectRow | None:
    """Return the object that a repeated call made, or made a secret for; None for other calls.

    Raises:
        Refusal: the object is gone, or was renamed since it was made.
    """
    made = made_id(answer)
    object_id = made or (request.fields.get("appId") if request.operation == REGENERATE else "")
    if not object_id:
        return None
    held = tx.get_object(object_id)
    if held is None or (made and held.name != request.fields.get("name")):
        raise object_gone()
    if not request.caller.sees(held.organization):
        raise object_gone()
    return held


def _tie(asked: bytes, answer: str, seal: str | None, slot: int) -> bytes:
    """Return what ties an answer to what was asked: a damaged one is not given for it."""
    return sha256(asked + f"{seal} {slot} {answer}".encode()).digest()


def _in_the_way() -> Refusal:
    return Refusal(Code.ABORTED, "another request wrote at the same time", "write.conflict")


def _admitted(request: Request) -> tuple[Operation, Any, str]:
    """Return the operation of a call, its request, and the JSON text of its fields.

    Raises:
        Refusal: there is no such operation, the caller may not, or the request is malformed.
    """
    operation = _permitted(request)
    check_headers(request)
    text = _text(request) if operation.writes or operation.request else ""
    return operation, reader_of(operation)(request.fields, text), text


def _permitted(request: Request) -> Operation:
    """Return the operation of a call.

    Raises:
        Refusal: there is no such operation, or the caller may not.
    """
    operation = OPERATIONS.get(request.operation)
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


def _with_secret_shown(answer: Answer) -> Answer:
    """Return an answer as it leaves the service: here, and only here, a secret becomes text."""
    secret = answer.get(SHOWN_ONCE)
    if isinstance(secret, Secret):
        return {**answer, SHOWN_ONCE: secret.reveal()}
    if CLAIMED in answer:
        return {**answer, CLAIMED: [_with_secret_shown(claimed) for claimed in answer[CLAIMED]]}
    return answer
