"""The folder that CI installs the tool from: its wheel, and each library with version and hash."""

from __future__ import annotations

import hashlib
import io
import re
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from reconciler import __version__
from reconciler.errors import LocalFileError, UsageError
from reconciler.resources.installation import DISTRIBUTION, WHEEL, is_checkout
from reconciler.resources.origin import is_loopback_host

_PACKAGE, _CHECKOUT = Path(__file__).parents[1:3]
REQUIREMENTS = "requirements.txt"

# Inside the installed package, or at the top of a checkout.
_LOCKS = (_PACKAGE / "requirements.txt", _CHECKOUT / ".ci" / "runtime.txt")

_HEADING = f"""\
# What the jobs install: reconciler {__version__} and each library that it needs, by hash.
# Written by: reconciler init. For another version, move this folder away, and run that version's
# reconciler init again.
"""
_FRAGMENT = re.compile(r"sha256=[0-9a-f]{64}", re.ASCII)
_ADDRESS = re.compile(r"[!-~]+", re.ASCII)
# Written by the installer into the metadata of what it installs; a wheel has none of them.
_BY_INSTALLER = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: the same bytes each time


def install_files(release: str | None) -> Mapping[str, bytes]:
    """Return the files of the folder that CI installs the tool from, by name.

    ``requirements.txt`` names each library of the core with exact version and hashes, and the tool
    as a file: the wheel beside it, or the address of a release. ``--no-deps`` of pip is right for
    it, because the list is complete: no index is asked for the tool.

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
    """Return the tool and the locked requirements of the core, under a heading of their own."""
    lock = next(path for path in _LOCKS if path.is_file())
    lines = lock.read_text(encoding="utf-8").splitlines(keepends=True)
    locked = "".join(line for line in lines if not line.startswith("#"))
    return f"{_HEADING}{tool}\n{locked}".encode()


def _checked(release: str) -> str:
    """Return an address that pip takes this version's wheel from, and from nowhere else."""
    remedy = (
        f"Write --from 'https://HOST/.../{WHEEL}#sha256=HASH'; SHA256SUMS of the release has HASH."
    )
    if not _ADDRESS.fullmatch(release):
        raise UsageError("--from has characters that an address cannot have", remedy=remedy)
    if problem := _problem_of(urlsplit(release)):
        raise UsageError(f"--from {problem}", remedy=remedy)
    return release


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


def own_wheel() -> bytes:
    """Return a wheel of the running tool; its name is ``WHEEL``.

    In a checkout it is built from the files that are there. An installed tool is packed again from
    its files, each compared with the hash that the installer recorded: another machine could not
    tell that it runs something else.

    Raises:
        LocalFileError: none can be made here; the remedy says how to get one.
    """
    return _built() if is_checkout() else packed(_installed_files())


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return a wheel of these files: the same bytes for the same files.

    Args:
        files: Contents by path in the wheel, metadata included but for RECORD, which is added.
    """
    (folder,) = {name.split("/")[0] for name in files if name.split("/")[0].endswith(".dist-info")}
    record = f"{folder}/RECORD"
    lines = [f"{name},sha256={_hash(files[name])},{len(files[name])}\n" for name in sorted(files)]
    contents = {**files, record: "".join([*lines, f"{record},,\n"]).encode()}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        # The metadata comes last, as in every wheel: readers look for it at the end.
        for name in sorted(contents, key=lambda name: (name.startswith(folder), name)):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, contents[name])
    return written.getvalue()


def _built() -> bytes:
    try:
        from hatchling.builders.wheel import WheelBuilder
    except ImportError:
        raise _cannot(
            "hatchling is not installed",
            "Install it in this checkout with make demo, or",
        ) from None
    with tempfile.TemporaryDirectory() as folder:
        (made,) = WheelBuilder(str(_CHECKOUT)).build(directory=folder, versions=["standard"])
        return Path(made).read_bytes()


def _installed_files() -> dict[str, bytes]:
    """Return what the installed wheel held, by path: the package and its metadata."""
    recorded = _distribution().files
    if recorded is None:
        raise _cannot("the installer left no list of files (RECORD)")
    return {path.as_posix(): _unchanged(path) for path in recorded if _is_of_wheel(path)}


def _distribution() -> Distribution:
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise _cannot("it has no metadata of a package") from None
    if found.version != __version__:
        raise _cannot(f"its metadata is of version {found.version}, its files of {__version__}")
    return found


def _is_of_wheel(path: PackagePath) -> bool:
    """Return whether a recorded file was in the wheel: no command, cache or installer's note."""
    top = path.parts[0]
    if top.endswith(".dist-info"):
        return path.name not in _BY_INSTALLER
    return top == "reconciler" and path.suffix != ".pyc"


def _unchanged(path: PackagePath) -> bytes:
    try:
        content = path.read_binary()
    except OSError as failure:
        raise _cannot(f"{path} cannot be read: {failure.strerror}") from failure
    if path.hash is None or path.hash.mode != "sha256" or path.hash.value != _hash(content):
        raise _cannot(f"{path} is not as it was installed")
    return content


def _hash(content: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _cannot(why: str, first: str = "") -> LocalFileError:
    rest = f"give a release: --from https://.../{WHEEL}#sha256=... (docs/install.md)."
    return LocalFileError(
        f"cannot make a wheel of this installation: {why}",
        remedy=f"{first} {rest}" if first else rest.capitalize(),
    )
