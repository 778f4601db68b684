"""Limits of a server: those of one caller leave room for others, and a message fits in."""

from __future__ import annotations

from dataclasses import fields

import pytest

from reconciler.service.transport.calls import MAX_MESSAGE
from reconciler.service.transport.limits import MAX_JSON, Limits

LIMITS = Limits()


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_every_limit_lets_something_through(name: str) -> None:
    assert getattr(LIMITS, name) > 0


@pytest.mark.parametrize(
    ("share", "whole"),
    [
        ("http2_connections", "connections"),
        ("large_share_bytes", "large_bytes"),
        ("grpc_known", "grpc_calls"),
        ("grpc_known_of_one", "grpc_known"),
        ("grpc_share_bytes", "grpc_large_bytes"),
        ("grpc_waiting_of_one", "grpc_waiting"),
        ("grpc_new_of_strangers", "grpc_new_of_one"),
        ("grpc_open", "grpc_calls"),
        ("target_bytes", "head_bytes"),
    ],
)
def test_no_share_is_the_whole(share: str, whole: str) -> None:
    assert getattr(LIMITS, share) < getattr(LIMITS, whole)


def test_a_message_of_full_length_fits_into_a_body_and_into_a_share() -> None:
    assert MAX_JSON == MAX_MESSAGE < LIMITS.body_bytes <= LIMITS.large_share_bytes
    assert LIMITS.body_bytes < LIMITS.grpc_share_bytes
