"""Roles of the stand-in's projects, as the server's source has them.

A role has no id and no state: it is addressed by its project and its key. Its events are those of
the project. Two keys that differ only in case are the same to the server's unique constraints
(internal/eventstore/v3 folds them), though it finds a role only by the very key.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.zitadel.held import Held, Item, made
from tests.zitadel.refusals import FakeError


class ProjectRoles:
    """The calls of roles; each project is checked by the caller's organization."""

    def __init__(self, things: Held, projects_of: Callable[[str], list[str]]) -> None:
        self._things = things
        self._projects_of = projects_of  # ids, by the organization

    def add(self, asked: Item, org: str) -> Item:
        """Make a role; its key must be a new one, ignoring case."""
        project = self._project(asked, org)
        known = {key.lower() for key in self._keys(project)}
        if asked["roleKey"].lower() in known:
            raise FakeError(6, "V3-DKcYh", "Errors.Project.Role.AlreadyExists")
        fields = {
            "key": asked["roleKey"],
            "displayName": asked["displayName"],
            "group": asked["group"],
            "project": project,
        }
        item = self._things.add("roles", fields, org, _id_of(asked))
        return {"details": made(item)}

    def update(self, asked: Item, org: str) -> Item:
        """Update a role as a whole; one that changes nothing is refused."""
        self._project(asked, org)
        item = self._things.one("roles", _id_of(asked), "COMMAND-vv8M9")
        fields = {name: asked[name] for name in ("displayName", "group")}
        if all(item[name] == value for name, value in fields.items()):
            raise FakeError(9, "COMMAND-5M0cs", "Errors.NoChangesFound")
        item.update(fields)
        return {"details": self._things.touch("roles", item)}

    def remove(self, asked: Item, org: str) -> Item:
        """Remove a role, and with it the grants of it."""
        self._project(asked, org)
        item = self._things.one("roles", _id_of(asked), "COMMAND-m9vMf")
        self._things.remove("roles", item)
        return {"details": dict(item["details"])}

    def _project(self, asked: Item, org: str) -> str:
        project: str = asked["projectId"]
        if project not in self._projects_of(org):
            raise FakeError(9, "COMMAND-EbFMN", "Errors.Project.NotFound")
        return project

    def _keys(self, project: str) -> list[str]:
        roles = self._things.held["roles"].values()
        return [each["key"] for each in roles if each["project"] == project]


def _id_of(asked: Item) -> str:
    return f"{asked['projectId']}/{asked['roleKey']}"
