"""Refusals of a ZITADEL, the rules of its fields, and the rights of its roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tests.zitadel.protos import Method, rules_of

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


def check_rules(message: Message) -> None:
    """Refuse the first field that breaks its rule, in the order of the fields."""
    for field, shown, rules, words in rules_of(message.DESCRIPTOR.full_name):
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


# Role: what it may. The permissions of 2.11 of the facts, and what reads need.
_READS = frozenset(
    {"org.read", "project.read", "project.app.read", "org.idp.read", "org.action.read",
     "org.flow.read"}
)  # fmt: skip
_ORG_WRITES = frozenset(
    {"org.write", "org.idp.write", "org.action.write", "org.action.delete", "org.flow.write",
     "org.flow.delete", "project.create", "project.write", "project.app.write"}
)  # fmt: skip
_OF_PROJECT = frozenset(
    {"project.read", "project.write", "project.delete", "project.app.read", "project.app.write",
     "project.app.delete"}
)  # fmt: skip
_IAM = frozenset({"iam.read", "iam.write", "iam.idp.read", "iam.idp.write", "org.create"})
ROLES: Mapping[str, frozenset[str]] = {
    "IAM_OWNER": _READS | _ORG_WRITES | _OF_PROJECT | _IAM,
    "IAM_OWNER_VIEWER": _READS | {"iam.read", "iam.idp.read"},
    "IAM_ORG_MANAGER": _READS | _ORG_WRITES | _OF_PROJECT | {"org.create"},
    "ORG_OWNER": _READS | _ORG_WRITES,  # may not delete applications
    "ORG_OWNER_VIEWER": _READS,
    "PROJECT_OWNER": _OF_PROJECT,
}


class Membership(NamedTuple):
    """A role, and where it is held: empty for the instance, else an organization or project."""

    role: str
    place: str = ""


class User(NamedTuple):
    """The user behind a token: where it lives, and its roles."""

    home: str
    roles: tuple[Membership, ...]

    def may_in(self, organization: str) -> frozenset[str]:
        """Return its permissions over a whole organization."""
        return frozenset().union(
            *(ROLES[each.role] for each in self.roles if each.place in {"", organization})
        )

    def check(
        self, method: Method, request: Message, organization: str, projects: Collection[str]
    ) -> None:
        """Refuse a call for an organization with these projects that the user may not make."""
        if method.permission in {"", "authenticated"}:
            return
        here = [each for each in self.roles if each.place in {"", organization, *projects}]
        if not here:
            raise FakeError(5, "AUTHZ-cdgFk", "Errors.Membership.NotFound")
        if method.permission in self.may_in(organization):
            return
        limited = {e.place for e in here if method.permission in ROLES[e.role]}
        if not limited:
            raise FakeError(7, "AUTH-5mWD2", "No matching permissions found")
        if method.checked and getattr(request, method.checked) not in limited:
            raise FakeError(7, "AUTH-3jknH", "No matching permissions found")
