"""Refusals of a ZITADEL, and the rules of its fields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from google.protobuf.message import Message

from tests.zitadel.protos import rules_of

STATUS = {2: 500, 3: 400, 5: 404, 6: 409, 7: 403, 9: 400, 10: 409, 12: 405, 13: 500, 16: 401}


class FakeError(Exception):
    """The reason of a refusal."""

    def __init__(self, code: int, error_id: str, message: str = "no") -> None:
        super().__init__(message)
        self.code = code
        self.error_id = error_id
        self.message = message

    @property
    def body(self) -> dict[str, Any]:
        """Return the JSON of the refusal. One without an id has no details."""
        if not self.error_id:
            return {"code": self.code, "message": self.message}
        detail = {
            "@type": "type.googleapis.com/zitadel.v1.ErrorDetail",
            "id": self.error_id,
            "message": self.message,
        }
        told = f"{self.message} ({self.error_id})"
        return {"code": self.code, "message": told, "details": [detail]}


def with_slug(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON of a refusal in its second form: with a slug, and without an id."""
    if "details" not in body:
        return dict(body)
    (detail,) = body["details"]
    slug = {"@type": "type.googleapis.com/zitadel.error.v2.ErrorDetail", "slug": "refused.here"}
    return {**body, "message": detail["message"], "details": [slug]}


def check_rules(message: Message) -> None:
    """Refuse the first field that breaks its rule, in order; an optional one may be left out."""
    for field, shown, rules, words in rules_of(message.DESCRIPTOR.full_name):
        is_optional = message.DESCRIPTOR.fields_by_name[field].containing_oneof is not None
        if is_optional and not message.HasField(field):
            continue
        why = _broken(getattr(message, field), rules, words)
        if why:
            raise FakeError(3, "", f"invalid {message.DESCRIPTOR.name}.{shown}: {why}")


def _broken(value: Any, rules: Any, words: Collection[int]) -> str:
    match rules.WhichOneof("type"):
        case "string":
            string = rules.string
            if len(value) < string.min_len or (
                string.HasField("max_len") and len(value) > string.max_len
            ):
                return (
                    f"value length must be between {string.min_len} and {string.max_len} runes, "
                    "inclusive"
                )
            if string.HasField("max_bytes") and len(value.encode()) > string.max_bytes:
                return f"value length must be at most {string.max_bytes} bytes"
        case "enum":
            if rules.enum.defined_only and value not in words:
                return "value must be one of the defined enum values"
        case "duration":
            seconds = value.seconds + value.nanos / 1e9
            if not 0 <= seconds <= rules.duration.lte.seconds:
                return f"value must be inside range [0s, {rules.duration.lte.seconds}s]"
        case _:
            pass
    return ""
