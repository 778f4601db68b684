"""Trust rules: which claims a signed token must have, and what it is given for them.

A rule is made by an admin, and says what it accepts by values that the owner of a job cannot
choose. For the forges that are known, a preset says which claims those are.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.resources.origin import parse_origin
from reconciler.resources.strict_json import JsonError, read_object
from reconciler.service.domain.refusal import Refusal, invalid

Value: TypeAlias = str | int | bool
Claims: TypeAlias = Mapping[str, Sequence[Value]]
"""Names of claims with the values that are accepted."""

ISSUER, MACHINE = "issuer", "machine"
VIEWER, EDITOR = "viewer", "editor"
MAX_CLAIMS = 20  # names, and values of each
MAX_VALUE = 500  # characters of a name or value
MAX_KEYS_BYTES = 64 * 1024
MIN_RSA_BITS = 2048
_ALWAYS_JUDGED = frozenset({"iss", "aud", "exp", "iat", "nbf"})
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_KEPT = ("kty", "alg", "crv", "n", "e", "x", "y")  # all that a signature is checked with
_CURVES = {"P-256": 32, "P-384": 48}  # with the bytes of a coordinate


@dataclass(frozen=True, slots=True)
class Preset:
    """Claims of a forge.

    Attributes:
        needed: Claims that every rule must have.
        of_editors: Claims that a rule of an editor must have as well, each with the values that
            it may accept; none for any value.
        facts: Claims that are recorded with what a job writes, by the names of the record.
    """

    issuer: str
    needed: tuple[str, ...]
    of_editors: Mapping[str, frozenset[str]]
    facts: Mapping[str, str]


PRESETS: Mapping[str, Preset] = {
    # Jobs of other events run for a pull request, or with what is not merged yet, and some of them
    # with the default branch as ``ref``.
    "github": Preset(
        "https://token.actions.githubusercontent.com",
        ("repository_id", "repository_owner_id"),
        {
            "ref": frozenset(),
            "job_workflow_ref": frozenset(),
            "event_name": frozenset({"push", "workflow_dispatch", "schedule"}),
        },
        {"repository": "repository", "ref": "ref", "run": "run_id", "actor": "actor"},
    ),
    # A merge request has its source branch as ``ref``, so that no rule could name it for viewers.
    "gitlab": Preset(
        "https://gitlab.com",
        ("project_id",),
        {
            "ref_protected": frozenset({"true"}),
            "ref": frozenset(),
            "pipeline_source": frozenset({"push", "web", "schedule"}),
        },
        {"repository": "project_path", "ref": "ref", "run": "pipeline_id", "actor": "user_login"},
    ),
}
_NO_PRESET = Preset("", (), {}, {})

# Values of claims of jobs that run for a pull or merge request, or with what is not merged.
_OF_PULL_REQUESTS: Mapping[str, frozenset[str]] = {
    "event_name": frozenset(
        {
            "pull_request",
            "pull_request_target",
            "pull_request_review",
            "pull_request_review_comment",
            "issue_comment",
            "workflow_run",
            "merge_group",
        }
    ),
    "pipeline_source": frozenset({"merge_request_event", "external_pull_request_event"}),
}
_REFS = ("ref", "ref_path", "workflow_ref", "job_workflow_ref")
# A push to a branch of GitHub's merge queue is an event like any other.
_REFS_OF_PULL_REQUESTS = ("refs/pull/", "refs/merge-requests/", "refs/heads/gh-readonly-queue/")


def check_issuer(issuer: str, *, is_fetched: bool) -> None:
    """Accept the issuer of a rule; one whose keys are fetched is an https address.

    Raises:
        Refusal: the text cannot be the issuer of a rule.
    """
    if not 0 < len(issuer) <= MAX_VALUE or not (issuer.isascii() and issuer.isprintable()):
        raise invalid("issuer", f"must be 1 to {MAX_VALUE} printable characters of ASCII")
    if is_fetched:
        check_address("issuer", issuer)


def check_address(field: str, address: str) -> str:
    """Return the host of an address that keys may be fetched from: https, and no more than a path.

    Raises:
        Refusal: it is no such address.
    """
    scheme, separator, rest = address.partition("://")
    authority, slash, path = rest.partition("/")
    try:
        origin = parse_origin(scheme + separator + authority)
    except ValueError as failure:
        raise invalid(field, str(failure)) from None
    segments = path.removesuffix("/").split("/")
    is_plain = address.isascii() and address.isprintable() and not set("?#\\% ") & set(path)
    if origin.scheme != "https" or not is_plain:
        raise invalid(field, "must be an https address without query or fragment")
    if slash and path and any(part in {"", ".", ".."} for part in segments):
        raise invalid(field, "must not have empty parts or dots in its path")
    return origin.host


def check_claims(preset: str, issuer: str, role: str, claims: Claims) -> None:
    """Accept the claims of a rule for an issuer.

    Raises:
        Refusal: a claim is missing, accepts too much, or is none that a rule may have.
    """
    for name, known in PRESETS.items():
        if preset != name and (issuer + "/").startswith(known.issuer + "/"):
            raise invalid("preset", f"must be {name} for this issuer")
    if preset and preset not in PRESETS:
        raise invalid("preset", f"must be one of {', '.join(PRESETS)}")
    if not 1 <= len(claims) <= MAX_CLAIMS:
        raise invalid("claims", f"must be 1 to {MAX_CLAIMS} claims")
    for name, values in claims.items():
        _check_claim(name, values)
    _check_preset(preset, role, claims)


def _check_claim(name: str, values: Sequence[Value]) -> None:
    if name in _ALWAYS_JUDGED:
        raise invalid("claims", f"{name} is judged always, so no rule names it")
    if not 1 <= len(values) <= MAX_CLAIMS:
        raise invalid("claims", f"must have 1 to {MAX_CLAIMS} values each")
    for text in (name, *(value for value in values if isinstance(value, str))):
        if not 0 < len(text) <= MAX_VALUE or not text.isprintable():
            raise invalid("claims", f"must be printable texts of 1 to {MAX_VALUE} characters")


def _check_preset(preset: str, role: str, claims: Claims) -> None:
    known = PRESETS.get(preset, _NO_PRESET)
    of_editors = known.of_editors if role == EDITOR else {}
    missing = [name for name in (*known.needed, *of_editors) if name not in claims]
    if missing:
        raise invalid(
            "claims", f"a rule for {preset} with the role {role} also needs {', '.join(missing)}"
        )
    for name in (*known.needed, *known.of_editors):
        if any(not isinstance(value, str) for value in claims.get(name, ())):
            raise invalid(f"claims.{name}", f"must be a text, as {preset} has it")
    for name, accepted in of_editors.items():
        if accepted and not accepted.issuperset(map(str, claims[name])):
            words = ", ".join(sorted(accepted))
            raise invalid(f"claims.{name}", f"must be one of {words} for an editor")
    if role == EDITOR and any(is_for_pull_request({"ref": ref}) for ref in claims.get("ref", ())):
        raise invalid("claims.ref", "must not be of a pull request for an editor")


def differing(rule: Claims, claims: Mapping[str, object]) -> Sequence[str]:
    """Return the names of the claims in which a token differs from a rule: none where it meets it.

    Values are compared with their types: the text ``1``, the number 1 and true are three values.
    """
    return [
        name
        for name, accepted in rule.items()
        if not any(_is_same(value, claims.get(name)) for value in accepted)
    ]


def _is_same(one: Value, other: object) -> bool:
    return type(one) is type(other) and one == other


def role_given(role: str, claims: Mapping[str, object]) -> str:
    """Return the role that a token is given by a rule of a role: for a pull request, a viewer's."""
    return VIEWER if is_for_pull_request(claims) else role


def is_for_pull_request(claims: Mapping[str, object]) -> bool:
    """Return whether a job runs for a pull or merge request, or with what is not merged yet."""
    if any(str(claims.get(name)) in values for name, values in _OF_PULL_REQUESTS.items()):
        return True
    # The ref of a workflow stands behind an @.
    refs = (str(claims.get(name) or "").rpartition("@")[2] for name in _REFS)
    if any(ref.startswith(_REFS_OF_PULL_REQUESTS) for ref in refs):
        return True
    return bool(claims.get("head_ref")) or str(claims.get("sub")).endswith(":pull_request")


def verified_facts(rule: str, preset: str, claims: Mapping[str, object]) -> dict[str, str]:
    """Return what was verified of a token, as it is recorded with each write."""
    facts = PRESETS.get(preset, _NO_PRESET).facts
    found = {name: claims.get(claim) for name, claim in {"subject": "sub", **facts}.items()}
    return {
        "rule": rule,
        "issuer": str(claims["iss"]),
        **{name: _plain(value) for name, value in found.items() if isinstance(value, (str, int))},
    }


def _plain(value: str | int) -> str:
    """Return a value of a claim as it may be stored and shown: no control, no lone surrogate."""
    text = str(value)
    return text if text.isprintable() else ascii(text)


def public_keys(content: bytes) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys of a JSON Web Key Set that signatures are checked with, by their ids.

    Keys for other uses, and of other types than RSA and elliptic curves, are left out.

    Raises:
        Refusal: it is no such set, holds a private key, or has two keys of one id.
    """
    try:
        listed = read_object(content).get("keys")
    except JsonError as failure:
        raise _wrong_keys(str(failure)) from None
    if not isinstance(listed, list) or not all(isinstance(key, dict) for key in listed):
        raise _wrong_keys("must be a JSON Web Key Set: an object with a list of keys")
    if any(_PRIVATE & key.keys() for key in listed):
        raise _wrong_keys("must be public keys only: one of them is private")
    found: dict[str, Mapping[str, Any]] = {}
    for key in filter(_is_usable, listed):
        kept = {name: key[name] for name in _KEPT if name in key}
        if found.setdefault(key["kid"], kept) != kept:
            raise _wrong_keys("two keys have the same kid")
    if not found:
        raise _wrong_keys(
            f"has no key with a kid: RSA of {MIN_RSA_BITS} bits or more, P-256, P-384"
        )
    return found


def _is_usable(key: Mapping[str, Any]) -> bool:
    kid = key.get("kid")
    if not isinstance(kid, str) or not kid or key.get("use", "sig") != "sig":
        return False
    if key.get("kty") == "RSA":
        exponent = int.from_bytes(octets(key.get("e")), "big")
        modulus = int.from_bytes(octets(key.get("n")), "big")
        return modulus.bit_length() >= MIN_RSA_BITS and exponent > 1 and exponent % 2 == 1
    size = _CURVES.get(str(key.get("crv"))) if key.get("kty") == "EC" else None
    return size is not None and all(len(octets(key.get(name))) == size for name in ("x", "y"))


def octets(text: object) -> bytes:
    """Return the bytes that base64 of JSON Web Tokens and Keys says; none where it is not that."""
    if not isinstance(text, str):
        return b""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _wrong_keys(rule: str) -> Refusal:
    return invalid("keys", rule)
