"""Client secrets: how one is made, and what is kept of it."""

from __future__ import annotations

import string
from collections.abc import Callable
from hashlib import sha256

from reconciler.resources.secret import Secret

LENGTH = 64  # characters
ALPHABET = string.ascii_letters + string.digits

# Bytes below the greatest multiple of 62 pick a letter, the others are thrown away: so every
# letter is equally likely.
_USABLE = 256 - 256 % len(ALPHABET)
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_THROWN_AWAY = bytes(range(_USABLE, 256))


def make_secret(random_bytes: Callable[[int], bytes]) -> Secret:
    """Return a new secret: 64 letters and digits, 381 random bits."""
    letters = b""
    while len(letters) < LENGTH:
        letters += random_bytes(LENGTH + 16).translate(_LETTERS, _THROWN_AWAY)
    return Secret(letters[:LENGTH].decode("ascii"))


def hash_of(secret: Secret) -> str:
    """Return what is kept of a secret. It is random, so a fast hash is the right one."""
    return sha256(secret.reveal().encode("ascii")).hexdigest()
