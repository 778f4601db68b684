"""The calls of one transaction: checking and carrying them out, and each write only once.

A refused call leaves no trace in the transaction. A write under an idempotency key is carried out
once: a repeated call gets the first answer, with its secret, while what was made is still there.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import Kind
from reconciler.service.domain.client_secret import hash_of
from reconciler.service.domain.refusal import (
    Code,
    Refusal,
    in_the_way,
    invalid,
    key_reused,
    not_allowed,
    object_gone,
    secret_gone,
)
from reconciler.service.eventstore.errors import StreamConflictError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import ObjectRow, Record
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations import custody
from reconciler.service.operations.answers import Answer, made_id
from reconciler.service.operations.callers import least_role
from reconciler.service.operations.custody import (
    KEPT,
    OWED_BY,
    SHOWN_ONCE,
    Place,
    with_secret_shown,
)
from reconciler.service.operations.form import Asked
from reconciler.service.operations.operation import Operation
from reconciler.service.operations.request import Fields, Request, check_headers
from reconciler.service.operations.runtime import Batch, Runtime
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.table import operation_of, writes
from reconciler.service.projections.objects import canonical

TRIES = 5  # each is lost only where another writer has committed in the meantime


class _Admitted(NamedTuple):
    """A call that its caller may make."""

    operation: Operation
    request: Fields | Asked


class Commit:
    """A transaction under way. Its calls share what they look up and the secrets they make."""

    def __init__(self, tx: Transaction, runtime: Runtime, *, alone: bool = True) -> None:
        """Begin; a call whose secret cannot be sealed fails ``alone``, or all fail with it."""
        self._tx = tx
        self._runtime = runtime
        self._batch = Batch(alone=alone)

    def carry_out(self, request: Request) -> Answer | Refusal:
        """Carry out one call."""
        if not writes(request.operation):
            return answered(self._tx, request, self._runtime, self._batch)
        try:
            admitted = _admitted(request)
            if request.idempotency_key:
                return self._once(request, admitted)
            answer, _ = self._done(request, admitted)
            return with_secret_shown(answer)
        except Refusal as refusal:
            return refusal

    def seal(self) -> None:
        """Seal the secrets that its calls made, and drop what has expired."""
        custody.seal_batch(self._tx, self._batch, self._runtime)

    def _done(self, request: Request, admitted: _Admitted) -> tuple[Answer, Place]:
        """Carry out a write; again if another writer was faster, or an id is in use.

        Its secret is kept with those that the commit seals, at the place that is returned.
        """
        operation, asked = admitted
        for _ in range(TRIES):
            try:
                with self._tx.savepoint():
                    call = Writing(self._tx, request, self._runtime, self._batch)
                    answer: Answer = operation.handler(call, asked)
                    call.end()
                    custody.check_seal(call, answer)
            except StreamConflictError:
                asked = operation.read(request.fields)  # handlers use ``Fields`` up
                continue
            return answer, custody.keep(call, answer)
        raise in_the_way()

    def _once(self, request: Request, admitted: _Admitted) -> Answer:
        """Carry out a write under an idempotency key, or answer it again.

        The key is looked up a second time if the write is refused. Another server may have done
        it while this call waited for a lock, and then a create finds its own name taken.
        """
        asked = _digest(request, admitted)
        known = self._known(request)
        if known is None:
            try:
                return self._first(request, admitted, asked)
            except Refusal:
                known = self._known(request)
                if known is None:
                    raise
        return self._again(request, admitted.operation, known, asked)

    def _known(self, request: Request) -> Record | None:
        """Return the record of a call that was carried out before, unless it has expired."""
        known = self._tx.record(*_key(request))
        return known if known is not None and known.expires_at > self._runtime.now() else None

    def _first(self, request: Request, admitted: _Admitted, asked: bytes) -> Answer:
        """Carry out a write and keep its answer. The secret in it is kept in a seal only."""
        expires_at = self._runtime.now() + KEPT
        # The seal itself is put at the commit: here its id and the place in it are known.
        answer, (seal, slot) = self._done(request, admitted)
        kept = canonical({name: answer[name] for name in answer if name != SHOWN_ONCE})
        checksum = _checksum(asked, kept, seal, slot)
        self._tx.put(Record(*_key(request), checksum, kept, seal, slot, expires_at))
        return with_secret_shown(answer)

    def _again(self, request: Request, operation: Operation, known: Record, asked: bytes) -> Answer:
        """Return the first answer again, if it still holds.

        Raises:
            Refusal: another request had the key, the object is gone, or its secret is.
        """
        if known.digest != _checksum(asked, known.answer, known.seal, known.slot):
            raise key_reused()
        answer: Answer = json.loads(known.answer)
        held = _made_before(self._tx, request, operation, answer, has_secret=known.seal is not None)
        if known.seal is None:
            return answer
        secret = custody.unsealed(self._tx, (known.seal, known.slot), self._batch, self._runtime)
        if held is None or hash_of(secret) != held.secret_hash:
            raise secret_gone()
        return {**answer, SHOWN_ONCE: secret.reveal()}


def answered(view: Snapshot, request: Request, runtime: Runtime, batch: Batch) -> Answer | Refusal:
    """Answer one call that reads."""
    try:
        operation, asked = _admitted(request)
        answer: Answer = operation.handler(Reading(view, request, runtime, batch), asked)
    except Refusal as refusal:
        return refusal
    return answer


def permitted(request: Request) -> Operation:
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


def _admitted(request: Request) -> _Admitted:
    """Return the operation of a call and its request.

    Raises:
        Refusal: there is no such operation, the caller may not, or the request is malformed.
    """
    operation = permitted(request)
    check_headers(request)
    return _Admitted(operation, operation.read(request.fields))


def _key(request: Request) -> tuple[str, str]:
    """Return the name of a call's record: a key is the caller's own."""
    return request.caller.account, request.idempotency_key


def _digest(request: Request, admitted: _Admitted) -> bytes:
    """Return the digest of what a request means, its defaults and its organization filled in.

    Requests that mean the same have the same digest: a retry over another transport says defaults
    that the first call left out, or says them empty.
    """
    operation, asked = admitted
    organization = request.organization or request.caller.only_organization
    fields = request.fields if isinstance(asked, Fields) else asked.meaning()
    if operation.is_of_context:
        fields = {**fields, "context": json.loads(request.context or "{}")}
    try:
        meaning = canonical(fields)
    except TypeError:
        raise invalid("request", "must be JSON") from None
    return sha256(f"{operation.name}\n{organization}\n{meaning}".encode()).digest()


def _checksum(asked: bytes, answer: str, seal: str | None, slot: int) -> bytes:
    """Return the digest of request and stored answer, which detects corruption."""
    return sha256(asked + f"{seal} {slot} {answer}".encode()).digest()


def _made_before(
    tx: Transaction, request: Request, operation: Operation, answer: Answer, *, has_secret: bool
) -> ObjectRow | None:
    """Return the object that a repeated call made, or made a secret for; None for other calls.

    Raises:
        Refusal: the object is gone, or was renamed since it was made.
    """
    made = made_id(answer)
    named = operation.made(request.fields) if operation.made else ""
    object_id = made or named or (request.fields.get(OWED_BY) if has_secret else "")
    if not object_id:
        return None
    held = tx.get_object(object_id)
    if held is None or not request.caller.sees(held.organization):
        raise object_gone()
    if made and held.name != request.fields.get(KINDS[Kind(held.kind)].name_field):
        raise object_gone()
    if named and str(held.created) != answer["details"]["sequence"]:
        raise object_gone()  # one of the same id was made since
    return held
