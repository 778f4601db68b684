"""Signed tokens of jobs, as a forge gives them: GitHub's at an address, GitLab's in a variable."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.types import Receive, Scope, Send

from tests.signing import Forge

LIFE = 300  # seconds


@dataclass
class IdTokens:
    """Signs tokens; as an ASGI application it gives them to jobs of GitHub."""

    issuer: str
    forge: Forge = field(default_factory=Forge)
    address: str = ""
    jobs: dict[str, Mapping[str, str]] = field(default_factory=dict)
    signed: list[str] = field(default_factory=list)

    def token(self, claims: Mapping[str, str]) -> str:
        """Return a token with claims, the audience among them."""
        now = self.forge.now
        known = {name: value for name, value in claims.items() if value}
        times = {"iat": now, "nbf": now, "exp": now + LIFE}
        self.signed.append(self.forge.signed({**known, **times, "iss": self.issuer}))
        return self.signed[-1]

    def variables(self, claims: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variables by which a job with these claims asks for tokens."""
        bearer = secrets.token_hex(16)
        self.jobs[bearer] = claims
        return {
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.address}/token?api-version=2",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": bearer,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Give a job a token for the audience that it names."""
        (audience,) = parse_qs(scope["query_string"].decode())["audience"]
        bearer = dict(scope["headers"])[b"authorization"].decode().removeprefix("bearer ")
        answer: Any = {"value": self.token({**self.jobs[bearer], "aud": audience})}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})
