"""The folder that CI installs the tool from: its wheel, and each library with version and hash.

No wheel is made here: CI runs the bytes of a release, whose ``SHA256SUMS`` others can compare.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from reconciler import __version__
from reconciler.errors import LocalFileError, UsageError
from reconciler.manifests.files import OpeningError, read_path
from reconciler.report.visible import visible
from reconciler.resources.installation import DISTRIBUTION, WHEEL, is_checkout
from reconciler.resources.origin import is_loopback_host

_PACKAGE, CHECKOUT = Path(__file__).parents[1:3]
TOOL = "reconciler"
"""The folder, beside what a CI set-up reads, that its jobs install the tool from."""

REQUIREMENTS = "requirements.txt"
SUMS = "SHA256SUMS"
MAX_WHEEL = 64 * 1024 * 1024  # bytes

# Inside the installed package, or at the top of a checkout: of the core, and with the extra policy.
_LOCKS = (_PACKAGE / "requirements.txt", CHECKOUT / ".ci" / "runtime.txt")
_WITH_POLICIES = (_PACKAGE / "requirements-policy.txt", CHECKOUT / ".ci" / "policy.txt")

_HEADING = f"""\
# What the jobs install: reconciler {__version__} and each library that it needs, by hash.
# Written by: reconciler init. For another version, move this folder away, and run that version's
# reconciler init again.
"""
_FRAGMENT = re.compile(r"sha256=[0-9a-f]{64}", re.ASCII)
_ADDRESS = re.compile(r"[!-~]+", re.ASCII)
_REMEDY = (
    f"Write --from FOLDER/{WHEEL}, or --from 'https://HOST/.../{WHEEL}#sha256=HASH'; {SUMS} of the "
    "release has HASH."
)


class _Wheel(NamedTuple):
    """The wheel of a release: its SHA-256, and its bytes or the address that has them."""

    digest: str
    content: bytes = b""
    address: str = ""


def install_files(
    source: str | None, *, is_published: bool = False, has_policies: bool = False
) -> Mapping[str, bytes]:
    """Return the files of the folder that CI installs the tool from, by name.

    ``requirements.txt`` names each library of the core with exact version and hashes, and the tool
    as a file: the wheel beside it, or the address of a release. ``--no-deps`` of pip is right for
    it, because the list is complete: no index is asked for the tool unless it is published.

    Args:
        source: The wheel of a release: a file, or an address as ``URL#sha256=HASH``. Without one
            it is that of ``make dist`` in the checkout that the tool runs from.
        is_published: Whether the jobs take that wheel from their package index, by name and hash.
        has_policies: Whether the jobs judge by policies, which need the extra for them.

    Raises:
        UsageError: the source is not a wheel of this version, or an address without its hash.
        LocalFileError: there is no wheel, or it is not the one of its SHA256SUMS.
    """
    wheel = _wheel(source)
    locks = _WITH_POLICIES if has_policies else _LOCKS
    locked = f" \\\n    --hash=sha256:{wheel.digest}"
    if is_published:
        return {REQUIREMENTS: _requirements(f"{DISTRIBUTION}=={__version__}{locked}", locks)}
    if wheel.address:
        return {REQUIREMENTS: _requirements(f"{DISTRIBUTION} @ {wheel.address}", locks)}
    return {WHEEL: wheel.content, REQUIREMENTS: _requirements(f"./{WHEEL}{locked}", locks)}


def _requirements(tool: str, locks: Sequence[Path]) -> bytes:
    """Return the tool and the locked requirements of one lock, under a heading of their own."""
    lock = next(path for path in locks if path.is_file())
    lines = lock.read_text(encoding="utf-8").splitlines(keepends=True)
    locked = "".join(line for line in lines if not line.startswith("#"))
    return f"{_HEADING}{tool}\n{locked}".encode()


def _wheel(source: str | None) -> _Wheel:
    if source is None:
        return _of_checkout()
    if "://" in source:
        if not _ADDRESS.fullmatch(source):
            raise UsageError("--from has characters that an address cannot have", remedy=_REMEDY)
        if problem := _problem_of(urlsplit(source)):
            raise UsageError(f"--from {problem}", remedy=_REMEDY)
        return _Wheel(source.rpartition("=")[2], address=source)
    return _read(Path(source), _REMEDY)


def _of_checkout() -> _Wheel:
    """Return the wheel that ``make dist`` made in the checkout that the tool runs from."""
    if not is_checkout():
        raise LocalFileError(
            "the jobs install the tool from a wheel, and none is named",
            remedy=f"{_REMEDY} Nothing was written.",
        )
    remedy = f"Run make dist in the checkout, {CHECKOUT}. Or name a release. {_REMEDY}"
    return _read(CHECKOUT / "dist" / WHEEL, f"{remedy} Nothing was written.")


def _read(path: Path, remedy: str) -> _Wheel:
    """Return the wheel in a file, compared with the ``SHA256SUMS`` beside it if there is one."""
    if path.name != WHEEL:
        raise UsageError(
            f"--from {visible(str(path))} is not {WHEEL}, the wheel of the version that you run",
            remedy=remedy,
        )
    try:
        content = read_path(str(path), MAX_WHEEL)
    except OpeningError as failure:
        raise LocalFileError(
            f"there is no wheel to read at {visible(str(path))}: {failure}", remedy=remedy
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    sums = _sums(path.parent)
    if sums is not None and sums.get(WHEEL) != digest:
        raise LocalFileError(
            f"{visible(str(path))} is not the wheel that {SUMS} beside it names", remedy=remedy
        )
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise LocalFileError(f"{visible(str(path))} is not a whole wheel", remedy=remedy)
    return _Wheel(digest, content)


def _sums(folder: Path) -> Mapping[str, str] | None:
    """Return each SHA-256 of ``SHA256SUMS`` by the name of the file; None where it is missing."""
    try:
        text = read_path(str(folder / SUMS), MAX_WHEEL).decode(errors="replace")
    except OpeningError:
        return None
    lines = (line.split() for line in text.splitlines())
    return {line[1]: line[0] for line in lines if len(line) == 2}


def _problem_of(url: SplitResult) -> str | None:
    """Return what is wrong with an address; it may hold a password and is not repeated."""
    if "@" in url.netloc or url.query:
        return "has a user, a password or a query, which would be written into a file"
    if url.scheme != "https" and not (
        url.scheme == "http" and is_loopback_host(url.hostname or "")
    ):
        return "is not an https:// address"
    if not url.hostname:
        return "names no host"
    if url.path.rsplit("/", 1)[-1] != WHEEL:
        return f"does not end in {WHEEL}, the wheel of the version that you run"
    if not _FRAGMENT.fullmatch(url.fragment):
        return "has no #sha256= with 64 hexadecimal digits"
    return None
