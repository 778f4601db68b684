"""Trust rules: what meets one, and what a job of a pull request gets by it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from reconciler.service.domain.refusal import Refusal
from reconciler.service.domain.trust import (
    check_address,
    differing,
    is_for_pull_request,
    public_keys,
    role_given,
    verified_facts,
)
from reconciler.service_client.machine_keys import make_key
from tests.rows import each_row


@each_row(
    ("accepted", "claims", "expected"),
    [
        ({"a": ["x"]}, {"a": "x"}, []),
        ({"a": ["x", "y"]}, {"a": "y", "b": "z"}, []),
        ({"a": ["x"]}, {}, ["a"]),
        ({"a": ["x"]}, {"a": None}, ["a"]),
        ({"a": ["1"]}, {"a": 1}, ["a"]),
        ({"a": [1]}, {"a": "1"}, ["a"]),
        ({"a": [1]}, {"a": True}, ["a"]),
        ({"a": [1]}, {"a": 1.0}, ["a"]),
        ({"a": [True]}, {"a": 1}, ["a"]),
        ({"a": [True]}, {"a": True}, []),
        ({"a": ["x"]}, {"a": ["x"]}, ["a"]),
        ({"a": ["x"], "b": ["y"]}, {"a": "X", "b": "y "}, ["a", "b"]),
    ],
)
def test_claims_are_compared_exactly(accepted: Any, claims: Any, expected: list[str]) -> None:
    assert differing(accepted, claims) == expected


@each_row(
    "claims",
    [
        {"event_name": "pull_request"},
        {"event_name": "pull_request_target", "ref": "refs/heads/main"},
        {"event_name": "merge_group"},
        {"pipeline_source": "merge_request_event"},
        {"pipeline_source": "external_pull_request_event"},
        {"ref": "refs/pull/7/merge"},
        {"event_name": "push", "ref": "refs/heads/gh-readonly-queue/main/pr-7-0a1b"},
        {"ref_path": "refs/merge-requests/7/head"},
        {"job_workflow_ref": "a/b/.github/workflows/x.yml@refs/pull/7/merge"},
        {"workflow_ref": "a/b/.github/workflows/x.yml@refs/pull/7/merge"},
        {"head_ref": "feature"},
        {"sub": "repo:a/b:pull_request"},
    ],
)
def test_a_job_of_a_pull_request_is_known_by_any_sign(claims: dict[str, str]) -> None:
    assert is_for_pull_request(claims)
    assert role_given("editor", claims) == role_given("viewer", claims) == "viewer"


@each_row(
    "claims",
    [
        {},
        {"event_name": "push", "ref": "refs/heads/main", "head_ref": "", "base_ref": ""},
        {"event_name": ["pull_request"]},
        {"pipeline_source": "push", "ref": "refs-pull"},
        {"job_workflow_ref": "a/b/.github/workflows/pull.yml@refs/heads/main"},
    ],
)
def test_other_jobs_have_the_role_of_their_rule(claims: dict[str, Any]) -> None:
    assert role_given("editor", claims) == "editor"


def test_facts_are_those_of_the_preset() -> None:
    claims = {"iss": "i", "sub": "s", "repository": "a/b", "run_id": "7", "project_path": "c/d"}

    assert verified_facts("r", "github", claims) == {
        "rule": "r", "issuer": "i", "subject": "s", "repository": "a/b", "run": "7",
    }  # fmt: skip
    assert verified_facts("r", "", claims) == {"rule": "r", "issuer": "i", "subject": "s"}


def test_facts_can_be_stored_and_shown_whatever_a_claim_holds() -> None:
    claims = {"iss": "i", "sub": "a\0b\ud800\n", "repository": ["x"], "run_id": 7}

    assert verified_facts("r", "github", claims) == {
        "rule": "r", "issuer": "i", "subject": r"'a\x00b\ud800\n'", "run": "7",
    }  # fmt: skip


def numbers(bits: int) -> str:
    return base64.urlsafe_b64encode((1 << (bits - 1) | 1).to_bytes(bits // 8, "big")).decode()


RSA = {"kty": "RSA", "kid": "1", "n": numbers(2048).rstrip("="), "e": "AQAB"}
EC = json.loads(make_key("ES256").public)["keys"][0]


@each_row(
    "key",
    [
        {**RSA, "n": numbers(1024)},
        {**RSA, "kid": ""},
        {**RSA, "kid": 1},
        {**RSA, "use": "enc"},
        {**RSA, "e": "AQ"},
        {**RSA, "n": "$"},
        {**RSA, "n": None},
        {**EC, "crv": "P-521"},
        {**EC, "crv": "secp256k1"},
        {**EC, "x": "AA"},
        {"kty": "oct", "kid": "1"},
        {"kty": "OKP", "kid": "1", "crv": "Ed25519", "x": "AA"},
    ],
)
def test_a_key_that_is_too_weak_or_for_something_else_is_left_out(key: dict[str, Any]) -> None:
    right = {**EC, "kid": "right"}

    assert set(public_keys(json.dumps({"keys": [key, right]}).encode())) == {"right"}
    with pytest.raises(Refusal, match="has no key"):
        public_keys(json.dumps({"keys": [key]}).encode())


@each_row(
    ("content", "why"),
    [
        ("[]", "keys: "),
        ("{}", "an object with a list of keys"),
        ('{"keys": {}}', "an object with a list of keys"),
        ('{"keys": ["x"]}', "an object with a list of keys"),
        (json.dumps({"keys": [{**EC, "d": "x"}]}), "private"),
        (json.dumps({"keys": [{"kty": "oct", "k": "x"}]}), "private"),
        (json.dumps({"keys": [RSA, {**EC, "kid": "1"}]}), "the same kid"),
    ],
)
def test_a_key_set_that_cannot_be_right_is_refused(content: str, why: str) -> None:
    with pytest.raises(Refusal, match=why):
        public_keys(content.encode())


@each_row(
    "address",
    [
        "https://a.example", "https://a.example/", "https://a.example/x/y/",
        "https://a.example:8443/x",
        "https://[2606:4700::1111]/x", "https://1.1.1.1",
    ],
)  # fmt: skip
def test_an_https_address_may_be_fetched(address: str) -> None:
    assert check_address("issuer", address)


@each_row(
    "address",
    [
        "", "a.example", "http://a.example", "https://", "https:///x", "https://A.example",
        "https://a.example?x", "https://a.example/#x", "https://a.example/%2e",
        "https://a.example/a b", "https://a.example/../x", "https://a.example//x",
        "https://u@a.example", "https://u:p@a.example", "https://a.example:443",
        "https://a.example:0", "https://a.example\\@b.example/", "ftp://a.example",
        "https://0x7f.1", "https://127.1", "file:///etc/passwd", "https://a.example/\u00e4",
    ],
)  # fmt: skip
def test_any_other_address_is_not(address: str) -> None:
    with pytest.raises(Refusal):
        check_address("issuer", address)
