"""A folder of files that only the holders of some keys can open, with the stock ``age`` tool."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from reconciler.apply.durable import make_private_folder, remove, write_private_files
from reconciler.apply.sink import (
    Application,
    Delivery,
    Kept,
    Stops,
    content_of,
    never,
    plain_name,
)
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.ref import ResourceRef


class AgeSink:
    """One sealed file per application and client id. Its content is that of a plain file."""

    def __init__(self, folder: Path, recipients: Sequence[str]) -> None:
        """Seal to recipients: ``age1...`` or public keys of SSH.

        Raises:
            UsageError: there is none, or one is no recipient.
        """
        if not recipients:
            raise UsageError(
                "age: needs somebody who can open the files",
                remedy="Write --secrets-to 'age:DIR?recipient=age1...'.",
            )
        self._folder = folder
        self._recipients = [_recipient(text) for text in recipients]

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Seal and write a probe the way a secret is written, and remove it."""
        make_private_folder(self._folder)
        probe = f".probe-{os.getpid()}"
        write_private_files(self._folder, [(probe, self._sealed(b"room for a secret\n"))])
        remove(self._folder / probe)

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Write one sealed file per secret."""
        files = [
            (sealed_name(one.ref, one.client_id), self._sealed(content_of(one)))
            for one in deliveries
        ]
        try:
            write_private_files(self._folder, files)
        except LocalFileError as failure:
            return [failure for _ in files]
        return [Kept(str(self._folder / name)) for name, _ in files]

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Look for the file of each."""
        return [self.holds(*application) for application in applications]

    def holds(self, ref: ResourceRef, client_id: str) -> bool | None:
        """Look for the file of this client id; nobody here can open it."""
        return (self._folder / sealed_name(ref, client_id)).is_file()

    def _sealed(self, content: bytes) -> bytes:
        import pyrage

        return bytes(pyrage.encrypt(content, self._recipients))


def sealed_name(ref: ResourceRef, client_id: str) -> str:
    """Return the file of one client id of an application."""
    names = [ref.organization, ref.project, ref.name, client_id]
    return plain_name(names) + ".json.age"


def _recipient(text: str) -> Any:
    import pyrage

    for kind in (pyrage.x25519.Recipient, pyrage.ssh.Recipient):
        try:
            return kind.from_str(text)
        except pyrage.RecipientError:
            continue
    raise UsageError(
        f"{text[:60]!r} is no recipient",
        remedy="Write the public key that age-keygen shows (age1...), or one of SSH.",
    )
