"""Callers are admitted by their headers alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from reconciler.service.build import open_sqlite
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.callers import token_hash
from reconciler.service.operations.dispatch import Incoming, Received
from reconciler.service.transport.admission import admitted
from tests.running import prepare


def test_a_caller_is_admitted_and_nobody_else(tmp_path: Path) -> None:
    """By a token that the store knows; the caller is what stands for the token."""
    known = prepare(tmp_path / "identity.db")
    with closing(open_sqlite(tmp_path / "identity.db")) as service:

        async def answer(call: Incoming) -> Received:
            return service.dispatcher.receive([call])[0]

        def ask(values: Sequence[str]) -> bytes | str:
            try:
                return asyncio.run(admitted(answer, {"authorization": values}))
            except Refusal as refusal:
                return refusal.message

        token = known.tokens["viewer"]
        assert ask([f"Bearer {token}"]) == token_hash(token)
        assert ask([f"Bearer {token}x"]) == "the token is not known to this service"
        assert ask(["Basic x"]) == "the authorization header must be one bearer token"
        assert ask([]) == "a bearer token is needed: Authorization: Bearer TOKEN"


def test_a_store_that_fails_admits_nobody() -> None:
    """The caller is told what the service says of its store."""
    away = Refusal(Code.UNAVAILABLE, "the store cannot be used", "store.unavailable")

    async def answer(_: Incoming) -> Received:
        return Received("", away)

    with pytest.raises(Refusal) as refused:
        asyncio.run(admitted(answer, {"authorization": ["Bearer x"]}))
    assert refused.value is away
