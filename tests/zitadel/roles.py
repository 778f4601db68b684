"""Roles of users of a ZITADEL, and what lists show to a user of the rights it has.

A role is held over the instance, one organization or one project. The permissions of a role are
the server's defaults (``InternalAuthZ`` of cmd/defaults.yaml), as far as this stand-in has calls
that need them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tests.zitadel.held import Item
from tests.zitadel.protos import Method
from tests.zitadel.refusals import FakeError

_ORG_READS = frozenset({"org.read", "org.idp.read", "org.action.read", "org.flow.read"})
_READS = _ORG_READS | {"project.read", "project.app.read", "project.role.read"}
_ORG_WRITES = frozenset(
    {"org.write", "org.idp.write", "org.action.write", "org.action.delete", "org.flow.write",
     "org.flow.delete", "project.create", "project.write", "project.delete", "project.app.write",
     "project.role.write", "project.role.delete"}
)  # fmt: skip
_OF_PROJECT = frozenset(
    {"project.read", "project.write", "project.delete", "project.app.read", "project.app.write",
     "project.app.delete", "project.role.read", "project.role.write", "project.role.delete"}
)  # fmt: skip
_IAM = frozenset({"iam.read", "iam.write", "iam.idp.read", "iam.idp.write", "org.create"})
ROLES: Mapping[str, frozenset[str]] = {
    "IAM_OWNER": _READS | _ORG_WRITES | _OF_PROJECT | _IAM,
    "IAM_OWNER_VIEWER": _READS | {"iam.read", "iam.idp.read"},
    "IAM_ORG_MANAGER": _READS | _ORG_WRITES | _OF_PROJECT | {"org.create"},
    "IAM_END_USER_IMPERSONATOR": frozenset(),
    "ORG_OWNER": _READS | _ORG_WRITES,  # may not delete applications
    "ORG_OWNER_VIEWER": _READS,
    "ORG_SETTINGS_MANAGER": frozenset({"org.read", "org.write", "org.idp.read", "org.idp.write"}),
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


def readable(answer: Item, user: User) -> Item:
    """Leave out of a page the organizations that a user may not read, after they were counted."""
    mine = [
        {name: each[name] for name in ("id", "name")}
        | {"state": each["state"].replace("ORG_", "ORGANIZATION_"), "details": _v2(each)}
        for each in answer["result"]
        if "org.read" in user.may_in(each["id"])
    ]
    return {"details": {"totalResult": answer["details"]["totalResult"]}, "result": mine}


def memberships_of(
    user: User, held: Mapping[str, Mapping[str, Item]], asked: Mapping[str, Any]
) -> list[Item]:
    """Return the memberships of a user, one for each place; of the instance, if asked for that."""
    roles: dict[str, list[str]] = {}
    for each in user.roles:
        roles.setdefault(each.place, []).append(each.role)
    is_of_instance = any("iamQuery" in query for query in asked.get("queries", []))
    return [
        {"roles": names, **_place(place, held)}
        for place, names in roles.items()
        if not (is_of_instance and place)
    ]


def _place(place: str, held: Mapping[str, Mapping[str, Item]]) -> Item:
    if not place:
        return {"iam": True, "displayName": "ZITADEL"}
    kind, name = ("orgs", "orgId") if place in held["orgs"] else ("projects", "projectId")
    return {name: place, "displayName": held[kind][place]["name"]}


def _v2(item: Item) -> Item:
    return {name: value for name, value in item["details"].items() if name != "creationDate"}
