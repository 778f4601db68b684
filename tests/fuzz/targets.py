"""What is fuzzed: bytes go in, and nothing but an ``AssertionError`` or a defect comes out.

A target takes any bytes. It returns whether they were taken; a documented refusal is the other
answer. Each asks more than that nothing breaks: what is read is written back the same, another
reader sees the same, or the other side of the wall decides the same.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.fuzz import clients, files, services, texts, wires

Target = Callable[[bytes], bool]

MAX_SECONDS = 1.0
"""Of the processor that the bound was set on; others are compared with it by a fixed task."""

MAX_MEMORY = 256 * 1024 * 1024
_TASK_SECONDS = 0.1

TARGETS: Mapping[str, Target] = {
    "yaml": files.yaml_text,
    "manifest": files.manifest,
    "json": files.strict_json,
    "plan": files.plan_file,
    "saved": files.saved_parts,
    "journal": files.journal,
    "frames": wires.grpc_frames,
    "messages": wires.messages,
    "framing": wires.http_framing,
    "replies": wires.replies,
    "observed": clients.observed,
    "calls": services.calls,
    "lists": services.lists,
    "uri": texts.redirect_uri,
    "endpoint": texts.endpoint,
    "origin": texts.origin,
    "duration": texts.duration,
    "header": texts.header_name,
    "visible": texts.sanitiser,
    "comment": texts.comment,
}


class TooSlowError(Exception):
    """An input took more than MAX_SECONDS of the processor."""


def slowness() -> float:
    """Return how many times longer than the reference this processor needs now, at least 1."""
    began = time.process_time()
    for _ in range(3):
        list({f"key {number}": [number] for number in range(100_000)}.values())
    return max(1.0, (time.process_time() - began) / _TASK_SECONDS)


def timed(target: Target, seconds: float = MAX_SECONDS) -> Target:
    """Return a target that takes no longer than it may, by the clock of the reference."""

    def run(data: bytes) -> bool:
        began = time.process_time()
        taken = target(data)
        spent = time.process_time() - began
        if spent > seconds and spent / slowness() > seconds:
            raise TooSlowError(f"{len(data)} bytes took {spent:.1f} s")
        return taken

    return run


@contextmanager
def little_memory() -> Iterator[None]:
    """Let the block have MAX_MEMORY more than the process has; then there is a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MAX_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
