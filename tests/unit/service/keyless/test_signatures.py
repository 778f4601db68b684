"""Signed tokens that anybody may send: whatever is in one, it is refused in one way."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reconciler.resources.secret import Secret
from reconciler.service.domain.trust import public_keys
from reconciler.service.eventstore.rows import TrustRow
from reconciler.service.keyless.exchange import new_pass, problems
from reconciler.service.keyless.signatures import (
    SignedTokenError,
    check_signature,
    read_signed,
)
from tests.signing import ORIGIN, Forge, encoded, part

NOW = 1_800_000_000
FORGE = Forge()
KEYS = public_keys(FORGE.keys.encode())
CLAIMS = {"sub": ["x"], "n": [1]}
RULE = TrustRow(
    "r", "7", "issuer", "editor", "", "https://i.example", json.dumps(CLAIMS), "github",
    FORGE.keys, "", 1, NOW, "admin", 0,
)  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = ("iss", "aud", "exp", "iat", "nbf", "sub", "n", "event_name", "ref", "head_ref", "run_id")


@given(st.text() | st.from_regex(r"[A-Za-z0-9_.=-]{0,80}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(SignedTokenError):
        read_signed(text)


@given(
    st.dictionaries(st.sampled_from(("alg", "kid", "crit", "typ", "b64", "jwk")), ANY),
    st.dictionaries(st.sampled_from(NAMES), ANY),
)
def test_any_header_and_claims_are_refused_and_never_a_defect(
    header: dict[str, Any], claims: dict[str, Any]
) -> None:
    """What passes every comparison still needs a signature."""
    usable = {"alg": "RS256", "kid": FORGE.rsa.id, **header}
    signed = f"{part(usable)}.{part(claims)}.{encoded(b'x' * 256)}"
    with suppress(SignedTokenError):
        token = read_signed(signed)
        for kind in ("issuer", "machine"):
            problems(token, RULE._replace(kind=kind), ORIGIN, NOW)
        check_signature(token, KEYS)
        raise AssertionError("a token that nobody signed was accepted")


@given(st.dictionaries(st.sampled_from(("sub", "event_name", "ref", "run_id", "actor")), ANY))
def test_what_is_kept_of_any_signed_token_can_be_stored(claims: dict[str, Any]) -> None:
    """An issuer that is trusted may sign odd texts, which others chose."""
    times = {"iss": "https://i.example", "exp": NOW + 60, "iat": NOW, "nbf": NOW}
    signed = f"{part({'alg': 'RS256', 'kid': '1'})}.{part({**claims, **times})}.eA"
    with suppress(SignedTokenError):  # numbers that no reader of JSON takes
        row = new_pass(read_signed(signed), RULE, Secret("t"), NOW * 1_000_000)
        assert row.verified.isascii()
        assert row.account.isascii()
        facts = json.loads(row.verified)
        assert all(isinstance(text, str) and text.isprintable() for text in facts.values())
        assert row.role in {"viewer", "editor"}


def test_a_signed_token_does_not_show_itself() -> None:
    """Whoever has its text could exchange it again."""
    text = FORGE.token()
    assert text.rpartition(".")[2] not in repr(read_signed(text))
