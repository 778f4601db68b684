"""Everything that organizations of a ZITADEL hold, by list calls only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.resources.call import Call
from reconciler.resources.ref import Kind, ResourceRef, fold
from reconciler.service_client.observation import text_of
from reconciler.service_client.refusals import service_error
from reconciler.service_client.wire import Wire, WireRefusal
from reconciler.service_client.zitadel_lists import (
    OWN_PROVIDERS,
    Listing,
    asked,
    items_of,
    named,
    read_lists,
)
from reconciler.service_client.zitadel_objects import (
    Owner,
    action,
    application,
    identity_provider,
    organization,
    owner_of_item,
    project,
)
from reconciler.state import ObservedObject

READINGS = 3
_DENIED = frozenset({7, 12, 16})


@dataclass(slots=True)
class Seen:
    """The result of one reading."""

    objects: dict[ResourceRef, ObservedObject] = field(default_factory=dict)
    doubles: list[ObservedObject] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def add(self, found: Iterator[ObservedObject]) -> None:
        """Take in objects. Not every kind has names of its own."""
        for each in found:
            if self.objects.setdefault(each.ref.key, each) is not each:
                self.doubles.append(each)


def visible_organizations(wire: Wire) -> Sequence[str]:
    """Return the names of every organization that the caller may see.

    Raises:
        ServiceError: not even its own.
    """
    listing = Listing("ListOrgs", "")
    first = asked(wire, listing.next_page())
    if isinstance(first, WireRefusal):
        return [_own(wire, first).ref.name]
    listing.take(first)
    read_lists(wire, [listing])
    return sorted(text_of(item, "name") for item in listing.items)


def read_organizations(wire: Wire, organizations: Collection[str]) -> Seen:
    """Read everything; again where lists change while they are read."""
    for _ in range(READINGS):
        seen = Seen()
        found = [held for name in organizations if (held := _find(wire, name, seen))]
        lists = [_Lists(Owner(held.id, held.ref.name)) for held in found]
        read_lists(wire, [each for some in lists for each in some.first])
        for some in lists:
            some.list_applications()
        read_lists(wire, [each for some in lists for each in some.applications])
        seen.add(iter(found))
        unsound = [some.owner.name for some in lists if not some.are_sound]
        for some in lists:
            seen.add(some.objects())
        if not unsound:
            break
    seen.doubts += [f"The lists of {name} contradict their own totals." for name in unsound]
    return seen


def _find(wire: Wire, name: str, seen: Seen) -> ObservedObject | None:
    answer = asked(wire, named(Kind.ORGANIZATION, name, ""))
    if isinstance(answer, WireRefusal):
        own = _own(wire, answer)
        if fold(own.ref.name) == fold(name):
            return own
        seen.unseen.append(name)
        return None
    for item in items_of(answer):
        if fold(text_of(item, "name")) == fold(name):
            return organization(item)
    return None


def _own(wire: Wire, refusal: WireRefusal) -> ObservedObject:
    """Return the token's own organization, if it may not list others."""
    if refusal.code not in _DENIED:
        raise service_error(refusal)
    answer = asked(wire, Call("GetMyOrg"))
    if isinstance(answer, WireRefusal):
        raise service_error(answer)
    found = answer.get("org")
    return organization(found if isinstance(found, dict) else {})


class _Lists:
    """The lists of one organization."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._projects = Listing("ListProjects", owner.id)
        providers = {"queries": [OWN_PROVIDERS], "sortingColumn": "IDP_FIELD_NAME_NAME"}
        self._providers = Listing("ListOrgIDPs", owner.id, providers)
        self._actions = Listing("ListActions", owner.id)
        self.first = (self._projects, self._providers, self._actions)
        self.applications: list[Listing] = []
        self._owners: list[Owner] = []

    def list_applications(self) -> None:
        """Begin a list of applications for each project."""
        self._owners = [
            Owner(project(item, self.owner).id, text_of(item, "name"))
            for item in self._own(self._projects)
        ]
        self.applications = [
            Listing("ListApps", self.owner.id, {"projectId": each.id}) for each in self._owners
        ]

    @property
    def are_sound(self) -> bool:
        """Return whether no list contradicts itself."""
        return all(each.is_sound for each in (*self.first, *self.applications))

    def objects(self) -> Iterator[ObservedObject]:
        """Yield everything that belongs to the organization."""
        yield from (project(item, self.owner) for item in self._own(self._projects))
        yield from (identity_provider(item, self.owner) for item in self._own(self._providers))
        yield from (action(item, self.owner) for item in self._own(self._actions))
        for owner, listing in zip(self._owners, self.applications, strict=True):
            yield from (application(item, self.owner, owner) for item in self._own(listing))

    def _own(self, listing: Listing) -> Iterator[Mapping[str, Any]]:
        """Yield what is of this organization: a list may hold what the whole instance has."""
        return (item for item in listing.items if owner_of_item(item) == self.owner.id)
