"""Client secrets: how they are made and kept."""

from __future__ import annotations

import re

from reconciler.resources.secret import Secret
from reconciler.service.domain.client_secret import ALPHABET, hash_of, make_secret


def test_a_secret_is_letters_and_digits_each_equally_likely() -> None:
    """Bytes that would favour some letters are thrown away, and more are asked for."""
    asked = []

    def unlucky_at_first(count: int) -> bytes:
        asked.append(count)
        return bytes([255] * count) if len(asked) < 3 else bytes(range(count))

    secret = make_secret(unlucky_at_first)

    assert re.fullmatch("[A-Za-z0-9]{64}", secret.reveal())
    assert len(asked) == 3
    counts = [0] * 62
    for byte in range(248):
        letter = make_secret(bytes([byte]).__mul__).reveal()[0]
        counts[ALPHABET.index(letter)] += 1
    assert set(counts) == {4}


def test_a_secret_is_kept_as_its_hash() -> None:
    """SHA-256 in hexadecimal: a random secret needs no slow hash."""
    assert hash_of(Secret("a")) == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    )
