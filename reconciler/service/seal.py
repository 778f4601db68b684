"""Sealing what only the caller may read again. The only module that knows the age format.

The key is not in the store: a copy of the store alone gives no secret away.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from reconciler.resources.files import (
    NotRegularError,
    is_given_pipe,
    is_open_to_others,
    publish,
    read_start,
    write_private,
)
from reconciler.resources.secret import Secret
from reconciler.service.eventstore.errors import StoreError, StoreUnusableError

if TYPE_CHECKING:
    import pyrage

LOG = logging.getLogger("reconciler.service")
LONGEST = 10_000  # characters of a file with a key; a key has 75
_PUT_BACK = "Put the key back, or name another file with --seal-key-file."


class SealingKey:
    """Seals secrets, and opens what it sealed."""

    def __init__(self, identity: pyrage.x25519.Identity) -> None:
        self._identity = identity
        self._recipient = identity.to_public()

    @property
    def fingerprint(self) -> str:
        """Return a text that identifies this key, and gives nothing of it away."""
        return sha256(str(self._recipient).encode()).hexdigest()[:32]

    def ready(self) -> SealingKey:
        return self

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        """Seal secrets. The cost is per call: seal a whole batch at once."""
        import pyrage

        text = json.dumps([secret.reveal() if secret else None for secret in secrets])
        return bytes(pyrage.encrypt(text.encode(), [self._recipient]))

    def open(self, sealed: bytes) -> Sequence[Secret | None] | None:
        import pyrage

        try:
            text = pyrage.decrypt(sealed, [self._identity])
        except pyrage.DecryptError:
            return None
        return [None if value is None else Secret(value) for value in json.loads(text)]


class KeyFile:
    """A sealing key in a file that only its owner may read. It is made when first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: SealingKey | None = None

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        return self.ready().seal(secrets)

    def ready(self) -> SealingKey:
        """Return the key; make it if the file is missing."""
        if self._key is None:
            self._key = self.read() or self.make()
        return self._key

    def open(self, sealed: bytes) -> Sequence[Secret | None] | None:
        if self._key is None:
            self._key = self.read()
        return self._key.open(sealed) if self._key else None

    def hold(self, known: str) -> str:
        """Load the key, or make one where the file is missing; return its fingerprint.

        ``known`` is the fingerprint of the key that the store was served with before, or empty. It
        is returned where a key is missing and cannot be made now: that is tried again when there
        is a secret to seal, and all else can be served.

        Raises:
            StoreError: the key cannot be read, or is not the known one.
        """
        key = self.read()
        if key is None:
            return self._hold_new(known)
        if known not in {"", key.fingerprint}:
            raise self._unusable(
                "is not the one of this store",
                "Name the right file with --seal-key-file. If that is lost, remove this one: a new"
                " key is made, and the secrets that are sealed can no longer be delivered.",
            )
        self._key = key
        return key.fingerprint

    def _hold_new(self, known: str) -> str:
        try:
            self._key = self.make()
        except StoreError as failure:
            LOG.warning("%s. %s No secret can be sealed until then.", failure, failure.remedy)
            return known
        if known:
            LOG.warning(
                "the sealing key %s was missing and a new one was made: what the key before it"
                " sealed cannot be answered again",
                self._path,
            )
        return self._key.fingerprint

    def read(self) -> SealingKey | None:
        """Return the key, or None where there is no file.

        Raises:
            StoreError: the key cannot be read, or others can read it.
        """
        import pyrage

        try:
            written = self._written()
            return SealingKey(pyrage.x25519.Identity.from_str(written.strip()))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(
                f"cannot be read: {error.strerror}", "Make it readable for this user."
            ) from error
        except (ValueError, pyrage.IdentityError) as error:
            raise self._unusable("holds no key", _PUT_BACK) from error

    def _written(self) -> str:
        if is_given_pipe(self._path):
            return _read_once(self._path)
        try:
            content, status = read_start(self._path, LONGEST)
        except NotRegularError:
            raise self._unusable("is not a regular file", _PUT_BACK) from None
        if is_open_to_others(status):
            raise self._unusable("may be read by others", "Allow it to its owner only: 0600.")
        return content.decode("ascii")

    def make(self) -> SealingKey:
        """Make the file with a new key, unless another process is making it.

        Raises:
            StoreError: the key cannot be made.
        """
        import pyrage

        identity = pyrage.x25519.Identity.generate()
        try:
            with suppress(FileExistsError):
                write_private(self._path, f"{identity}\n".encode(), publish)
        except OSError as error:
            raise self._unusable(
                f"cannot be made: {error.strerror}", "Make its folder writable for this user."
            ) from error
        key = self.read()
        if key is None:  # the name is taken, by what cannot be opened
            raise self._unusable("is a link that leads nowhere", _PUT_BACK)
        return key

    def _unusable(self, problem: str, remedy: str) -> StoreError:
        return StoreError(f"the sealing key {self._path} {problem}", remedy)


@cache
def _read_once(pipe: Path) -> str:
    """Return what a pipe holds; the key is tried first and used later."""
    with pipe.open(encoding="ascii") as file:
        return file.read(LONGEST)


class NoKey:
    """The seals of a service without a key: nothing is sealed or opened."""

    def ready(self) -> NoReturn:
        """Refuse: a secret that cannot be answered again must not be made."""
        raise StoreError(
            "a client secret is to be sealed, and no key was named", "Give --seal-key-file FILE."
        )

    def seal(self, secrets: Sequence[Secret | None]) -> bytes:
        self.ready()

    def open(self, sealed: bytes) -> None:
        """Return nothing."""


def shared_key(path: Path, known: str, keep: Callable[[str], str]) -> SealingKey:
    """Return the key in a file, if it is the one that all servers of a store use.

    ``known`` is the fingerprint of that key, or empty as long as no server was started; then
    the file is made where it is missing, and its fingerprint handed to ``keep``, which returns
    the one that was kept in the end.

    Raises:
        StoreError: the file is missing, or holds another key.
    """
    file = KeyFile(path)
    key = file.read() or (None if known else file.make())
    if key is None:
        raise StoreUnusableError(
            f"the sealing key {path} is missing",
            "Copy it from another server of this database: all use the same.",
        )
    if (known or keep(key.fingerprint)) != key.fingerprint:
        raise StoreUnusableError(
            f"the sealing key {path} is not the one of this database",
            "Copy that of another server. To begin with a new key, see docs/postgresql.md.",
        )
    return key
