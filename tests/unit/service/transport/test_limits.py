"""Limits of a server: none is for one caller alone, and all together fit the container."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import yaml

from reconciler.service.eventstore.sqlite import READERS_KEPT
from reconciler.service.eventstore.sqlite_files import CACHE_KIB, READER_CACHE_KIB
from reconciler.service.scheduling.shares import (
    READERS,
    WAITING,
)
from reconciler.service.transport.limits import (
    KIB,
    MAX_JSON,
    MAX_MESSAGE,
    MIB,
    STORE,
    Limits,
    most_memory,
)
from tests.rows import each_row

LIMITS = Limits()


@each_row("name", [field.name for field in fields(Limits)])
def test_every_limit_lets_something_through(name: str) -> None:
    assert getattr(LIMITS, name) > 0


@each_row(
    ("share", "whole"),
    [
        ("large_share_bytes", "large_bytes"),
        ("http2_known", "http2_calls"),
        ("http2_known_of_one", "http2_known"),
        ("http2_open", "http2_calls"),
        ("http2_open_of_one", "http2_open"),
        ("target_bytes", "head_bytes"),
    ],
)
def test_no_share_is_the_whole(share: str, whole: str) -> None:
    assert getattr(LIMITS, share) < getattr(LIMITS, whole)


def test_a_message_of_full_length_fits_into_a_body_and_into_a_share() -> None:
    assert MAX_JSON == MAX_MESSAGE < LIMITS.body_bytes <= LIMITS.large_share_bytes


ROOT = Path(__file__).parents[4]
UNITS = {"Ki": KIB, "Mi": MIB, "Gi": 1024 * MIB}


def in_bytes(size: str) -> int:
    return int(size[:-2]) * UNITS[size[-2:]]


def test_all_limits_together_fit_the_container() -> None:
    """Beside them, files in memory count for a container as well."""
    documents = yaml.safe_load_all((ROOT / "docs/serving/kubernetes.yaml").read_text("utf-8"))
    (pod,) = [
        each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment"
    ]
    limit = in_bytes(pod["containers"][0]["resources"]["limits"]["memory"])
    files = sum(
        in_bytes(volume["emptyDir"]["sizeLimit"])
        for volume in pod["volumes"]
        if volume.get("emptyDir", {}).get("medium") == "Memory"
    )
    parts = most_memory(Limits())

    assert limit == 512 * MIB
    assert sum(parts.values()) + files <= limit, {name: size / MIB for name, size in parts.items()}


def test_every_limit_of_a_number_counts() -> None:
    """Raising one without a thought for the container is seen."""
    usual = sum(most_memory(Limits()).values())
    more = [
        Limits(connections=1000),
        Limits(head_bytes=MIB),
        Limits(large_bytes=64 * MIB),
        Limits(http2_calls=10_000),
        Limits(http2_known=10_000),
    ]

    assert [limits for limits in more if sum(most_memory(limits).values()) <= usual] == []
    assert Limits().http2_calls <= WAITING


def test_the_readers_of_a_store_and_its_writer_keep_what_the_sum_says() -> None:
    """A transport does not know its store, so the sum has a number of its own for it."""
    readers = max(READERS, READERS_KEPT)

    assert (CACHE_KIB + readers * READER_CACHE_KIB) * KIB == STORE


def test_a_token_endpoint_is_counted_where_there_is_one() -> None:
    """Its forms, as objects, and its code."""
    plain, more = most_memory(Limits()), most_memory(Limits(), gives_tokens=True)

    assert more.keys() - plain.keys() == {"tokens"}
    assert (sum(more.values()) - sum(plain.values())) // MIB == 38
