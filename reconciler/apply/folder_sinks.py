"""Files of secrets: plain JSON, or sealed with ``age`` for the holders of some keys."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from reconciler.apply.secret_folder import FolderSink
from reconciler.apply.sink import Application, Delivery, content_of, plain_name
from reconciler.errors import LocalFileError, UsageError, cannot_write
from reconciler.resources.call import JsonObject
from reconciler.resources.files import read_start
from reconciler.resources.ref import ResourceRef
from reconciler.resources.secret import Secret

MAX_BYTES = 1_000_000


class FileSink(FolderSink):
    """Files that scripts read. The client id in the content identifies a file, not its name."""

    suffix = ".json"
    is_plain = True

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Write a probe, and see that no folder is where a file is to go."""
        super().prove(refs)
        for target in (self.folder / file_name(ref) for ref in refs):
            if target.is_dir() and not target.is_symlink():
                raise LocalFileError(
                    f"cannot write {target}: a folder is there",
                    remedy="A file of secrets goes there: move the folder away.",
                )

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application, then the one with its client id."""
        yield file_name(application.ref)
        yield file_name(*application)

    def sealed(self, content: bytes) -> bytes:
        return content

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


def file_name(ref: ResourceRef, client_id: str = "", suffix: str = FileSink.suffix) -> str:
    """Return the file of an application; with the client id where its own name is taken."""
    names = [ref.organization, ref.project, ref.name, *([client_id] if client_id else [])]
    return plain_name(names) + suffix


def _read(path: Path) -> JsonObject:
    """Return the content of a file of a secret; nothing if it is not one. Follow no link.

    Raises:
        LocalFileError: it is a file that cannot be read, such as one of another user.
    """
    if not _is_plain_file(path):
        return {}
    try:
        read, status = read_start(path, MAX_BYTES, os.O_NOFOLLOW)
        content = json.loads(read) if status.st_size <= MAX_BYTES else None
    except (ValueError, RecursionError, FileNotFoundError):  # or another run removed it meanwhile
        return {}
    except OSError as failure:
        raise _unread(path, failure) from failure
    return content if isinstance(content, dict) else {}


class AgeSink(FolderSink):
    """One sealed file per application and client id. Its content is that of a plain file.

    A file is found by its name, because the content cannot be read here.
    """

    suffix = ".json.age"
    is_plain = False

    def __init__(self, folder: Path, recipients: Sequence[str]) -> None:
        """Seal to recipients: ``age1...`` or public keys of SSH.

        Raises:
            UsageError: the list is empty, or an entry is not an age recipient.
        """
        super().__init__(folder)
        if not recipients:
            raise UsageError(
                "age: needs a recipient who can open the files",
                remedy="Write --secrets-to 'age:DIR?recipient=age1...'.",
            )
        self._recipients = [_recipient(text) for text in recipients]

    def names(self, application: Application) -> Iterator[str]:
        """Yield the name of the application with its client id."""
        yield file_name(*application, self.suffix)

    def is_of(self, path: Path, application: Application) -> bool:
        """Return whether this is a file with the application's name and client id."""
        return path.name in self.names(application) and _is_plain_file(path)

    def client_id_of(self, path: Path) -> str | None:
        """Return the client id in a readable name; a name with a checksum does not show it."""
        parts = path.name.removesuffix(self.suffix).split(".")
        return parts[-1] if len(parts) == 4 and _is_plain_file(path) else None

    def sealed(self, content: bytes) -> bytes:
        """Return the content sealed: only the recipients can open it."""
        import pyrage

        return bytes(pyrage.encrypt(content, self._recipients))


def _is_plain_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as failure:
        raise _unread(path, failure) from failure


def _unread(path: Path, failure: OSError) -> LocalFileError:
    remedy = "Make it readable for this user, or move it away."
    return cannot_write(f"read {path}", failure, remedy)


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
