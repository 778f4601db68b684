"""The token endpoint of OAuth, and the document that leads to it (OpenID Connect discovery).

It takes forms and answers in the words of OAuth, as the standards have it (RFC 6749, 7523, 8693).
Every token that is refused gets the same answer. The reason is in the log, with the id of the
request.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from reconciler.resources.call import JsonObject
from reconciler.service.domain.refusal import Code, Refusal
from reconciler.service.keyless.exchange import Exchange, Given
from reconciler.service.keyless.signatures import SignedTokenError
from reconciler.service.operations.dispatch import FAILED
from reconciler.service.operations.texts import json_bytes
from reconciler.service.transport.asgi import Receive, Scope, Send
from reconciler.service.transport.http_messages import (
    OF_JSON,
    HttpAnswer,
    answer_of,
    content_type,
    json_answer,
    read_headers,
    read_pairs,
    send_answer,
    wrong_verb,
)
from reconciler.service.transport.intake import Body, CallerLeftError, Intake, connection_of
from reconciler.service.transport.limits import MAX_FORM
from reconciler.service.transport.observer import Observer
from reconciler.service.transport.pages import DISCOVERY, TOKENS

LOG = logging.getLogger("reconciler.tokens")
FORM = "application/x-www-form-urlencoded"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT_PROFILE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TYPE = "urn:ietf:params:oauth:token-type:"
_SIGNED = {f"{_TYPE}id_token", f"{_TYPE}jwt"}
REFUSED = "the token is refused; the log of the service says why, by the id of this request"


class _OAuthError(Exception):
    """A form that asks for nothing that can be given; no token was looked at."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        self.description = description


class TokenEndpoint:
    """The application that answers ``pages.TOKEN_PATHS``."""

    def __init__(self, exchange: Exchange, observer: Observer, intake: Intake) -> None:
        self._exchange = exchange
        self._observer = observer
        self._intake = intake
        self._grants: Mapping[str, Callable[[Mapping[str, str]], Awaitable[JsonObject]]] = {
            EXCHANGE: self._for_issuer,
            JWT_PROFILE: self._for_machine,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["raw_path"].decode("latin-1")
        with self._observer.call("token", path) as seen:
            seen.code = int(Code.INTERNAL)  # until there is an answer
            try:
                code, answer = await self._answered(scope, receive, path, seen.request_id)
            except CallerLeftError:
                return
            seen.code, seen.status = code, answer.status
            await send_answer(send, answer, seen.request_id)

    async def _answered(
        self, scope: Scope, receive: Receive, path: str, request_id: str
    ) -> tuple[int, HttpAnswer]:
        """Return an answer, and the code that it has in the log.

        Raises:
            CallerLeftError: the request has no end.
        """
        verb = "POST" if path == TOKENS else "GET"
        if scope["method"] not in {verb, verb.replace("GET", "HEAD")}:
            return Code.UNIMPLEMENTED, json_answer(wrong_verb({verb}))
        if path == DISCOVERY:
            return 0, json_answer(self._discovery())
        headers = read_headers(scope)
        try:
            given = await self._intake.take_form(
                Body(headers, MAX_FORM),
                receive,
                connection_of(scope),
                lambda content: self._given(_form(headers, content)),
            )
            return 0, json_answer(given)
        except _OAuthError as failure:
            return Code.INVALID_ARGUMENT, _refused(failure.error, failure.description)
        except SignedTokenError as failure:
            LOG.warning("a token was refused (request_id=%s): %s", request_id, failure)
            return Code.UNAUTHENTICATED, _refused("invalid_grant", REFUSED)
        except CallerLeftError:
            raise
        except Refusal as failure:
            refusal = failure
        except Exception:  # a defect of ours must not take the connection down
            LOG.exception("a token request failed (request_id=%s)", request_id)
            refusal = FAILED
        return refusal.code, json_answer(refusal)

    def _discovery(self) -> JsonObject:
        origin = self._exchange.origin
        return {
            "issuer": origin,
            "token_endpoint": origin + TOKENS,
            "grant_types_supported": list(self._grants),
            "token_endpoint_auth_methods_supported": ["none"],
            "response_types_supported": [],
        }

    async def _given(self, form: Mapping[str, str]) -> JsonObject:
        """Return the answer of a form.

        Raises:
            _OAuthError: it asks for something else.
            SignedTokenError: its token is refused.
            Refusal: the store failed.
        """
        grant = self._grants.get(form.get("grant_type", ""))
        if grant is None:
            raise _OAuthError("unsupported_grant_type", f"grant_type must be {EXCHANGE}, or "
                              f"{JWT_PROFILE} for a machine")  # fmt: skip
        return await grant(form)

    async def _for_issuer(self, form: Mapping[str, str]) -> JsonObject:
        if form.get("subject_token_type") not in _SIGNED:
            raise _OAuthError("invalid_request", f"subject_token_type must be {_TYPE}id_token")
        if "actor_token" in form:
            raise _OAuthError("invalid_request", "actor_token: not supported")
        given = await self._exchange.for_issuer(_required(form, "subject_token"))
        return {**_answer(given), "issued_token_type": f"{_TYPE}access_token"}

    async def _for_machine(self, form: Mapping[str, str]) -> JsonObject:
        return _answer(await self._exchange.for_machine(_required(form, "assertion")))


def _answer(given: Given) -> JsonObject:
    # The one place where a short token is shown: to the caller that it was made for.
    return {
        "access_token": given.token.reveal(),
        "token_type": "Bearer",
        "expires_in": given.seconds,
    }


def _required(form: Mapping[str, str], name: str) -> str:
    if not form.get(name):
        raise _OAuthError("invalid_request", f"{name} is required")
    return form[name]


def _form(headers: Mapping[str, list[str]], content: bytes | None) -> Mapping[str, str]:
    """Return the fields of a form.

    Raises:
        _OAuthError: it is none, is too long, or has a field twice.
    """
    if content is None:
        raise _OAuthError("invalid_request", f"a form must be at most {MAX_FORM} bytes long")
    if content_type(headers) != FORM or "content-encoding" in headers:
        raise _OAuthError("invalid_request", f"content-type: must be {FORM}")
    try:
        form, twice = read_pairs(content)
    except ValueError:
        raise _OAuthError("invalid_request", "the form cannot be read") from None
    if twice:
        raise _OAuthError("invalid_request", "a field stands in the form twice")
    return form


def _refused(error: str, description: str) -> HttpAnswer:
    words = {"error": error, "error_description": description}
    return answer_of(400, json_bytes(words), *OF_JSON)
