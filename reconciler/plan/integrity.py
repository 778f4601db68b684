"""Files that carry a digest of their own content: a change of one bit is refused.

The digest is no signature: who changes a file can make the digest again. So nothing that stands
in such a file is ever carried out, and everything in it is checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from reconciler.resources.fields import Spec
from reconciler.resources.normal import LEFT_AS_HELD, TYPES
from reconciler.resources.ref import Kind
from reconciler.resources.strict_json import JsonError, read_as, read_object

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SEAL = "integrity"
MAX_SIZE = 256 * 1024 * 1024
_NONE_YET = "sha256:" + "0" * 64


class SavedFileError(ValueError):
    """A content is no file that can be used; the message goes after "it ..."."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The fields that every saved file begins with; ``sealed`` sets them."""

    format: str = ""
    format_version: str = ""
    integrity: str = ""


D = TypeVar("D", bound=Document)
T = TypeVar("T")


def like(kind: Callable[..., T], *sources: object, **others: object) -> T:
    """Return a dataclass with other values, and the rest from the fields of the same name."""
    known: Any = kind
    values = {
        field.name: getattr(source, field.name)
        for field in fields(known)
        for source in sources
        if field.name not in others and hasattr(source, field.name)
    }
    return kind(**values, **others)


def sealed(kind: str, version: str, document: Document | Mapping[str, object]) -> bytes:
    """Return the content of a file: the same for the same fields, to the byte."""
    head = {"format": kind, "format_version": version, SEAL: _NONE_YET}
    told = _fields(document) if isinstance(document, Document) else document
    lines = ",\n ".join(
        f"{as_json(name)}: {_lines(value)}" for name, value in {**head, **told, **head}.items()
    )
    text = f"{{\n {lines}\n}}\n"
    digest = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return text.replace(_NONE_YET, digest, 1).encode()


def unsealed(content: bytes, kind: str, version: str, document: type[D]) -> D:
    """Return the document in a content that is as it was written.

    Raises:
        SavedFileError: it is not, or is of another kind or version, or has other fields.
    """
    try:
        told = read_object(content)
        _check(content, told, kind, version)
        return read_as(document, content)
    except JsonError as fault:
        raise SavedFileError(str(fault)) from None


def _check(content: bytes, told: Mapping[str, object], kind: str, version: str) -> None:
    if told.get("format") != kind:
        raise SavedFileError(f"is not a {kind} file")
    written = told.get("format_version")
    if written != version:
        raise SavedFileError(f"is of format {str(written)[:20]!a}, and {version} is read here")
    if content != sealed(kind, version, told):
        raise SavedFileError("was changed after it was written: its integrity digest is wrong")


def _lines(value: object) -> str:
    value = sorted(value) if isinstance(value, frozenset) else value
    if not isinstance(value, list | tuple) or not value:
        return as_json(value)
    return "[\n  " + ",\n  ".join(map(as_json, value)) + "\n ]"


def _fields(value: DataclassInstance) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _plain(value: object) -> dict[str, object] | list[object]:
    """Return the fields of a dataclass, or a set in order: what JSON has no form for."""
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(type(value))


# Named tuples are lists, and members of the enums are texts, without help.
as_json = json.JSONEncoder(ensure_ascii=True, default=_plain).encode
"""Return a value as JSON on one line; dataclasses are objects, and sets are sorted lists."""


def seal_of(content: bytes) -> str:
    """Return the digest in a content that is as it was written."""
    return str(read_object(content)[SEAL])


def check_spec(kind: Kind, spec: Spec, *, whole: bool) -> None:
    """Refuse a spec with fields that are not of the kind, or not of the right types.

    ``whole`` asks for every field but those that are left as held: that of a resource has them,
    whatever a service holds.

    Raises:
        SavedFileError: it has such a field, or lacks one.
    """
    known = TYPES[kind]
    needed = known.keys() - LEFT_AS_HELD[kind].keys() if whole else set()
    if not needed <= spec.keys() <= known.keys():
        raise SavedFileError(f"has a spec that does not fit {kind.value}")
    for name, value in spec.items():
        texts = type(value) is list and all(type(item) is str for item in value)
        if type(value) is not known[name] or (type(value) is list and not texts):
            raise SavedFileError(f"has a spec whose {name} is of a wrong type")
