"""Tokens that a user stored, one for each origin: below the user's folder of settings.

A token is stored for an origin (scheme, host, port) and is returned for this origin only. So an
address that a file of a repository names gets no token that was meant for another service.
Each token is a file of its own, and a file is replaced whole: there is nothing to lock.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from reconciler.errors import LocalFileError, writing
from reconciler.resources.files import is_open_to_others, make_folder, write_private
from reconciler.resources.secret import Secret
from reconciler.service_client.credentials import read_private, token_of
from reconciler.service_client.endpoint import parse_endpoint

_FOLDER = Path("reconciler", "tokens")


def stored_token(origin: str, environ: Mapping[str, str]) -> Secret | None:
    """Return the token that is stored for an origin, or None.

    Raises:
        UsageError: the origin cannot be read.
        LocalFileError: others can read or could have written the file, or it cannot be read.
        AccessDeniedError: the file holds no token.
    """
    folder = _folder(environ)
    if folder is None or not os.path.lexists(path := folder / _name(origin)):
        return None
    # Another program may have removed it since.
    with writing(f"read {folder}", "Tokens are stored there: log in again."):
        _check_private(folder)
    return token_of(read_private(path, own=True), str(path))


def store_token(origin: str, token: Secret, environ: Mapping[str, str]) -> Path:
    """Store a token for an origin, in the place of an earlier one; return the path of its file.

    Raises:
        UsageError: the origin cannot be read.
        LocalFileError: there is no place for it, or the place is open to others.
    """
    folder = _folder(environ)
    if folder is None:
        raise LocalFileError(
            "there is no folder for settings: this user has no home folder",
            remedy="Set XDG_CONFIG_HOME to a folder of this user's own.",
        )
    path = folder / _name(origin)
    with writing(f"write {path}", "Make its folder one that this user may write to."):
        make_folder(folder)
        _check_private(folder)
        write_private(path, token.reveal().encode() + b"\n")
    return path


def forget_token(origin: str, environ: Mapping[str, str]) -> bool:
    """Remove the token that is stored for an origin; return whether there was one.

    Raises:
        UsageError: the origin cannot be read.
        LocalFileError: the file cannot be removed.
    """
    folder = _folder(environ)
    if folder is None:
        return False
    path = folder / _name(origin)
    with writing(f"remove {path}", "Remove it by hand: the token in it still counts."):
        is_there = os.path.lexists(path)
        path.unlink(missing_ok=True)
    return is_there


def _folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the tokens; None for a user without a home folder.

    As the XDG specification asks, a relative path in the variable does not count.
    """
    settings = Path(environ.get("XDG_CONFIG_HOME", ""))
    if settings.is_absolute():
        return settings / _FOLDER
    home = Path(environ.get("HOME", ""))
    return home / ".config" / _FOLDER if home.is_absolute() else None


def _name(origin: str) -> str:
    """Return the name of the file of an origin: no two origins have the same one."""
    return quote(parse_endpoint(origin).same_origin, safe="")


def _check_private(folder: Path) -> None:
    """Refuse a folder in which another user could read or exchange the files."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise LocalFileError(
            f"{folder} is not a folder of this user's own",
            remedy="Tokens are stored there: move away what is there, then log in again.",
        )
    if is_open_to_others(status):
        raise LocalFileError(
            f"{folder} is open to others (mode {status.st_mode & 0o777:04o})",
            remedy=f"Tokens are stored there: run `chmod 700 {folder}`.",
        )
