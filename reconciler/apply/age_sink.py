"""A folder of files that only the holders of some keys can open, with the stock ``age`` tool."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from reconciler.apply.durable import make_private_folder
from reconciler.apply.folder_sink import FolderSink
from reconciler.apply.sink import Application, Delivery, content_of, plain_name
from reconciler.errors import UsageError
from reconciler.resources.ref import ResourceRef


class AgeSink(FolderSink):
    """One sealed file per application and client id. Its content is that of a plain file.

    A file is found by its name, because the content cannot be read here.
    """

    suffix = ".json.age"

    def __init__(self, folder: Path, recipients: Sequence[str]) -> None:
        """Seal to recipients: ``age1...`` or public keys of SSH.

        Raises:
            UsageError: there is none, or one is not an age recipient.
        """
        super().__init__(folder)
        if not recipients:
            raise UsageError(
                "age: needs a recipient who can open the files",
                remedy="Write --secrets-to 'age:DIR?recipient=age1...'.",
            )
        self._recipients = [_recipient(text) for text in recipients]

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Seal and write a probe the way a secret is written, and remove it."""
        make_private_folder(self._folder.path)
        self._folder.prove(self._sealed(b"room for a secret\n"))

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application with its client id."""
        yield sealed_name(*application)

    def content(self, delivery: Delivery) -> bytes:
        """Return the content of a plain file, sealed."""
        return self._sealed(content_of(delivery))

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether this is a file with the application's name and client id."""
        return path.name in self.names(application) and _is_plain_file(path)

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id in a readable name; a name with a checksum does not tell it."""
        parts = path.name.removesuffix(self.suffix).split(".")
        return parts[-1] if len(parts) == 4 and _is_plain_file(path) else None

    def with_ref(self, path: Path, ref: ResourceRef) -> bytes | None:
        """Leave the content as it is: only the recipients can open it."""
        return None

    def _sealed(self, content: bytes) -> bytes:
        import pyrage

        return bytes(pyrage.encrypt(content, self._recipients))


def sealed_name(ref: ResourceRef, client_id: str) -> str:
    """Return the file of one client id of an application."""
    names = [ref.organization, ref.project, ref.name, client_id]
    return plain_name(names) + AgeSink.suffix


def _is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _recipient(text: str) -> Any:
    import pyrage

    for kind in (pyrage.x25519.Recipient, pyrage.ssh.Recipient):
        try:
            return kind.from_str(text)
        except pyrage.RecipientError:
            continue
    raise UsageError(
        f"{text[:60]!r} is not an age recipient",
        remedy="Write the public key that age-keygen shows (age1...), or one of SSH.",
    )
