"""A folder with one JSON file per application: its ref, client id and client secret."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from reconciler.apply.durable import check_replaceable, make_private_folder
from reconciler.apply.folder_sink import FolderSink
from reconciler.apply.sink import Application, Delivery, content_of, plain_name
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret

MAX_BYTES = 1_000_000


class FileSink(FolderSink):
    """Files that scripts read. The client id in the content identifies a file, not its name."""

    suffix = ".json"

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe the way a secret is written, and remove it."""
        make_private_folder(self._folder.path)
        check_replaceable(self._folder.path, [file_name(ref) for ref in refs])
        self._folder.prove(b"room for a secret\n")

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application, then the one with its client id."""
        yield file_name(application.ref)
        yield file_name_beside(*application)

    def content(self, delivery: Delivery) -> bytes:
        """Return ref, client id and client secret as JSON."""
        return content_of(delivery)

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether the content names the client id."""
        return self.client_id_of(path) == application.client_id

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id that the content names."""
        client_id = _read(path).get("client_id")
        return client_id if isinstance(client_id, str) else None

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Return the content with another ref, unless it has that ref already."""
        before = _read(path)
        secret = before.get("client_secret")
        if not isinstance(secret, str):
            return None
        content = content_of(Delivery(ref, str(before["client_id"]), Secret(secret)))
        return None if json.loads(content) == before else content


def file_name(ref: ResourceRef) -> str:
    """Return the file of an application."""
    return plain_name([ref.organization, ref.project, ref.name]) + FileSink.suffix


def file_name_beside(ref: ResourceRef, client_id: str) -> str:
    """Return the file of an application whose own name is taken by another client id."""
    names = [ref.organization, ref.project, ref.name, client_id]
    return plain_name(names) + FileSink.suffix


def _read(path: Path) -> Mapping[str, Any]:
    """Return the content of a file of a secret; nothing if it is not one. Follow no link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            about = os.fstat(descriptor)
            is_ours = stat.S_ISREG(about.st_mode) and about.st_size <= MAX_BYTES
            content = json.loads(os.read(descriptor, about.st_size)) if is_ours else None
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
