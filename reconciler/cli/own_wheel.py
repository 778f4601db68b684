"""A wheel of the running installation, so that CI runs the very tool that wrote its set-up.

In a checkout the wheel is built from the files that are there. An installed tool is packed again
from its files, each compared with the hash that the installer recorded; a file that was changed is
an error, because another machine could not tell that it runs something else.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path

from reconciler import __version__
from reconciler.errors import LocalFileError
from reconciler.resources.extras import DISTRIBUTION, WHEEL
from reconciler.resources.schema_files import is_checkout

_CHECKOUT = Path(__file__).parents[2]
# Written by the installer into the metadata of what it installs; a wheel has none of them.
_BY_INSTALLER = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"}
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold: the same bytes each time


def own_wheel() -> bytes:
    """Return a wheel of the running tool; its name is ``WHEEL``.

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
        for made in WheelBuilder(str(_CHECKOUT)).build(directory=folder, versions=["standard"]):
            return Path(made).read_bytes()
    raise _cannot("hatchling built nothing")


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
