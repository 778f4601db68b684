"""The form in which a kind says how a ZITADEL lists, reads and writes it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.errors import ServiceError
from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.answers import id_of, sequence_of, text_of
from reconciler.service_client.kinds import OneCall, Placed, project_of
from reconciler.service_client.port import CreateOrder, Order
from reconciler.service_client.wire import AGAIN, Reply, Wire, WireRefusal
from reconciler.service_client.zitadel.objects import (
    NO_PROJECT,
    OUTSIDE,
    Owner,
    object_of,
    read_fields,
)
from reconciler.service_client.zitadel.steps import changed_since, is_unknown_address
from reconciler.state import ObservedObject

PRESENT, OF_INSTANCE = "ListOrganizations", "ListOrgs"  # organizations for all, and for few
_NO_ID = "0"  # of no object


@dataclass
class ZitadelKind:
    """The calls of one kind. A client has a copy, which keeps what it learns about its server.

    A kind with calls of another form overrides methods.

    Attributes:
        kind: The kind.
        lists: Operation that lists objects of an organization or project; empty for a kind whose
            objects are read one by one. These have no sequence of their own, and are gone once
            their spec is at its defaults.
        query: Name of the query for a name in that list.
        reads: Operation that reads one object, and the field of its answer that has the object.
        refreshes: That operation brings the list of the kind up to date.
        keeps_names_unique: The server refuses a second object of a name.
        has_own_sequence: The server counts the events of each object, not those of its owner.
        not_changed: Ids of refusals which say that the object is as asked already: a success.
        removed_by: Role of a project that removes objects where ORG_OWNER may not.
        only_new: Fields of the spec that not every server stores.
        only_active: Only an old server has a call that deactivates a new object.
        newer_list: A list that old servers lack.
        is_old: Whether the server turned out to be old: to have no calls that are newer than the
            source. None as long as that is not known.
    """

    kind: Kind
    lists: str = ""
    query: str = "nameQuery"
    reads: tuple[str, str] = ("", "")
    refreshes: bool = False
    keeps_names_unique: bool = True
    has_own_sequence: bool = False
    not_changed: Collection[str] = ()
    removed_by: str = ""
    only_new: Collection[str] = ()
    only_active: bool = False
    newer_list: str = ""
    is_old: bool | None = False

    # Lists.

    def list_call(self, *queries: JsonObject) -> OneCall:
        """Return operation and fields of the list of an owner's objects."""
        return self.lists, {"queries": [*queries]} if queries else {}

    def named(self, at: Placed) -> Call:
        """Return the call that looks for objects of a name, in upper or lower case."""
        operation, fields = self.list_call(by_name(self.query, at.ref.name))
        return Call(operation, {**fields, **project_of(at)}, at.organization_id)

    def can_ask_on(self, refusal: WireRefusal, *, was_refused: bool) -> bool:
        """Return whether a refused ``newer_list`` can be asked for again, as ``list_call`` says.

        The first refusal may come from a proxy, so the same call is made once more. The second
        in a row makes the server old. Calls of several organizations go out together: each is
        judged by its own refusal, also where another one has made the server old.

        Args:
            refusal: The reply of the list.
            was_refused: Whether the same list was refused like this just before.
        """
        if self.is_old is False or not is_unknown_address(refusal):
            return False
        if was_refused:
            self.is_old = True
        return True

    def answered(self) -> None:
        """Take note that a ``newer_list`` was answered.

        Raises:
            ServiceError: the server refused it before. Two servers may share the address.
        """
        if self.is_old:
            raise ServiceError(
                f"the service has calls for {KINDS[self.kind].plural} that it lacked a moment ago",
                remedy=AGAIN,
            )
        self.is_old = False

    def list_beside(self, items: Iterable[JsonObject]) -> OneCall | None:
        """Return operation and fields of a list that must be read beside these items."""
        return None

    def id_of(self, item: JsonObject) -> str:
        """Return the identity of an item in its list."""
        return id_of(item)

    def is_called(self, item: JsonObject, name: str) -> bool:
        """Return whether a listed or read item is of the kind and has a name."""
        return fold(text_of(item, "name")) == fold(name)

    def kept_out(self, order: CreateOrder, items: Sequence[JsonObject]) -> ServiceError | None:
        """Return why listed items of other names keep an object from being made."""
        return None

    # Objects.

    def observed(
        self, item: JsonObject, owner: Owner, project: Owner = NO_PROJECT
    ) -> ObservedObject:
        """Return a listed or read item as an observed object: its spec is among its fields."""
        said = {name: value for name, value in item.items() if name not in OUTSIDE}
        return object_of(self.kind, item, owner, read_fields(self.kind, item, said), project)

    def objects(
        self,
        items: Iterable[JsonObject],
        owner: Owner,
        project: Owner,
        beside: Sequence[JsonObject],
    ) -> Iterator[ObservedObject | str]:
        """Yield listed items as observed objects; ``beside`` are those of the list beside.

        An item that no manifest can declare is a sentence that says so.
        """
        return (self.observed(item, owner, project) for item in items)

    def read_one_by_one(
        self, wire: Wire, objects: Sequence[ObservedObject]
    ) -> Sequence[ObservedObject]:
        """Return the objects of a kind without lists, in the organizations among some objects."""
        return ()

    # Steps of orders.

    def get(self, at: Placed, object_id: str) -> Call:
        """Return the call that reads an object."""
        return Call(self.reads[0], CALLS[self.kind].target(at, object_id), at.organization_id)

    def read_in(self, answer: JsonObject) -> object:
        """Return the object that a read answered."""
        return answer.get(self.reads[1])

    def as_read(
        self, at: CreateOrder | ObservedObject, answer: JsonObject
    ) -> ObservedObject | None:
        """Return the object that a read answered, as observed; None where it answered none."""
        found = self.read_in(answer)
        return self.of_same_owner(at, found) if isinstance(found, dict) else None

    def of_same_owner(self, at: CreateOrder | ObservedObject, item: JsonObject) -> ObservedObject:
        """Return an item of a list, or of a read, as an object with the owner of another."""
        owner = Owner(at.organization_id, at.ref.organization)
        return self.observed(item, owner, Owner(at.project_id, at.ref.project))

    def moved_on(
        self, at: CreateOrder | ObservedObject, sequence: int, answer: JsonObject
    ) -> ServiceError | None:
        """Return why an object that was just read must not be written to; None if it may be."""
        found = self.read_in(answer)
        details = found.get("details") if isinstance(found, dict) else None
        if not isinstance(details, dict):
            return ServiceError("the service answered without details", remedy=AGAIN)
        return changed_since(at.ref) if sequence_of(details) > sequence else None

    def refresh(self, order: CreateOrder) -> Generator[Call, Reply, None]:
        """Bring the list of the kind up to date, where the server has a call that does so."""
        if self.refreshes:
            yield self.get(order, _NO_ID)

    def calls(self, order: Order) -> Sequence[OneCall]:
        """Return the calls of an order; none for an update that changes nothing but marks."""
        return CALLS[self.kind].calls(order)

    def writes(self, order: Order) -> Sequence[Call]:
        """Return the calls of an order as they are sent.

        A field of the kind that is false or empty means the same when it is left out, and a server
        may be too old for it. What is carried from the object is sent as it was read.
        """
        own = {field.name for field in KINDS[self.kind].fields}
        return [
            Call(
                operation,
                {name: value for name, value in fields.items() if value or name not in own},
                order.organization_id,
            )
            for operation, fields in self.calls(order)
        ]

    def is_unseen(self, call: Call) -> bool:
        """Return whether the list shows neither what a call writes nor its sequence."""
        return False


def by_name(query: str, name: str) -> Mapping[str, JsonObject]:
    """Return the query for a name, in upper or lower case."""
    return {query: {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}}
