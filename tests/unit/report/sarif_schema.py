"""The part of SARIF 2.1.0's schema that a run of findings can touch, after the standard's text.

Objects are closed, as they are in the standard but for ``properties`` bags, which nobody here
writes. A field that is new in a report must be looked up and added here first.
"""

from __future__ import annotations

from typing import Any


def _closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


_TEXT = {"type": "string"}
_NUMBER = {"type": "integer", "minimum": 1}
_URI_REFERENCE = {"type": "string", "pattern": r"^[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*$"}
_MESSAGE = _closed(("text",), text=_TEXT)
_RULE = _closed(
    ("id",),
    id=_TEXT,
    name=_TEXT,
    shortDescription=_MESSAGE,
    fullDescription=_MESSAGE,
    help=_MESSAGE,
)
_DRIVER = _closed(
    ("name",),
    name=_TEXT,
    version=_TEXT,
    rules={"type": "array", "uniqueItems": True, "items": _RULE},
)
_REGION = _closed((), startLine=_NUMBER, startColumn=_NUMBER)
_PLACE = _closed(
    ("artifactLocation",),
    artifactLocation=_closed(("uri",), uri=_URI_REFERENCE),
    region=_REGION,
)
_RESULT = _closed(
    ("message",),
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level={"enum": ["none", "note", "warning", "error"]},
    message=_MESSAGE,
    locations={
        "type": "array",
        "items": _closed((), physicalLocation=_PLACE),
    },
    partialFingerprints={"type": "object", "additionalProperties": _TEXT},
)

SARIF = _closed(
    ("version", "runs"),
    **{"$schema": {"type": "string", "pattern": "^https://"}},
    version={"enum": ["2.1.0"]},
    runs={
        "type": "array",
        "minItems": 1,
        "items": _closed(
            ("tool",),
            tool=_closed(("driver",), driver=_DRIVER),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results={"type": "array", "items": _RESULT},
        ),
    },
)
