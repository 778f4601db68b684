"""Transactions of a store: reads share a view, writes a commit.

A commit with calls of a token that just ended is tried again, and refuses those calls.
See ``commit`` for the calls themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from time import monotonic
from typing import TypeVar

from reconciler.kinds.addresses import ADDRESSES
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import WRITE_BATCH, is_id
from reconciler.resources.ref import EXACT, fold
from reconciler.service.domain.refusal import Refusal, in_the_way
from reconciler.service.eventstore.errors import (
    ConflictError,
    StoreBusyError,
    StoreError,
)
from reconciler.service.eventstore.port import EventStore, Transaction
from reconciler.service.eventstore.rows import Lookups
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.batch import (
    HELD_SECONDS,
    Orders,
    Outcome,
    Write,
    work_share,
    write_batch,
)
from reconciler.service.operations.callers import caller_of_hash
from reconciler.service.operations.commit import TRIES, Commit, answered, permitted
from reconciler.service.operations.request import Request, is_encodable
from reconciler.service.operations.runtime import Batch, Runtime
from reconciler.service.operations.table import load_models, operation_of, writes

T = TypeVar("T")
LONGEST_LOOKED_UP = 300  # code points
_NAME_FIELDS = frozenset(row.name_field for kind, row in KINDS.items() if kind not in EXACT)
_ID_FIELDS = frozenset(re.findall(r"{(id|\w+Id)}", " ".join(chain(*ADDRESSES.values()))))
"""Fields that name an object in the addresses of operations."""


class Engine:
    """Carries out calls of operations on a store."""

    def __init__(self, store: EventStore, runtime: Runtime) -> None:
        self._store = store
        self._runtime = runtime
        # Of the time of a batch's commit, what its orders may take; the rest is for the store.
        # It is learned: of 80 ms the first orders get 40 ms.
        self._work_share = 0.5

    def load(self) -> None:
        """Load what calls need. A server that ran short of memory or files could not later."""
        load_models()
        with suppress(StoreError):
            self._runtime.seals.open(b"")

    def run(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out calls in their order; those that write share one commit.

        A call that is refused leaves no trace and keeps no other from being carried out. When this
        returns, what was written is durable.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        if any(request.operation == WRITE_BATCH for request in requests):
            return [self._run_one(request) for request in requests]
        if any(writes(request.operation) for request in requests):
            return self.write(requests, alone=False)
        with self._store.snapshot() as view:
            return self.read(view, requests)

    def _run_one(self, request: Request) -> Answer | Refusal:
        """Carry out one call; a batch of orders in as many commits as it takes."""
        if request.operation != WRITE_BATCH:
            return self.run((request,))[0]
        try:
            orders = self.take_orders(request)
        except Refusal as refusal:
            return refusal
        while not orders.are_done:
            self.write_orders(orders)
        return orders.answer()

    def read(self, view: Snapshot, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Answer calls that write nothing from one view of the store."""
        return [answered(view, request, self._runtime, Batch()) for request in requests]

    def write(
        self, requests: Sequence[Request], *, alone: bool = True, is_shared: bool = False
    ) -> list[Answer | Refusal]:
        """Carry out calls, any of which may write.

        Calls of one caller fail together, with the cause, if a secret cannot be sealed. Those of
        many callers fail ``alone``. Those of many organizations are ``is_shared``; see ``Lookups``.

        Raises:
            StoreBusyError: something keeps an organization waiting, or, where several share the
                commit, other writers were always faster; nothing was written.
            StoreError: the store failed; nothing was written.
        """
        done = self._committed(
            requests,
            lambda write: [*map(write, requests)],
            alone=alone,
            is_shared=is_shared,
        )
        if is_shared and not done:
            raise StoreBusyError("other writers were always faster", "Try each of the calls alone.")
        return done or [in_the_way()] * len(requests)

    def write_until_refused(self, requests: Sequence[Request]) -> list[Answer | Refusal]:
        """Carry out one or more writes in one commit, up to the first one that is refused.

        Later calls are not tried, and have no answer.

        Raises:
            StoreError: the store failed; nothing was written.
        """

        def work(write: Write) -> list[Answer | Refusal]:
            done: list[Answer | Refusal] = []
            for request in requests:
                done.append(write(request))
                if isinstance(done[-1], Refusal):
                    break
            return done

        return self._committed(requests, work, alone=False) or [in_the_way()]

    def take_orders(self, request: Request) -> Orders:
        """Return the orders of a batch, to be carried out.

        Raises:
            Refusal: the caller may write nothing, or the batch as a whole is malformed.
        """
        permitted(request)
        return write_batch(request, operation_of)

    def write_orders(self, orders: Orders) -> None:
        """Carry out the next orders of a batch in one commit, of about ``HELD_SECONDS``.

        The time that is left for the orders themselves is learned: a database is sent their
        rows at the commit, which takes as long again.

        Raises:
            StoreError: the store failed; nothing was written.
        """
        began = worked = 0.0

        def work(write: Write) -> list[Outcome]:
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
            orders.end(in_the_way())

    def _committed(
        self,
        requests: Sequence[Request],
        work: Callable[[Write], list[T]],
        *,
        alone: bool = True,
        is_shared: bool = False,
    ) -> list[T]:
        """Do work in one transaction; return its results.

        ``requests`` are those it is going to write, as far as they are known. Work that conflicts
        with other writers is done again, up to ``TRIES`` times. If all of them conflict, nothing
        is written and the results are empty.
        """
        asked = expected_lookups(requests)._replace(is_shared=is_shared)
        unknown: dict[bytes, Refusal] = {}
        for _ in range(TRIES):
            with suppress(ConflictError):
                return self._committed_once(asked, requests, work, unknown, alone=alone)
        return []

    def _committed_once(
        self,
        asked: Lookups,
        requests: Sequence[Request],
        work: Callable[[Write], list[T]],
        unknown: dict[bytes, Refusal],
        *,
        alone: bool,
    ) -> list[T]:
        """Do work in one transaction, which refuses the calls of the tokens in ``unknown``.

        Raises:
            ConflictError: other writers were faster, or ``unknown`` has new entries: tokens
                stopped being valid. Nothing was written.
        """
        with self._store.transaction(asked) as tx:
            commit = Commit(tx, self._runtime, alone=alone)
            done = work(
                lambda request: unknown.get(request.caller.token) or commit.carry_out(request)
            )
            # Once for all calls, because the cost is per seal. Refused calls have left no secret.
            commit.seal()
            # Last, because a call may have waited for a lock for seconds, in which its token was
            # revoked.
            self._check_tokens(tx, requests, unknown)
        return done

    def _check_tokens(
        self, tx: Transaction, requests: Sequence[Request], unknown: dict[bytes, Refusal]
    ) -> None:
        """Check the tokens again; add those that were revoked or have expired to ``unknown``.

        Raises:
            ConflictError: there is such a token.
        """
        now, before = self._runtime.now(), len(unknown)
        tokens = {request.caller.token for request in requests} - unknown.keys() - {b""}
        tx.hold_tokens(tokens)
        for token in tokens:
            try:
                caller_of_hash(tx, token, now)
            except Refusal as refusal:
                unknown[token] = refusal
        if len(unknown) > before:
            raise ConflictError


def expected_lookups(requests: Sequence[Request]) -> Lookups:
    """Return guesses of what calls will look up: their keys, objects, and names they may take.

    The guesses serve speed alone. Nothing has been checked yet, so what no store could hold is
    left out. Organizations are locked, so they are named for those who may write there only.
    """
    organizations, objects = set[str](), set[str]()
    records, names = set[tuple[str, str]](), set[tuple[str, str]]()
    for request in requests:
        organization = request.organization or request.caller.only_organization
        if _may_write(request, organization):
            organizations.add(organization)
        key = request.idempotency_key
        if key and _can_be(key):
            records.add((request.caller.account, key))
        ids = (organization, *map(request.fields.get, _ID_FIELDS & request.fields.keys()))
        parents = {each for each in ids if isinstance(each, str) and _can_be(each)}
        objects |= parents
        for name in map(request.fields.get, _NAME_FIELDS & request.fields.keys()):
            if isinstance(name, str) and _can_be(name):  # in one of these objects, or in none
                names.update((parent, fold(name)) for parent in parents or ("",))
    return Lookups(
        organizations=frozenset(organizations),
        records=frozenset(records),
        objects=frozenset(objects),
        names=frozenset(names),
        events=len(requests),
    )


def _may_write(request: Request, organization: str) -> bool:
    """Return whether a caller may make a call in an organization."""
    if not is_id(organization) or not request.caller.sees(organization):
        return False
    with suppress(Refusal):
        permitted(request)
        return True
    return False


def _can_be(text: str) -> bool:
    """Return whether a store could hold a text: no NUL, no lone surrogate, not endless."""
    return 0 < len(text) <= LONGEST_LOOKED_UP and "\0" not in text and is_encodable(text)
