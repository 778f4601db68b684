"""Who may send a request at all, judged by its headers before anything of its body is taken in."""

from __future__ import annotations

from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.operations.headers import Headers, bearer_token
from reconciler.service.operations.reception import Incoming
from reconciler.service.operations.tokens import token_hash
from reconciler.service.transport.observer import Answer

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
