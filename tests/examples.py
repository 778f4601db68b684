"""Values and clocks that many tests give, where another one would do as well."""

from __future__ import annotations

import re

from reconciler.service.transport.ui import Drawing

NOON = 1_800_000_000_000_000
"""A time in microseconds since the epoch."""

TIME = re.compile(r"2027-01-15T08:00:00\.\d{6}Z")
"""What a clock shows that begins at noon, as a service writes it."""

NAMES_ALONE = Drawing(lambda name, _: name, "default-src 'none'")
"""Pages that are their names."""

CODE = "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"
SCRIPT = "function greet(ctx, api) {}"
JWT = {
    "jwtEndpoint": "https://login.example.com/jwt",
    "issuer": "https://login.example.com",
    "keysEndpoint": "https://login.example.com/keys",
    "headerName": "x-token",
}


class SetClock:
    """A clock that stands still until a test sets it."""

    def __init__(self, time: int = NOON) -> None:
        self.time = time

    def __call__(self) -> int:
        return self.time


class Clock(SetClock):
    """A clock that a test sets. It moves on by itself, a microsecond a look."""

    def __call__(self) -> int:
        self.time += 1
        return self.time
