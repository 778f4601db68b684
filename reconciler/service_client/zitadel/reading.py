"""Everything that organizations of a ZITADEL hold, by its lists.

Lists come page by page, many side by side, and are held against their own totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.kinds import IN_ORGANIZATION, IN_PROJECT
from reconciler.resources.ref import PROJECT, Kind, ResourceRef
from reconciler.service_client.answers import id_of, text_of
from reconciler.service_client.wire import Answer, Wire, WireRefusal, error_id, service_error
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import (
    NO_PROJECT,
    Owner,
    items_of,
    owner_of_item,
    total_of,
)
from reconciler.service_client.zitadel.roles import denied_read
from reconciler.service_client.zitadel.steps import is_unknown_address
from reconciler.state import ObservedObject

PAGE = 500  # items
TOO_LARGE_A_PAGE = "QUERY-4M0fs"  # an operator may lower the limit; without one it is the most


@dataclass(slots=True)
class Listing:
    """One list as it is being read.

    Attributes:
        items: What it has so far.
        total: How many it must have, once that was told.
        is_sound: No item came twice, and the total did not change on the way.
        page: Items asked for at a time; 0 for as many as the service gives.
        kind: The calls of the kind that it lists; None for organizations.
        was_refused: It was refused as by a server that is too old for it.
        owner: Name of the organization.
        is_optional: A server that does not have it has nothing in it.
    """

    operation: str
    organization: str
    fields: JsonObject = field(default_factory=dict)
    items: list[JsonObject] = field(default_factory=list)
    total: int = -1
    is_sound: bool = True
    is_done: bool = False
    page: int = PAGE
    kind: ZitadelKind | None = None
    was_refused: bool = False
    owner: str = ""
    is_optional: bool = False

    def next_page(self) -> Call:
        """Return the call for what comes next."""
        query = {"offset": len(self.items), "limit": self.page, "asc": True}
        return Call(self.operation, {**self.fields, "query": query}, self.organization)

    def can_go_on(self, refusal: WireRefusal) -> bool:
        """Return whether a refused list can be asked for in another way, and from then on is."""
        newer = self._newer
        if newer and newer.can_ask_on(refusal, was_refused=self.was_refused):
            self.was_refused = True
            self.operation, self.fields = newer.list_call()
            return True
        if error_id(refusal) == TOO_LARGE_A_PAGE and self.page:
            self.page = 0
            return True
        if self.is_optional and is_unknown_address(refusal):
            self.is_done = True
            return True
        return False

    def take(self, answer: JsonObject) -> None:
        """Take in a page."""
        page, total = items_of(answer), total_of(answer)
        if newer := self._newer:
            newer.answered()
        if self.total < 0:  # the first page; later ones must agree with it
            self.total = total
        # The list may change between two pages: an item that moved comes twice, another never.
        own_id = self.kind.id_of if self.kind else id_of
        known = {own_id(item) for item in self.items}
        fresh = {own_id(item) for item in page}
        if len(fresh) != len(page) or known & fresh or (page and total != self.total):
            self.is_sound = False
        self.items += page
        self.is_done = not page or len(self.items) >= self.total or not self.is_sound
        if self.is_done and len(self.items) != self.total:
            self.is_sound = False

    @property
    def _newer(self) -> ZitadelKind | None:
        """Return the calls of the kind if this is a list that old servers lack."""
        return self.kind if self.kind and self.operation == self.kind.newer_list else None


def read_lists(wire: Wire, listings: Sequence[Listing]) -> None:
    """Read lists to their ends, a page of each at a time."""
    while waiting := [listing for listing in listings if not listing.is_done]:
        replies = wire.send([listing.next_page() for listing in waiting])
        refused = []
        for listing, reply in zip(waiting, replies, strict=True):
            if isinstance(reply, Answer):
                listing.take(reply.fields)
            else:
                refused.append((listing, reply))
        # Answers come first: one answered list shows that the server has it.
        for listing, refusal in refused:
            if not listing.can_go_on(refusal):
                raise denied_read(service_error(refusal), listing.owner)


def reply_to(wire: Wire, call: Call) -> JsonObject | WireRefusal:
    """Return what one call answers, or why it does not."""
    (reply,) = wire.send([call])
    return reply.fields if isinstance(reply, Answer) else reply


READINGS = 3  # of everything, while lists change as they are read


class Found(NamedTuple):
    """Organizations by name.

    Attributes:
        organizations: Those that the user may read.
        unseen: Names that may exist all the same.
        remedy: The role that is missing for those, and where it is given.
    """

    organizations: tuple[ObservedObject, ...]
    unseen: tuple[str, ...] = ()
    remedy: str = ""


@dataclass(slots=True)
class Seen:
    """The result of one reading."""

    objects: dict[ResourceRef, ObservedObject] = field(default_factory=dict)
    name_clashes: list[ObservedObject] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    unseen: tuple[str, ...] = ()
    remedy: str = ""
    unexpressed: list[str] = field(default_factory=list)

    @property
    def everything(self) -> Sequence[ObservedObject]:
        """Return every object, those of a shared name included."""
        return [*self.objects.values(), *self.name_clashes]

    def add(self, found: Iterable[ObservedObject]) -> None:
        """Take in objects. Not every kind has names of its own."""
        for each in found:
            if self.objects.setdefault(each.ref.key, each) is not each:
                self.name_clashes.append(each)


def read_organizations(
    wire: Wire, find: Callable[[], Found], kinds: Mapping[Kind, ZitadelKind]
) -> Seen:
    """Read everything that is found; again where lists change while they are read."""
    for _ in range(READINGS):
        found, unseen, remedy = find()
        seen = Seen(unseen=unseen, remedy=remedy)
        lists = [_Lists(Owner(held.id, held.ref.name), kinds) for held in found]
        read_lists(wire, [each for some in lists for each in some.first])
        for some in lists:
            some.begin_second()
        read_lists(wire, [each for some in lists for each in some.second])
        seen.add(found)
        unsound = [some.owner.name for some in lists if not some.are_sound]
        for some in lists:
            seen.add(some.objects())
            seen.unexpressed += some.unexpressed()
        # Lists of a busy service contradict themselves now and then. They are read again.
        if not unsound:
            break
    seen.incomplete += [f"The lists of {name} contradict their own totals." for name in unsound]
    return seen


class _Lists:
    """The lists of one organization.

    Attributes:
        first: Lists of what belongs to the organization itself, which are read at once.
        second: Those that are begun when the first ones are read.
    """

    def __init__(self, owner: Owner, kinds: Mapping[Kind, ZitadelKind]) -> None:
        self.owner = owner
        self._kinds = kinds
        self._own = {
            kind: self._list(calls, *calls.list_call())
            for kind, calls in kinds.items()
            if calls.lists and KINDS[kind].owner == IN_ORGANIZATION
        }
        self._in_projects: list[tuple[ZitadelKind, Owner, Listing]] = []
        self._beside: dict[Kind, Listing] = {}

    def _list(self, calls: ZitadelKind, operation: str, fields: JsonObject) -> Listing:
        return Listing(operation, self.owner.id, fields, kind=calls, owner=self.owner.name)

    def begin_second(self) -> None:
        """Begin the lists of what belongs to each project, and those beside the first ones."""
        of_projects = [
            calls
            for kind, calls in self._kinds.items()
            if calls.lists and KINDS[kind].owner == IN_PROJECT
        ]
        for item in self._owned(self._own[PROJECT]):
            project = Owner(id_of(item), text_of(item, "name"))
            for calls in of_projects:
                operation, fields = calls.list_call()
                listing = self._list(calls, operation, {**fields, "projectId": project.id})
                self._in_projects.append((calls, project, listing))
        for kind, listing in self._own.items():
            if beside := self._kinds[kind].list_beside(self._owned(listing)):
                self._beside[kind] = self._list(self._kinds[kind], *beside)
                self._beside[kind].is_optional = True

    @property
    def first(self) -> Iterable[Listing]:
        return self._own.values()

    @property
    def second(self) -> Iterable[Listing]:
        return (*(listing for _, _, listing in self._in_projects), *self._beside.values())

    @property
    def are_sound(self) -> bool:
        return all(each.is_sound for each in (*self.first, *self.second))

    def objects(self) -> Iterator[ObservedObject]:
        """Yield everything that belongs to the organization."""
        for kind, listing in self._own.items():
            beside = self._beside[kind].items if kind in self._beside else ()
            items = self._owned(listing)
            yield from self._kinds[kind].objects(items, self.owner, NO_PROJECT, beside)
        for calls, project, listing in self._in_projects:
            yield from calls.objects(self._owned(listing), self.owner, project, ())

    def unexpressed(self) -> Iterator[str]:
        """Yield a sentence for each item that no manifest can declare."""
        for kind, listing in self._own.items():
            yield from self._kinds[kind].unexpressed(self._owned(listing), self.owner)

    def _owned(self, listing: Listing) -> Iterator[JsonObject]:
        """Yield what is of this organization: a list may hold what the whole instance has."""
        return (item for item in listing.items if owner_of_item(item) == self.owner.id)
