"""The reconciler's own token at a service, kept for one origin and sent to no other."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from reconciler.errors import AccessDeniedError, LocalFileError
from reconciler.resources.secret import Secret

MAX_FILE = 64 * 1024
HOW = "Give a token in RECONCILER_TOKEN or with --token-file, or a service user's --key-file."
_TOKEN = re.compile(r"[!-~]{1,8192}", re.ASCII)


class Response(Protocol):
    """The response of a service that was asked for a token."""

    @property
    def status(self) -> int:
        """Return its HTTP status."""
        ...

    @property
    def content(self) -> bytes:
        """Return its body."""
        ...


Fetch = Callable[[str, str, Mapping[str, str], bytes | None], Response | None]
"""Ask an address (verb, address, headers, body); None where no answer came."""


class Credentials(Protocol):
    """A way to have a token."""

    def bearer(self, fetch: Fetch) -> Secret:
        """Return a token that counts for the next minutes.

        Raises:
            AccessDeniedError: there is none, and none can be had.
        """
        ...

    def renew(self) -> bool:
        """Take note that the service does not accept the token; say if another can be had."""
        ...


class FixedToken(NamedTuple):
    """A token that was given from outside."""

    token: Secret

    def bearer(self, fetch: Fetch) -> Secret:
        """Return it."""
        return self.token

    def renew(self) -> bool:
        """Say that there is no other."""
        return False


class NoToken:
    """No token was given."""

    def bearer(self, fetch: Fetch) -> Secret:
        """Refuse, and say how to give one."""
        raise AccessDeniedError("the service needs a token, and none was given", remedy=HOW)

    def renew(self) -> bool:
        """Say that there is no other."""
        return False


def token_of(text: str, where: str) -> Secret:
    """Return the token in a text, which may end with one line break.

    Raises:
        AccessDeniedError: the text cannot be a token. It is not repeated.
    """
    token = text.removesuffix("\n").removesuffix("\r")
    if not _TOKEN.fullmatch(token):
        raise AccessDeniedError(
            f"what {where} holds cannot be a token",
            remedy="A token is one word of printable ASCII characters, and nothing else.",
        )
    return Secret(token)


def read_private(path: Path) -> str:
    """Return the text of a file that only its owner may read.

    Raises:
        LocalFileError: it cannot be read, or others may read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            content = file.read(MAX_FILE + 1) if stat.S_ISREG(status.st_mode) else None
    except OSError as failure:
        raise LocalFileError(
            f"cannot read {path}: {failure.strerror or failure}",
            remedy="Name a file that this user may read.",
        ) from failure
    if content is None or len(content) > MAX_FILE:
        raise LocalFileError(f"{path} is not a small, plain file", remedy="Name the file itself.")
    if status.st_mode & 0o077:
        raise LocalFileError(
            f"{path} can be read by others (mode {status.st_mode & 0o777:04o})",
            remedy=f"It holds a secret: run `chmod 600 {path}`.",
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise LocalFileError(f"{path} is not a text file", remedy="Name the file itself.") from None
