"""Everything that organizations of a ZITADEL hold, by its lists.

Lists come page by page, many side by side, and are held against their own totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.kinds.fields import KINDS
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.kinds import IN_ORGANIZATION, IN_PROJECT
from reconciler.resources.ref import PROJECT, Kind, ResourceRef
from reconciler.service_client.answers import id_of, text_of
from reconciler.service_client.wire import Answer, Wire, WireRefusal, error_id, service_error
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import (
    NO_PROJECT,
    PAGE,
    TOO_LARGE_A_PAGE,
    Owner,
    items_of,
    owner_of_item,
    total_of,
)
from reconciler.service_client.zitadel.roles import denied, role_that_reads
from reconciler.service_client.zitadel.steps import is_unknown_address
from reconciler.state import ObservedObject


@dataclass(slots=True)
class Listing:
    """One list as it is being read.

    Attributes:
        items: What it has so far.
        total: How many it must have, once that is known.
        is_sound: No item came twice, and the total did not change on the way.
        page: Items asked for at a time; 0 for as many as the service gives.
        kind: The calls of the kind that it lists.
        owner: The organization.
        was_refused: It was refused as by a server that is too old for it.
        project: Owner of what it lists; none for what belongs to the organization itself.
        beside: A list that tells more about the same objects. A server that does not have it has
            nothing in it.
    """

    kind: ZitadelKind
    operation: str
    fields: JsonObject
    owner: Owner
    project: Owner = NO_PROJECT
    items: list[JsonObject] = field(default_factory=list)
    total: int = -1
    is_sound: bool = True
    is_done: bool = False
    page: int = PAGE
    was_refused: bool = False
    is_beside: bool = False
    beside: Listing | None = None

    def next_page(self) -> Call:
        """Return the call for what comes next."""
        query = {"offset": len(self.items), "limit": self.page, "asc": True}
        return Call(self.operation, {**self.fields, "query": query}, self.owner.id)

    def can_go_on(self, refusal: WireRefusal) -> bool:
        """Return whether a refused list can be asked for in another way, and from then on is."""
        if self._is_newer and self.kind.can_ask_on(refusal, was_refused=self.was_refused):
            self.was_refused = True
            self.operation, self.fields = self.kind.list_call()
            return True
        if error_id(refusal) == TOO_LARGE_A_PAGE and self.page:
            self.page = 0
            return True
        if self.is_beside and is_unknown_address(refusal):
            self.is_done = True
            return True
        return False

    def take(self, answer: JsonObject) -> None:
        """Take in a page."""
        page, total = items_of(answer), total_of(answer)
        if self._is_newer:
            self.kind.answered()
        if self.total < 0:  # the first page; later ones must agree with it
            self.total = total
        # The list may change between two pages: an item that moved comes twice, another never.
        known = {self.kind.id_of(item) for item in self.items}
        fresh = {self.kind.id_of(item) for item in page}
        if len(fresh) != len(page) or known & fresh or (page and total != self.total):
            self.is_sound = False
        self.items += page
        self.is_done = not page or len(self.items) >= self.total or not self.is_sound
        if self.is_done and len(self.items) != self.total:
            self.is_sound = False

    @property
    def _is_newer(self) -> bool:
        """Return whether it is a list that old servers lack."""
        return self.operation == self.kind.newer_list

    def owned(self) -> Iterator[JsonObject]:
        """Yield what is of the organization: a list may hold what the whole instance has."""
        return (item for item in self.items if owner_of_item(item) == self.owner.id)

    def objects(self) -> Iterator[ObservedObject | str]:
        """Return what it lists, as ``Seen.add`` takes it in."""
        beside = self.beside.items if self.beside else ()
        return self.kind.objects(self.owned(), self.owner, self.project, beside)


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
                role = role_that_reads(f"organization {listing.owner.name}")
                raise denied(service_error(refusal), role)


READINGS = 3  # of everything, while lists change as they are read


@dataclass(slots=True)
class Seen:
    """The result of one reading.

    Attributes:
        unseen: Names of organizations that may exist all the same.
        remedy: The role that is missing for those, and where it is given.
    """

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

    def add(self, found: Iterable[ObservedObject | str]) -> None:
        """Take in objects, and sentences about others. Not every kind has names of its own."""
        for each in found:
            if isinstance(each, str):
                self.unexpressed.append(each)
            elif self.objects.setdefault(each.ref.key, each) is not each:
                self.name_clashes.append(each)


def read_organizations(
    wire: Wire, find: Callable[[], Seen], kinds: Mapping[Kind, ZitadelKind]
) -> Seen:
    """Read everything that is found; again where lists change while they are read."""
    listed = [calls for calls in kinds.values() if calls.lists]
    of_organizations = [calls for calls in listed if KINDS[calls.kind].owner == IN_ORGANIZATION]
    of_projects = [calls for calls in listed if KINDS[calls.kind].owner == IN_PROJECT]
    for _ in range(READINGS):
        seen = find()
        owners = [Owner(held.id, held.ref.name) for held in seen.everything]
        first = [
            Listing(calls, *calls.list_call(), owner)
            for owner in owners
            for calls in of_organizations
        ]
        read_lists(wire, first)
        in_projects = [each for listing in first for each in _of_each(listing, of_projects)]
        beside = [each for listing in first for each in _beside(listing)]
        read_lists(wire, [*in_projects, *beside])
        for listing in (*first, *in_projects):
            seen.add(listing.objects())
        lists = (*first, *in_projects, *beside)
        unsound = dict.fromkeys(each.owner.name for each in lists if not each.is_sound)
        # Lists of a busy service contradict themselves now and then. They are read again.
        if not unsound:
            break
    seen.incomplete += [f"The lists of {name} contradict their own totals." for name in unsound]
    return seen


def _of_each(projects: Listing, of_projects: Sequence[ZitadelKind]) -> Iterator[Listing]:
    """Yield the lists of what belongs to each project; none for a list of others."""
    for item in projects.owned() if projects.kind.kind is PROJECT else ():
        project = Owner(id_of(item), text_of(item, "name"))
        for calls in of_projects:
            operation, fields = calls.list_call()
            fields = {**fields, "projectId": project.id}
            yield Listing(calls, operation, fields, projects.owner, project)


def _beside(listing: Listing) -> Iterator[Listing]:
    """Yield the list that must be read beside another one, if there is one."""
    if call := listing.kind.list_beside(listing.owned()):
        listing.beside = Listing(listing.kind, *call, listing.owner, is_beside=True)
        yield listing.beside
