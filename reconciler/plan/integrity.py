"""Files that carry a digest of their own content: what was changed by one bit is refused.

The digest is no signature. Who changes a file on purpose can make the digest anew; so nothing
that stands in such a file is ever carried out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from reconciler.resources.strict_json import JsonError, read_object

SEAL = "integrity"
MAX_SIZE = 256 * 1024 * 1024
_NONE_YET = "sha256:" + "0" * 64


class SavedFileError(ValueError):
    """A content is no file that can be used; the message goes after "it ..."."""


def sealed(kind: str, version: str, fields: dict[str, Any]) -> bytes:
    """Return the content of a file: the same for the same fields, to the byte."""
    head = {"format": kind, "format_version": version, SEAL: _NONE_YET}
    lines = ",\n ".join(
        f"{_text(name)}: {_lines(value)}" for name, value in (head | fields).items()
    )
    text = f"{{\n {lines}\n}}\n"
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return text.replace(_NONE_YET, digest, 1).encode()


def unsealed(content: bytes, kind: str, version: str) -> dict[str, Any]:
    """Return the fields of a content that is as it was written.

    Raises:
        SavedFileError: it is not, or is of another kind or version.
    """
    try:
        fields = read_object(content)
    except JsonError as fault:
        raise SavedFileError(str(fault)) from None
    if fields.pop("format", None) != kind:
        raise SavedFileError(f"is not a {kind} file")
    written = fields.pop("format_version", None)
    if written != version:
        raise SavedFileError(f"is of format {str(written)[:20]!a}, and {version} is read here")
    fields.pop(SEAL, None)
    if content != sealed(kind, version, fields):
        raise SavedFileError("was changed after it was written: its integrity digest is wrong")
    return fields


def _lines(value: Any) -> str:
    """Return a value as text, the items of a list on a line each."""
    if not isinstance(value, list) or not value:
        return _text(value)
    return "[\n  " + ",\n  ".join(map(_text, value)) + "\n ]"


_text = json.JSONEncoder(ensure_ascii=True).encode


def seal_of(content: bytes) -> str:
    """Return the digest in a content that is as it was written."""
    return str(read_object(content)[SEAL])
