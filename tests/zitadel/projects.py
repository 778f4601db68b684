"""Projects of the stand-in, with their flags, as the server's source has them.

Every update is a full one in all generations: internal/command/project.go compares what it was
sent with what it holds, flag by flag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.zitadel.held import Held, Item, made
from tests.zitadel.refusals import FakeError

FLAGS: Mapping[str, Any] = {
    "projectRoleAssertion": False,
    "projectRoleCheck": False,
    "hasProjectCheck": False,
    "privateLabelingSetting": "PRIVATE_LABELING_SETTING_UNSPECIFIED",
}


class Projects:
    """The calls that write projects.

    Attributes:
        refuses_idle: Whether an update without a change is refused, as by a server older than
            May 2025.
    """

    def __init__(
        self, things: Held, check_name: Callable[[str, str], None], *, refuses_idle: bool
    ) -> None:
        self.refuses_idle = refuses_idle
        self._things = things
        self._check_name = check_name  # of a name and the organization

    def add(self, asked: Item, org: str) -> Item:
        """Make a project."""
        self._check_name(asked["name"], org)
        item = self._things.add("projects", asked, org)
        return {"id": item["id"], "details": made(item)}

    def update(self, asked: Item, org: str) -> Item:
        """Update a whole project: a flag that is left out is off afterwards."""
        item = self._things.one("projects", asked["id"], "COMMAND-3M9sd")
        if item["details"]["resourceOwner"] != org:
            raise FakeError(5, "COMMAND-3M9sd", "Errors.Project.NotFound")
        if all({**FLAGS, **item}[name] == value for name, value in asked.items()):
            if self.refuses_idle:
                raise FakeError(9, "COMMAND-2M0fs", "Errors.NoChangesFound")
            return {"details": dict(item["details"])}  # a success, and no event
        if asked["name"].lower() != item["name"].lower():
            self._check_name(asked["name"], org)
        item.update(asked)
        return {"details": self._things.touch("projects", item)}
