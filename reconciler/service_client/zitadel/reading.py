"""Everything that organizations of a ZITADEL hold: list calls, and one for each flow.

Lists come page by page, many side by side, and are held against their own totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reconciler.kinds.action_flow.flows import FLOWS
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.answers import id_of, text_of
from reconciler.service_client.wire import (
    Answer,
    Wire,
    WireRefusal,
    answers_of,
    error_id,
    service_error,
)
from reconciler.service_client.zitadel.objects import (
    Owner,
    answered_flow,
    application,
    flow_object,
    is_active,
    items_of,
    owner_of_item,
    plain_object,
    total_of,
)
from reconciler.service_client.zitadel.providers import (
    LIST_TEMPLATES,
    OLD_LIST,
    ProviderCalls,
    is_unknown_address,
)
from reconciler.service_client.zitadel.roles import denied_read
from reconciler.state import ObservedObject

PAGE = 500  # items
PRESENT, OF_INSTANCE = "ListOrganizations", "ListOrgs"  # organizations for all, and for few
_NAME_QUERIES: Mapping[Kind, tuple[str, str]] = {
    Kind.ORGANIZATION: (PRESENT, "nameQuery"),
    Kind.PROJECT: ("ListProjects", "nameQuery"),
    Kind.OIDC_APPLICATION: ("ListApps", "nameQuery"),
    Kind.ACTION: ("ListActions", "actionNameQuery"),
}
TOO_LARGE_A_PAGE = "QUERY-4M0fs"  # an operator may lower the limit; without one it is the most


@dataclass(slots=True)
class Listing:
    """One list as it is being read.

    Attributes:
        items: What it has so far.
        total: How many it must have, once that was told.
        is_sound: No item came twice, and the total did not change on the way.
        page: Items asked for at a time; 0 for as many as the service gives.
        providers: The calls for providers, if this is a list of them.
        was_refused: The template list was refused as by a server that does not have it.
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
    providers: ProviderCalls | None = None
    was_refused: bool = False
    owner: str = ""
    is_optional: bool = False

    def next_page(self) -> Call:
        """Return the call for what comes next."""
        query = {"offset": len(self.items), "limit": self.page, "asc": True}
        return Call(self.operation, {**self.fields, "query": query}, self.organization)

    def can_go_on(self, refusal: WireRefusal) -> bool:
        """Return whether a refused list can be asked for in another way, and from then on is."""
        calls = self._template_calls
        if calls and calls.can_ask_on(refusal, was_refused=self.was_refused):
            self.was_refused = True
            self.operation, self.fields = calls.list_call()
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
        if calls := self._template_calls:
            calls.answered()
        if self.total < 0:  # the first page; later ones must agree with it
            self.total = total
        # The list may change between two pages: an item that moved comes twice, another never.
        known = {id_of(item) for item in self.items}
        fresh = {id_of(item) for item in page}
        if len(fresh) != len(page) or known & fresh or (page and total != self.total):
            self.is_sound = False
        self.items += page
        self.is_done = not page or len(self.items) >= self.total or not self.is_sound
        if self.is_done and len(self.items) != self.total:
            self.is_sound = False

    @property
    def _template_calls(self) -> ProviderCalls | None:
        """Return the calls for providers if this is the list of the template calls."""
        return self.providers if self.operation == LIST_TEMPLATES else None


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
        # Answers come first: one answered template list shows that the server has these calls.
        for listing, refusal in refused:
            if not listing.can_go_on(refusal):
                raise denied_read(service_error(refusal), listing.owner)


def named(kind: Kind, name: str, organization: str, project: str = "") -> Call:
    """Return the call that looks for objects by their name, in upper or lower case.

    Providers have calls of their own (``providers``).
    """
    operation, query = _NAME_QUERIES[kind]
    by_name = {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
    fields: dict[str, object] = {"queries": [{query: by_name}]}
    if kind is Kind.OIDC_APPLICATION:
        fields["projectId"] = project
    return Call(operation, fields, organization)


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


def read_organizations(wire: Wire, find: Callable[[], Found], providers: ProviderCalls) -> Seen:
    """Read everything that is found; again where lists change while they are read."""
    for _ in range(READINGS):
        found, unseen, remedy = find()
        seen = Seen(unseen=unseen, remedy=remedy)
        lists = [_Lists(Owner(held.id, held.ref.name), providers) for held in found]
        read_lists(wire, [each for some in lists for each in some.first])
        for some in lists:
            some.begin_second()
        read_lists(wire, [each for some in lists for each in some.second])
        seen.add(found)
        unsound = [some.owner.name for some in lists if not some.are_sound]
        for some in lists:
            seen.add(some.objects())
            seen.unexpressed += some.other_providers()
        # Lists of a busy service contradict themselves now and then. They are read again.
        if not unsound:
            break
    seen.incomplete += [f"The lists of {name} contradict their own totals." for name in unsound]
    return seen


class _Lists:
    """The lists of one organization.

    Attributes:
        first: Lists that are read at once.
        second: Those that are begun when the first ones are read.
    """

    def __init__(self, owner: Owner, providers: ProviderCalls) -> None:
        self.owner = owner
        self._calls = providers
        self._projects = self._list("ListProjects")
        self._providers = self._list(*providers.list_call())
        self._providers.providers = providers
        self._actions = self._list("ListActions")
        self.first = (self._projects, self._providers, self._actions)
        self._applications: dict[Owner, Listing] = {}
        self._old: list[Listing] = []

    def _list(self, operation: str, fields: JsonObject | None = None) -> Listing:
        return Listing(operation, self.owner.id, fields or {}, owner=self.owner.name)

    def begin_second(self) -> None:
        """Begin a list of applications for each project, and one of the states of providers."""
        for item in self._own(self._projects):
            project = Owner(id_of(item), text_of(item, "name"))
            self._applications[project] = self._list("ListApps", {"projectId": project.id})
        if self._calls.need_old_list(self._own(self._providers)):
            self._old = [self._list(*OLD_LIST)]
            self._old[0].is_optional = True

    @property
    def second(self) -> Sequence[Listing]:
        return (*self._applications.values(), *self._old)

    @property
    def are_sound(self) -> bool:
        return all(each.is_sound for each in (*self.first, *self.second))

    def objects(self) -> Iterator[ObservedObject]:
        """Yield everything that belongs to the organization."""
        yield from self._plain(Kind.PROJECT, self._projects)
        states = {id_of(item): is_active(item) for each in self._old for item in each.items}
        for item in self._own(self._providers):
            if self._calls.is_ours(item):
                yield self._calls.with_state(self._calls.observed(item, self.owner), states)
        yield from self._plain(Kind.ACTION, self._actions)
        for project, listing in self._applications.items():
            yield from (application(item, self.owner, project) for item in self._own(listing))

    def _plain(self, kind: Kind, listing: Listing) -> Iterator[ObservedObject]:
        return (plain_object(kind, item, self.owner) for item in self._own(listing))

    def other_providers(self) -> Iterator[str]:
        """Yield a sentence for each provider of a kind that no manifest can declare."""
        for item in self._own(self._providers):
            if not self._calls.is_ours(item):
                kind, name = item.get("type", "of an unknown type"), text_of(item, "name")
                yield f"The identity provider {name} of {self.owner.name} is {kind}."

    def _own(self, listing: Listing) -> Iterator[JsonObject]:
        """Yield what is of this organization: a list may hold what the whole instance has."""
        return (item for item in listing.items if owner_of_item(item) == self.owner.id)


def read_flows(wire: Wire, objects: Iterable[ObservedObject]) -> list[ObservedObject]:
    """Return the flows that have actions, in the organizations among some objects.

    One call reads one flow of one organization. Only those that have actions are asked: a trigger
    runs actions of its own organization.
    """
    actions: dict[Owner, dict[str, str]] = {}
    for held in objects:
        if held.ref.kind is Kind.ACTION:
            owner = Owner(held.organization_id, held.ref.organization)
            actions.setdefault(owner, {})[held.id] = held.ref.name
    asked = [(owner, flow) for owner in actions for flow in FLOWS]
    calls = [Call("GetFlow", {"type": flow.number}, owner.id) for owner, flow in asked]
    answers = map(answered_flow, answers_of(wire, calls))
    return [
        flow_object(flow, found, owner, actions[owner])
        for (owner, flow), found in zip(asked, answers, strict=True)
        if found.triggers
    ]
