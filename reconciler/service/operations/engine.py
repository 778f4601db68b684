"""Carrying out calls: who may, what is asked, once only, in a transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any

from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import (
    Code,
    Refusal,
    invalid,
    key_reused,
    not_allowed,
    secret_gone,
)
from reconciler.service.eventstore.errors import ConflictError, StoreError, StreamConflictError
from reconciler.service.eventstore.port import EventStore, Snapshot, Transaction
from reconciler.service.eventstore.rows import Record, SealRow
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.foresight import foreseen
from reconciler.service.operations.operation import Operation, handler_of, reader_of
from reconciler.service.operations.request import Request
from reconciler.service.operations.session import Batch, Means, Reading, Writing, check_headers
from reconciler.service.operations.table import OPERATIONS, writes
from reconciler.service.projections.codec import canonical

KEPT = 24 * 60 * 60 * MICROSECONDS
TRIES = 5
SHOWN_ONCE = "clientSecret"

Answer = dict[str, Any]


class Engine:
    """Carries out calls of operations on a store."""

    def __init__(self, store: EventStore, means: Means) -> None:
        self._store = store
        self._means = means

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
        if any(writes(request.operation) for request in requests):
            return self.write(requests)
        with self._store.snapshot() as view:
            return self.read(view, requests)

    def write(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls of which any may write.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        for _ in range(TRIES):
            with suppress(ConflictError):
                return self._committed(requests)
        return [_in_the_way() for _ in requests]

    def read(self, view: Snapshot, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Answer calls of which none writes from one view."""
        return [self._answered(view, request, Batch()) for request in requests]

    def _committed(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls in one transaction.

        Raises:
            ConflictError: other writers got in the way; nothing was written.
        """
        with self._store.transaction() as tx:
            tx.foresee(foreseen(requests))
            batch = Batch()
            answers = [self._written(tx, request, batch) for request in requests]
            self._seal(tx, batch)
        return answers

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
                return _with_secret_shown(self._done(tx, request, batch, (operation, asked, text)))
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
        operation, _, text = what
        caller, key = request.caller.name, request.idempotency_key
        digest = sha256(f"{operation.name}\n{request.organization}\n{text}".encode()).digest()
        now = self._means.now()
        known = tx.record(caller, key)
        if known is not None and known.expires_at > now:
            return self._replayed(tx, known, digest, batch)
        try:
            answer = self._done(tx, request, batch, what)
        except Refusal:
            known = tx.record(caller, key)
            if known is not None and known.expires_at > now:  # done elsewhere while we waited
                return self._replayed(tx, known, digest, batch)
            raise
        secret = answer.pop(SHOWN_ONCE, None)
        seal, slot = self._kept(secret, batch)
        kept = canonical(answer)
        tie = _tie(digest, kept, seal, slot)
        tx.put_record(Record(caller, key, tie, kept, seal, slot, now + KEPT))
        return _with_secret_shown({**answer, SHOWN_ONCE: secret}) if secret else answer

    def _kept(self, secret: Secret | None, batch: Batch) -> tuple[str | None, int]:
        """Put a secret among those that will be sealed at the commit; return where it is."""
        if secret is None:
            return None, 0
        if not batch.seal:
            batch.seal = self._means.identifiers.next()
        batch.secrets.append(secret)
        return batch.seal, len(batch.secrets) - 1

    def _replayed(self, tx: Transaction, known: Record, digest: bytes, batch: Batch) -> Answer:
        if known.digest != _tie(digest, known.answer, known.seal, known.slot):
            raise key_reused()
        answer: Answer = json.loads(known.answer)
        if known.seal is not None:
            answer[SHOWN_ONCE] = self._unsealed(tx, known.seal, batch)[known.slot].reveal()
        return answer

    def _unsealed(self, tx: Transaction, seal_id: str, batch: Batch) -> Sequence[Secret]:
        if seal_id == batch.seal:
            return batch.secrets
        seal = tx.seal(seal_id)
        secrets = self._means.seals.open(seal.sealed) if seal else None
        if secrets is None:
            raise secret_gone()
        return secrets

    def _seal(self, tx: Transaction, batch: Batch) -> None:
        now = self._means.now()
        if batch.secrets:
            sealed = self._means.seals.seal(batch.secrets)
            tx.put_seal(SealRow(batch.seal, sealed, now + KEPT))
        tx.expire(now)


def _tie(asked: bytes, answer: str, seal: str | None, slot: int) -> bytes:
    """Return what ties an answer to what was asked: a damaged one is not given for it."""
    return sha256(asked + f"{seal} {slot} {answer}".encode()).digest()


def _in_the_way() -> Refusal:
    return Refusal(Code.ABORTED, "somebody else wrote at the same time", "write.conflict")


def _admitted(request: Request) -> tuple[Operation, Any, str]:
    """Return the operation of a call, its request, and the JSON text of its fields.

    Raises:
        Refusal: there is no such operation, the caller may not, or the request is malformed.
    """
    operation = OPERATIONS.get(request.operation)
    if operation is None:
        raise Refusal(Code.UNIMPLEMENTED, "there is no such operation", "operation.unknown")
    if operation.permission and not request.caller.may(operation.permission):
        raise not_allowed(operation.permission)
    check_headers(request)
    text = _text(request) if operation.writes or operation.request else ""
    return operation, reader_of(operation)(request.fields, text), text


def _text(request: Request) -> str:
    try:
        return canonical(request.fields)
    except TypeError:
        raise invalid("request", "must be JSON") from None


def _with_secret_shown(answer: Answer) -> Answer:
    """Return an answer as it leaves the service: here, and only here, a secret becomes text."""
    secret = answer.get(SHOWN_ONCE)
    return {**answer, SHOWN_ONCE: secret.reveal()} if isinstance(secret, Secret) else answer
