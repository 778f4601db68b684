"""What a ZITADEL holds, and what its lists show of it: they lag behind its writes."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Mapping
from typing import Any

from tests.zitadel.refusals import FakeError

# A provider stands in two lists: `idps` is what the template calls see, `oldIdps` what the old
# calls see. Both have its id.
KINDS = ("orgs", "projects", "roles", "apps", "idps", "oldIdps", "actions", "flows")
MOMENT = "2026-01-01T00:00:00.123456Z"
STATES = {
    "orgs": "ORG_STATE", "projects": "PROJECT_STATE", "apps": "APP_STATE",
    "idps": "IDP_STATE", "oldIdps": "IDP_STATE", "actions": "ACTION_STATE", "flows": "FLOW_STATE",
}  # fmt: skip

Item = dict[str, Any]


class Held:
    """Objects by kind and id.

    Attributes:
        held: As they are.
        shown: As lists show them.
        lag: Seconds after which lists show what was written.
        loses: Names of objects to come whose rows the projection loses: they are held, and no
            list and no read by an id ever shows them (2 of 3,400 on a real server).
    """

    def __init__(self, lag: float) -> None:
        self.lag = lag
        self.loses: set[str] = set()
        self._lost: set[str] = set()
        self.held: dict[str, dict[str, Item]] = {kind: {} for kind in KINDS}
        self.shown = copy.deepcopy(self.held)
        self._due: list[tuple[float, str, str, Item | None]] = []
        self._ids = itertools.count(300000000000000000)
        self._sequences: dict[str, int] = {}

    def new_id(self) -> str:
        """Return an id that was never used."""
        return str(next(self._ids))

    def one(self, kind: str, object_id: str, error_id: str, code: int = 5) -> Item:
        """Return an object of an id."""
        if object_id not in self.held[kind]:
            raise FakeError(code, error_id, "not found")
        return self.held[kind][object_id]

    def add(
        self, kind: str, fields: Mapping[str, Any], owner: str = "", object_id: str = ""
    ) -> Item:
        """Hold a new object; without an owner it is its own."""
        object_id = object_id or self.new_id()
        state = {"state": f"{STATES[kind]}_ACTIVE"} if kind in STATES else {}
        item: Item = {**state, **fields, "id": object_id}
        item["details"] = {"resourceOwner": owner or object_id}
        self.held[kind][object_id] = item
        if item.get("name") in self.loses:
            self._lost.add(object_id)
        self.touch(kind, item)
        return item

    def touch(self, kind: str, item: Item) -> Item:
        """Count an event of an object; return its details."""
        owner: str = item["details"]["resourceOwner"]
        created = item["details"].get("creationDate", MOMENT)
        aggregates = {
            "apps": item.get("project", ""),
            "roles": item.get("project", ""),
            "idps": owner,
            "oldIdps": owner,
            "flows": owner,
        }
        aggregate = aggregates.get(kind, str(item["id"]))
        self._sequences[aggregate] = self._sequences.get(aggregate, 0) + (
            2 if kind == "apps" else 1
        )
        item["details"] = {
            "sequence": str(self._sequences[aggregate]),
            "changeDate": MOMENT,
            "resourceOwner": owner,
            **({"creationDate": created} if kind not in {"actions", "flows"} else {}),
        }
        self._later(kind, item["id"], item)
        return changed(item)

    def follow(self, kind: str, item: Item, other: Item) -> None:
        """Show the last event of another object, which this one reads as well."""
        item["details"] = {**item["details"], **changed(other)}
        self._later(kind, item["id"], item)

    def remove(self, kind: str, item: Item) -> None:
        """Hold an object no more."""
        del self.held[kind][item["id"]]
        self._later(kind, item["id"], None)

    def mend(self) -> None:
        """Show what was lost, as after its operator rebuilt the projections."""
        self.loses, self._lost = set(), set()
        self.shown = copy.deepcopy(self.held)

    def catch_up(self, now: float | None = None) -> None:
        """Show what was written until a moment; by default, until now less the lag."""
        now = time.monotonic() if now is None else now
        while self._due and self._due[0][0] <= now:
            _, kind, object_id, item = self._due.pop(0)
            if item is None:
                self.shown[kind].pop(object_id, None)
            else:
                self.shown[kind][object_id] = item

    def _later(self, kind: str, object_id: str, item: Item | None) -> None:
        if object_id in self._lost:
            return
        self._due.append((time.monotonic() + self.lag, kind, object_id, copy.deepcopy(item)))
        if not self.lag:
            self.catch_up(float("inf"))


def made(item: Item) -> Item:
    """Return the details of an object that was just made: no time of a change."""
    details = dict(item["details"])
    details["creationDate"] = details.pop("changeDate")
    return details


def changed(item: Item) -> Item:
    """Return the details of an object that was just changed: no time of its creation."""
    return {name: value for name, value in item["details"].items() if name != "creationDate"}
