"""The folder that CI installs the tool from: every file with its hash, and no index asked for it.

``requirements.txt`` names each library of the core with exact version and hashes, and the tool as
a file: the wheel that lies beside it, or the address of a release. One command installs all of it:
``pip install --no-deps --require-hashes --only-binary :all: --requirement requirements.txt``, run
in the folder. ``--no-deps`` because the list is complete: nothing else is fetched.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from reconciler import __version__
from reconciler.cli.own_wheel import own_wheel
from reconciler.errors import UsageError
from reconciler.resources.extras import DISTRIBUTION, WHEEL
from reconciler.resources.origin import is_loopback_host

REQUIREMENTS = "requirements.txt"

_PACKAGE = Path(__file__).parents[1]
# Inside the installed package, or at the top of a checkout.
_LOCKS = (_PACKAGE / "requirements.txt", _PACKAGE.parent / ".ci" / "runtime.txt")

_HEADING = f"""\
# What the jobs install: reconciler {__version__} and each library that it needs, by hash.
# Written by: reconciler init. For another version, move this folder away, and run that version's
# reconciler init again.
"""
_FRAGMENT = re.compile(r"sha256=[0-9a-f]{64}", re.ASCII)
_ADDRESS = re.compile(r"[!-~]+", re.ASCII)


def install_files(release: str | None) -> Mapping[str, bytes]:
    """Return the files of the folder, by name.

    Args:
        release: The address of the wheel of a release, ``URL#sha256=HASH``. Without one, a wheel
            of the running tool is among the files.

    Raises:
        UsageError: the address is not one of the wheel of this version with its hash.
        LocalFileError: no wheel of the running tool can be made here.
    """
    if release is not None:
        tool = f"{DISTRIBUTION} @ {_checked(release)}"
        return {REQUIREMENTS: _requirements(tool)}
    wheel = own_wheel()
    tool = f"./{WHEEL} \\\n    --hash=sha256:{hashlib.sha256(wheel).hexdigest()}"
    return {WHEEL: wheel, REQUIREMENTS: _requirements(tool)}


def _requirements(tool: str) -> bytes:
    return f"{_HEADING}{tool}\n{_locked_libraries()}".encode()


def _locked_libraries() -> str:
    """Return the locked requirements of the core, without the heading of the file."""
    lock = next(path for path in _LOCKS if path.is_file())
    lines = lock.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("#"))


def _checked(release: str) -> str:
    """Return an address that pip takes this version's wheel from, and from nowhere else."""
    remedy = (
        f"Write --from 'https://HOST/.../{WHEEL}#sha256=HASH'; SHA256SUMS of the release has HASH."
    )
    if not _ADDRESS.fullmatch(release):
        raise UsageError("--from has characters that an address cannot have", remedy=remedy)
    url = urlsplit(release)
    if problem := _problem_of(url):
        raise UsageError(f"--from {problem}", remedy=remedy)
    return release


def _problem_of(url: SplitResult) -> str | None:
    """Return what is wrong with an address; it may hold a password and is not repeated."""
    if "@" in url.netloc or url.query:
        return "has a user, a password or a query, which would be written into a file"
    if url.scheme != "https" and not (url.scheme == "http" and _is_loopback(url)):
        return "is not an https:// address"
    if not url.hostname:
        return "names no host"
    if url.path.rsplit("/", 1)[-1] != WHEEL:
        return f"does not end in {WHEEL}, the wheel of the version that you run"
    if not _FRAGMENT.fullmatch(url.fragment):
        return "has no #sha256= with 64 hexadecimal digits"
    return None


def _is_loopback(url: SplitResult) -> bool:
    return is_loopback_host(url.hostname or "")
