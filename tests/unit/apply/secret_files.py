"""Sinks that are folders, and what is in their files."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import TypeAlias

import pyrage

from reconciler.apply.folder_sinks import AgeSink, FileSink
from reconciler.apply.sink import Delivery, Kept
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret
from tests.builders import WEB, a_ref

Sink: TypeAlias = FileSink | AgeSink

PORTAL = a_ref(name="portal")
KEY = pyrage.x25519.Identity.generate()
PLAIN, BESIDE = "acme.shop.storefront.json", "acme.shop.storefront.7.json"


def delivery(ref: ResourceRef = WEB, client_id: str = "7", value: str = "geheim") -> Delivery:
    return Delivery(ref, client_id, Secret(value))


def a_file_sink(folder: Path) -> Sink:
    return FileSink(folder)


def an_age_sink(folder: Path) -> Sink:
    return AgeSink(folder, [str(KEY.to_public())])


def delivered(sink: Sink, *deliveries: Delivery) -> list[Kept]:
    """Deliver; every secret must be kept."""
    results = sink.deliver(deliveries)
    kept = [result for result in results if isinstance(result, Kept)]
    assert len(kept) == len(deliveries), results
    return kept


def secrets_in(folder: Path) -> dict[str, tuple[str, str, str]]:
    """Return client id, secret and the name in the ref of every file, by file name."""
    files = {}
    for path in folder.iterdir():
        if path.name == ".gitignore":
            continue
        content = path.read_bytes()
        content = pyrage.decrypt(content, [KEY]) if path.suffix == ".age" else content
        said = json.loads(content)
        files[path.name] = (said["client_id"], said["client_secret"], said["ref"]["name"])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return files
