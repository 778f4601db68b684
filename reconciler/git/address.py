"""The address of a repository, and the files that give access to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from reconciler.errors import UsageError

_SCP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^-\s].*", re.ASCII)
_REF = re.compile(r"refs/(?:heads|tags)/[A-Za-z0-9_][A-Za-z0-9._/+@-]{0,199}", re.ASCII)
# What ssh takes as it stands: it would replace % and ~ in the name of a file, and split at spaces.
_PLAIN_PATH = re.compile(r"/[\w./@+,=-]*", re.ASCII)
_FORMS = (
    "Write https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or the path of a repository "
    "on this machine."
)


class Address(NamedTuple):
    """The address of a repository, as Git takes it.

    Attributes:
        scheme: ``https``, ``ssh`` or ``file``.
    """

    text: str
    scheme: str


def parse_address(written: str) -> Address:
    """Return the address of a repository; the path of one on this machine becomes absolute.

    Raises:
        UsageError: it has a password in it, or a form that is not supported.
    """
    if "://" in written:
        return _of_url(written)
    if _SCP.fullmatch(written):
        return Address(written, "ssh")
    is_odd = written.startswith("-") or "\0" in written or ":" in written.partition("/")[0]
    if not written or is_odd:
        raise UsageError("--repository is not the address of a repository", remedy=_FORMS)
    return Address(str(Path(written).absolute()), "file")


def _of_url(written: str) -> Address:
    try:
        parts = urlsplit(written)
        password, host, _ = parts.password, parts.hostname or "", parts.port
    except ValueError:
        raise UsageError("--repository is not the address of a repository", remedy=_FORMS) from None
    if password is not None:
        raise UsageError(
            "--repository has a password in it",
            remedy="Keep it in a file, and give --git-credentials-file FILE.",
        )
    is_file = parts.scheme == "file" and not host and parts.path.startswith("/")
    is_remote = parts.scheme in {"https", "ssh"} and host and not host.startswith("-")
    if not (is_file or is_remote) or any(each <= " " for each in written):
        raise UsageError("--repository must use https or ssh, or be local", remedy=_FORMS)
    return Address(written, parts.scheme)


def checked_ref(written: str) -> str:
    """Return the name of a branch or tag in full.

    Raises:
        UsageError: it is not a name of a branch or tag.
    """
    is_odd = ".." in written or "//" in written or "@{" in written or written.endswith((".", "/"))
    if is_odd or ".lock" in written or not _REF.fullmatch(written):
        raise UsageError(
            f"--ref {written} is not the full name of a branch or tag",
            remedy="Write --ref refs/heads/NAME, such as refs/heads/main.",
        )
    return written


@dataclass(frozen=True, slots=True)
class Access:
    """Files that give access to a repository; all lie outside of it, with absolute paths.

    Attributes:
        credentials_file: Lines such as ``https://USER:TOKEN@HOST``, as Git's own store has them.
        ssh_key_file: A private key; ``known_hosts`` then says which hosts are the right ones.
        ca_file: Authorities that are trusted for https, in PEM, instead of the system's.
        proxy: Address of the proxy for https; empty for none.
    """

    credentials_file: Path | None = None
    ssh_key_file: Path | None = None
    known_hosts: Path | None = None
    ca_file: Path | None = None
    proxy: str = ""

    def check(self, address: Address) -> None:
        """Refuse files that do not give access to an address.

        Raises:
            UsageError: a file is missing, or has a name that ssh does not take as it stands.
        """
        if address.scheme != "ssh":
            return
        if self.ssh_key_file is None or self.known_hosts is None:
            raise UsageError(
                "a repository over ssh needs a key and the keys of its host",
                remedy="Give --ssh-key-file FILE and --known-hosts FILE.",
            )
        for path in (self.ssh_key_file, self.known_hosts):
            if not _PLAIN_PATH.fullmatch(str(path)):
                raise UsageError(
                    f"ssh cannot be given the file {path}",
                    remedy="Use a path of letters, digits and . _ - @ + , = only.",
                )
