"""The exchange of a signed token for a short token of this service (RFC 8693, RFC 7523).

Rules are looked up by the issuer before anything else is done. What a token claims is compared
with them before any key is fetched. The reason of a refusal goes to the log alone: a caller could
learn from it what the next attempt needs.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import NamedTuple, TypeVar

from reconciler.resources.secret import Secret
from reconciler.service.domain.refusal import store_unusable
from reconciler.service.domain.trust import (
    EDITOR,
    ISSUER,
    MACHINE,
    differing,
    public_keys,
    role_given,
    verified_facts,
)
from reconciler.service.eventstore.errors import ConflictError, StoreError
from reconciler.service.eventstore.port import EventStore
from reconciler.service.eventstore.rows import PassRow, TrustRow
from reconciler.service.keyless.issuers import Issuers
from reconciler.service.keyless.signatures import (
    LONGEST_ASSERTION,
    OF_MACHINES,
    SKEW,
    SignedToken,
    SignedTokenError,
    check_signature,
    read_signed,
    wrong_service,
    wrong_times,
)
from reconciler.service.operations.answers import MICROSECONDS
from reconciler.service.operations.callers import (
    new_token,
    organizations_of,
    token_hash,
    writer_name,
)
from reconciler.service.operations.trust import claims_of

LOG = logging.getLogger("reconciler.tokens")
LIFE = 900  # seconds
THREADS = 4
TRIES = 3
LONGEST_REASON = 2000  # characters
LONGEST_FACT = 500  # characters; each event of the caller has every fact
T = TypeVar("T")


class Given(NamedTuple):
    """A short token, and the seconds for which it counts."""

    token: Secret
    seconds: int


class Exchange:
    """Gives short tokens of a store. It is used on one event loop."""

    def __init__(
        self,
        store: EventStore,
        origin: str,
        issuers: Issuers,
        now: Callable[[], int],
    ) -> None:
        """Give tokens under the name ``origin``; ``now`` is in microseconds since the epoch."""
        self.origin = origin
        self._store = store
        self._issuers = issuers
        self._now = now
        # The store is waited for: on threads of its own, so that calls have all of theirs.
        self._threads = ThreadPoolExecutor(THREADS, "tokens")

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def for_issuer(self, text: str) -> Given:
        """Return a token for one that an issuer signed.

        Raises:
            SignedTokenError: it is refused.
            Refusal: the store failed, or too many callers wait for the keys of its issuer.
        """
        token = read_signed(text)
        rules = await self._rules(token, ISSUER)
        met = [rule for rule in rules if not self._problems(token, rule)]
        if not met:
            why = (f"rule {rule.name}: {', '.join(self._problems(token, rule))}" for rule in rules)
            raise SignedTokenError("; ".join(why)[:LONGEST_REASON])
        problem = SignedTokenError("no rule was met")
        signed = []
        for rule in met:
            try:
                await self._check_signature(token, rule)
            except SignedTokenError as failure:
                problem = failure
            else:
                signed.append(rule)
        if not signed:
            raise problem
        return await self._given(token, chosen(signed, token))

    async def for_machine(self, text: str) -> Given:
        """Return a token for a statement that a machine signed itself. Raises as the other does."""
        token = read_signed(text, OF_MACHINES)
        (rule,) = await self._rules(token, MACHINE)
        for problem in self._problems(token, rule):
            raise SignedTokenError(problem)
        await self._check_signature(token, rule)
        return await self._given(token, rule)

    async def _rules(self, token: SignedToken, kind: str) -> Sequence[TrustRow]:
        """Return the rules of a kind that count for the issuer of a token: one or more."""

        def look() -> Sequence[TrustRow]:
            with self._store.snapshot() as view:
                return view.trusts_of(token.issuer)

        now = self._now()
        rules = [
            rule
            for rule in (await self._on_thread(look) if token.issuer else ())
            if rule.kind == kind and not has_ended(rule, now)
        ]
        if not rules:
            raise SignedTokenError(f"no {kind} is known as {token.issuer!r:.200}")
        return rules

    def _problems(self, token: SignedToken, rule: TrustRow) -> Sequence[str]:
        return problems(token, rule, self.origin, self._now() // MICROSECONDS)

    async def _check_signature(self, token: SignedToken, rule: TrustRow) -> None:
        if rule.keys:
            own = rule.keys.encode()
            await self._on_thread(lambda: check_signature(token, public_keys(own)))
        else:
            keys = await self._issuers.keys(rule.issuer, rule.authority, token.key_id)
            await self._on_thread(partial(check_signature, token, keys))

    async def _given(self, token: SignedToken, rule: TrustRow) -> Given:
        """Keep a new short token, unless the signed one was used and may be only once."""
        made = new_token(os.urandom)
        row = new_pass(token, rule, made, self._now())
        await self._on_thread(partial(self._keep, row))
        LOG.info("a token was given to %s: %s", writer_name(rule), row.verified)
        return Given(made, (row.expires_at - self._now()) // MICROSECONDS)

    def _keep(self, row: PassRow) -> None:
        for _ in range(TRIES):
            with suppress(ConflictError):  # another server exchanged it, or wrote elsewhere
                self._keep_once(row)
                return
        raise SignedTokenError("other writers got in the way")

    def _keep_once(self, row: PassRow) -> None:
        with self._store.transaction() as tx:
            rule = tx.trust(row.rule)
            if rule is None or rule.id != row.rule_id:
                raise SignedTokenError("its rule was removed just now")
            if row.used is not None and tx.is_used(row.used):
                raise SignedTokenError("it was exchanged before, and its rule allows that once")
            tx.put(row)
            tx.expire(self._now())

    async def _on_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except StoreError as failure:
            LOG.warning("the store failed: %s. %s", failure.problem, failure.remedy)
            raise store_unusable() from failure


def chosen(rules: Sequence[TrustRow], token: SignedToken) -> TrustRow:
    """Return the rule that counts, of those that a token meets.

    It is for the organizations of the oldest one, or for more. An admin of other organizations
    could else make a rule that takes a job away from its own.
    """
    oldest = min(rules, key=lambda rule: (rule.created_at, rule.id))
    least = organizations_of(oldest.organizations)
    given = [
        rule
        for rule in rules
        if (each := organizations_of(rule.organizations)) is None
        or (least is not None and least <= each)
    ]
    return min(given, key=lambda rule: (role_given(rule.role, token.claims) != EDITOR, rule.name))


def has_ended(rule: TrustRow, now: int) -> bool:
    """Return whether a rule has ended at a time in microseconds."""
    return 0 < rule.expires_at <= now


def problems(token: SignedToken, rule: TrustRow, origin: str, now: int) -> Sequence[str]:
    """Return why a token does not meet a rule, its signature apart; ``now`` is in seconds."""
    is_machine = rule.kind == MACHINE
    if has_ended(rule, now * MICROSECONDS):
        return ["the rule has ended"]
    names = {"exp", "iat"} if is_machine else {"exp", "iat", "nbf"}
    found = [
        wrong_times(token, now, names=names),
        wrong_service(token, origin),
        _wrong_life(token, now, is_machine=is_machine),
    ]
    accepted = claims_of(rule)
    for name in differing(accepted, token.claims):
        has = json.dumps(token.claims[name])[:200] if name in token.claims else "missing"
        wanted = " or ".join(map(json.dumps, accepted[name]))
        found.append(f"{name} is {has}, and the rule accepts {wanted}")
    return [*filter(None, found)]


def _wrong_life(token: SignedToken, now: int, *, is_machine: bool) -> str:
    """Return why a statement of a machine is not a login, or that a token has no time left."""
    ends, begins = token.claims.get("exp"), token.claims.get("iat")
    if type(ends) is not int or type(begins) is not int:
        return ""  # which is refused already
    if is_machine and token.claims.get("sub") != token.issuer:
        return "its subject is not its issuer"
    if is_machine and ends - begins > LONGEST_ASSERTION + SKEW:
        return "it counts for longer than an hour"
    if not is_machine and now - SKEW < ends <= now:  # the short token may not outlive it
        return f"it has ended (exp {ends}, now {now})"
    return ""


def new_pass(token: SignedToken, rule: TrustRow, made: Secret, now: int) -> PassRow:
    """Return the row of a short token; ``now`` is in microseconds.

    It never outlives a token of an issuer. A machine's own statement may be older.
    """
    ends = now + LIFE * MICROSECONDS
    signed_until = token.claims["exp"] * MICROSECONDS
    if rule.kind == ISSUER:
        ends = min(ends, signed_until)
    facts = verified_facts(rule.name, rule.preset, token.claims)
    run = facts.get("run") or facts.get("subject", "")
    owner = sha256(json.dumps([rule.id, token.issuer, run]).encode()).hexdigest()
    return PassRow(
        sha256=token_hash(made.reveal()),
        rule=rule.name,
        rule_id=rule.id,
        role=role_given(rule.role, token.claims),
        account=f"run:{owner}",
        verified=json.dumps({name: value[:LONGEST_FACT] for name, value in facts.items()}),
        used=token.digest if rule.once else None,
        expires_at=ends,
        kept_until=max(ends, signed_until + 2 * SKEW * MICROSECONDS) if rule.once else ends,
    )
