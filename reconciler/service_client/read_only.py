"""Reading a service of our own: what it holds, what it held, who changed it. Nothing is written.

That is so by construction: the reader has no method that writes, and the wire beneath it refuses
every call that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from reconciler.errors import NoHistoryError
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import KIND_NAMED, ResourceRef, fold
from reconciler.service_client.answers import (
    MOST_PAGES,
    PAGE,
    cursor_pages,
    event_of,
    id_of,
    objects_of,
    text_of,
    unsound,
)
from reconciler.service_client.observation import (
    listings,
    not_among,
    observed_objects,
    owner_of,
    texts_of,
)
from reconciler.service_client.owed import Custody, owed_by_tree
from reconciler.service_client.trees import changes_in, heads_in, pauses_in, unmade_in
from reconciler.service_client.wire import (
    Reply,
    Wire,
    answers_of,
    is_read,
)
from reconciler.state import (
    FeedEvent,
    Heads,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    OwedSecret,
    Removal,
)

OBJECTS_AT_ONCE = 500  # that a service answers at a sequence, at most
FEEDS_AT_ONCE = 16  # all events of these are in memory together
HISTORIES_AT_ONCE = 100  # what is sent together has one deadline


class ReadOnlyWire:
    """A wire that carries calls which write nothing, and no other."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def send(self, calls: Sequence[Call]) -> Sequence[Reply]:
        """Carry out calls that read.

        Raises:
            AssertionError: one of them writes. Nothing was sent.
        """
        writing = [call.operation for call in calls if not is_read(call)]
        if writing:
            raise AssertionError(f"{writing[0]} writes, and this wire is for reading")
        return self._wire.send(calls)


class OperationsReader:
    """A ``ReadOnlyService`` of a service that has the ``/reconciler/v1/`` operations."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._custody = Custody(wire)
        self._info: JsonObject = {}

    def instance(self) -> str:
        """Return the id of the service."""
        if not self._info:
            (info,) = answers_of(self._wire, [Call("GetServiceInfo")])
            id_of({"id": info.get("instance")})
            self._info = info
        return str(self._info["instance"])

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return all that is held in these organizations: list calls only, one per page."""
        instance, named = self.instance(), {fold(name) for name in organizations}
        is_limited = self._info.get("allOrganizations") is False
        objects: dict[ResourceRef, ObservedObject] = {}
        incomplete: list[str] = []
        owners: list[str] = []
        seen = objects_of(self._answer_to(Call("ListTrees")), "organizations")
        here = [found for found in seen if fold(text_of(found, "name")) in named]
        known = {fold(text_of(found, "name")): owner_of(found) for found in here}
        for listing in listings(self._wire, organizations, known):
            owners.append(listing.owner[0])
            if listing.incomplete:
                incomplete.append(listing.incomplete)
            objects.update(observed_objects(listing.owner, listing.objects, incomplete))
        others = [found for found in seen if fold(text_of(found, "name")) not in named]
        return ObservedState(
            instance,
            objects,
            tuple(incomplete),
            elsewhere={text_of(found, "name"): texts_of(found, "trees") for found in others},
            custody=True,
            owed=self._owed(owners, here, objects),
            owed_left={text_of(found, "name"): owed_by_tree(found) for found in others},
            unseen=not_among(objects, organizations) if is_limited else (),
            pauses={text_of(each, "name"): found for each in here if (found := pauses_in(each))},
            undone=unmade_in(here, objects),
        )

    def observe_at(self, moments: Mapping[str, int]) -> ObservedState:
        """Return what organizations held after the last event up to a sequence of each.

        What no event changed since is as it is listed now. The list is read first, so that a write
        in between is among the events since.
        """
        instance, objects, incomplete = self.instance(), dict[ResourceRef, ObservedObject](), [""]
        at = {fold(name): sequence for name, sequence in moments.items()}
        waiting = iter(listings(self._wire, moments, {}))
        while some := list(islice(waiting, FEEDS_AT_ONCE)):
            sequences = {owner: at[fold(name)] for owner, name in (each.owner for each in some)}
            since = {
                owner: [*dict.fromkeys(event.id for event in events)]
                for owner, events in self.changes_of(sequences)
            }
            for listing in some:
                owner, _ = listing.owner
                incomplete.append(listing.incomplete)
                held = self._as_it_was(owner, sequences[owner], listing.objects, since[owner])
                own = next((each for each in held if id_of(each) == owner), None)
                if own is not None:
                    then = (owner, text_of(own, "name"))
                    objects.update(observed_objects(then, held, incomplete))
        return ObservedState(instance, objects, tuple(filter(None, incomplete)))

    def _as_it_was(
        self, owner: str, sequence: int, listed: Sequence[JsonObject], since: Sequence[str]
    ) -> Sequence[JsonObject]:
        """Return the objects of an organization at a sequence.

        ``listed`` are those of now; ``since`` has the ids of those with an event since, each once.
        """
        changed = {*since}
        held = [each for each in listed if id_of(each) not in changed]
        while since:
            asked = since[:OBJECTS_AT_ONCE]
            fields = {"organizationId": owner, "sequence": str(sequence), "ids": asked}
            answer = self._answer_to(Call("ListObjectsAt", fields, owner))
            found, absent = objects_of(answer, "objects"), answer.get("absent")
            gone = absent if isinstance(absent, list) else ()
            told = {id_of(each) for each in found} | {each for each in gone if type(each) is str}
            if not told or not told <= {*asked}:
                raise unsound(owner, "it answers other objects than those asked for")
            held += found
            since = [each for each in since if each not in told]
        return held

    def generation(self) -> None:
        """Return None: it is no ZITADEL."""

    def _owed(
        self,
        owners: Sequence[str],
        seen: Sequence[JsonObject],
        objects: Mapping[ResourceRef, ObservedObject],
    ) -> tuple[OwedSecret, ...]:
        """Return what is owed in organizations (ids).

        Applications that the list shows to keep no secret are not asked: most keep none, and to
        ask each would double the requests of a run.
        """
        without = {id_of(found) for found in seen if found.get("custody") is False}
        asked = [owner for owner in owners if owner not in without]
        return self._custody.listed(asked, objects.values())

    def organizations(self) -> Sequence[str]:
        return sorted(text_of(found, "name") for found in self._listed("ListOrgs"))

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        waiting = iter(dict.fromkeys(object_ids))
        while some := list(islice(waiting, HISTORIES_AT_ONCE)):
            calls = {each: Call("GetObjectHistory", {"id": each}) for each in some}
            begun: dict[str, list[ObjectEvent]] = {each: [] for each in some}
            for object_id, page in cursor_pages(self._wire, calls, "after"):
                begun[object_id] += map(_event, objects_of(page, "events"))
                if not text_of(page, "next"):
                    yield object_id, begun.pop(object_id)
            yield from begun.items()  # their cursors came again: cursor_pages ends them so

    def removals(self, organization_id: str) -> Sequence[Removal]:
        organization, names = self._names(organization_id)
        found = []
        for page in self._pages("ListRemovals", {"organizationId": organization_id}):
            for removed in objects_of(page, "removals"):
                project = names.get(text_of(removed, "projectId"), "")
                kind = KIND_NAMED.get(text_of(removed, "kind"))
                if kind is not None:
                    ref = ResourceRef(kind, organization, project, text_of(removed, "name"))
                    trees = frozenset(map(str, removed.get("trees", ())))
                    found.append(Removal(ref, id_of(removed), trees, _event(removed)))
        return found

    def heads(self) -> Heads:
        return heads_in(self._pages("ListHeads", {}))

    def changes_of(self, after: Mapping[str, int]) -> Iterator[tuple[str, Sequence[FeedEvent]]]:
        waiting = iter(after.items())
        while some := list(islice(waiting, FEEDS_AT_ONCE)):
            calls = {
                owner: Call("ListChanges", {"organizationId": owner, "cursor": str(sequence)})
                for owner, sequence in some
            }
            found: dict[str, list[FeedEvent]] = {owner: [] for owner in calls}
            for owner, page in cursor_pages(self._wire, calls, "cursor"):
                found[owner] += changes_in(page)
            yield from found.items()

    def _names(self, organization_id: str) -> tuple[str, Mapping[str, str]]:
        """Return the name of an organization, and those of its projects by id."""
        answer = self._answer_to(
            Call("ListOrgs", {"queries": [{"idQuery": {"id": organization_id}}]})
        )
        organization = [text_of(found, "name") for found in objects_of(answer, "result")]
        if not organization:
            raise unsound(organization_id, "it is not in any list")
        projects = self._listed("ListProjects", organization_id)
        return organization[0], {id_of(found): text_of(found, "name") for found in projects}

    def _listed(self, operation: str, organization: str = "") -> Sequence[JsonObject]:
        """Return all of a list that is answered in pages by offset."""
        found: list[JsonObject] = []
        for _ in range(MOST_PAGES):
            fields = {"query": {"offset": len(found), "limit": PAGE, "asc": True}}
            page = objects_of(self._answer_to(Call(operation, fields, organization)), "result")
            found += page
            # A page that is not full is the last one.
            if len(page) < PAGE:
                return found
        raise unsound(organization or "?", "its pages do not end")

    def _pages(self, operation: str, fields: JsonObject) -> Iterator[JsonObject]:
        calls = {"": Call(operation, fields)}
        return (page for _, page in cursor_pages(self._wire, calls, "cursor"))

    def _answer_to(self, call: Call) -> JsonObject:
        (answer,) = answers_of(self._wire, [call])
        return answer


def no_history() -> NoHistoryError:
    """Return the error of a service that answers nothing about the past."""
    return NoHistoryError(
        "the service keeps no history that can be read",
        remedy="Who changed what, and when, can be asked of the reconciler's own service only.",
    )


def _event(fields: JsonObject) -> ObjectEvent:
    payload = fields.get("payload", {})  # a removal has none
    if not isinstance(payload, dict):
        raise unsound("?", "the payload of an event is not an object")
    return event_of(ObjectEvent, fields, payload=payload)


class EmptyService:
    """An empty service: a plan is made against it before the embedded store exists."""

    def __init__(self, new_store: str) -> None:
        """Take the address of the store that is to be made."""
        self._new_store = new_store

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        return ObservedState(instance="", objects={}, new_store=self._new_store)

    def generation(self) -> None:
        """Return None: it is no ZITADEL."""

    def observe_at(self, moments: Mapping[str, int]) -> ObservedState:
        return self.observe(())

    def organizations(self) -> Sequence[str]:
        return ()

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        return iter(())

    def removals(self, organization_id: str) -> Sequence[Removal]:
        return ()

    def heads(self) -> Heads:
        return Heads("", {})

    def changes_of(self, after: Mapping[str, int]) -> Iterator[tuple[str, Sequence[FeedEvent]]]:
        return iter(())
