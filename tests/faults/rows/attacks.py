"""Attacks on the front door of a server, in every combination; a row for each attack."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from tests.acceptance.test_serve import make_certificate
from tests.faults.attack_run import LONG, a_field
from tests.faults.attacks import ATTACKS, Attack, combinations
from tests.faults.catalogue import Row, must
from tests.faults.invariants import check_store
from tests.running import running_server


def under_attack(dice: random.Random, folder: Path, *, attack: Attack) -> int:
    """Attack new servers weakly and strongly, with and without TLS (I13, I14)."""
    certificate, key = make_certificate(folder)
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    chosen = combinations(attack)
    dice.shuffle(chosen)
    for number, combination in enumerate(chosen):
        inner = folder / str(number)
        inner.mkdir()
        with (
            running_server(inner, *(tls if combination.is_tls else ())) as server,
            a_field() as field,
        ):
            outcome = field.run(server, combination, LONG)
        for invariant, finding in outcome.findings():
            must(holds=False, invariant=invariant, what=f"{finding}; {outcome}")
        check_store(inner / "identity.db")
    return len(chosen)


NAMES = {
    "A1": "HEADERS",
    "A2": "HEADERS, ended",
    "A3": "CONTINUATION",
    "A4": "CONTINUATION, empty",
    "A5": "header references",
    "A6": "reset",
    "A7": "PING",
    "A8": "SETTINGS",
    "A9": "WINDOW_UPDATE",
    "A10": "PRIORITY",
    "A11": "empty DATA",
    "A12": "unknown frames",
    "A13": "HEADERS, ended, not read",
    "A14": "PING, not read",
    "A15": "SETTINGS, not read",
    "A16": "reset, with a token",
    "A17": "half messages",
    "A18": "half messages, no token",
    "A19": "half bodies",
    "A20": "idle",
    "A21": "silent",
    "A22": "empty",
    "A23": "gone at once",
}
# The quick tier is ``test_attacks``, where one server stands many attacks.
ROWS = tuple(
    Row(name, f"attack: {attack}", partial(under_attack, attack=ATTACKS[attack]), 0, alone=True)
    for name, attack in NAMES.items()
)
