"""All limits together fit the container of the guide."""

from __future__ import annotations

from pathlib import Path

import yaml

from reconciler.service.eventstore.sqlite_files import CACHE_KIB
from reconciler.service.transport.front import WAITING
from reconciler.service.transport.grpc_server import STREAM_WINDOW
from reconciler.service.transport.limits import KIB, MIB, Limits
from reconciler.service.transport.memory import STORE, most_memory

ROOT = Path(__file__).parents[3]
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
    parts = most_memory(Limits(), STREAM_WINDOW)

    assert limit == 512 * MIB
    assert sum(parts.values()) + files <= limit, {name: size / MIB for name, size in parts.items()}


def test_every_limit_of_a_number_counts() -> None:
    """Raising one without a thought for the container is seen."""
    usual = sum(most_memory(Limits(), STREAM_WINDOW).values())
    more = [
        Limits(connections=1000),
        Limits(http2_connections=500),
        Limits(head_bytes=MIB),
        Limits(large_bytes=64 * MIB),
        Limits(grpc_calls=10_000),
        Limits(grpc_large_bytes=64 * MIB),
    ]

    assert [
        limits for limits in more if sum(most_memory(limits, STREAM_WINDOW).values()) <= usual
    ] == []
    assert CACHE_KIB * KIB < STORE
    assert Limits().grpc_calls <= WAITING
