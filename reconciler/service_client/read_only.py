"""Reading a service of our own: what it holds, what it held, who changed it. Nothing is written.

That is so by construction: the client given out here has no method that writes, and the wire
beneath it refuses every call that does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.errors import NoHistoryError, ObjectNotFoundError
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.answers import (
    MOST_PAGES,
    PAGE,
    cursor_pages,
    id_of,
    objects_of,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.service_client.port import ServiceReader
from reconciler.service_client.wire import Answer, Reply, Wire, is_read, service_error
from reconciler.state import ObjectEvent, ObservedState, Removal

_KINDS = {kind.value: kind for kind in Kind}


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


class HistoryClient:
    """Tells what happened to objects, asked over the wire of the client that it is part of."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def history(self, object_id: str) -> Sequence[ObjectEvent]:
        """Return the events of an object."""
        pages = self._pages("GetObjectHistory", {"id": object_id}, "after")
        return [_event(event) for page in pages for event in objects_of(page, "events")]

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Return what was removed from an organization."""
        organization, names = self._names(organization_id)
        found = []
        for page in self._pages("ListRemovals", {"organizationId": organization_id}, "cursor"):
            for removed in objects_of(page, "removals"):
                project = names.get(text_of(removed, "projectId"), "")
                kind = _KINDS.get(text_of(removed, "kind"))
                if kind is not None:
                    ref = ResourceRef(kind, organization, project, text_of(removed, "name"))
                    trees = frozenset(map(str, removed.get("trees", ())))
                    found.append(Removal(ref, id_of(removed), trees, _event(removed)))
        return found

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

    def _pages(self, operation: str, fields: JsonObject, cursor: str) -> Iterator[JsonObject]:
        def ask(calls: Sequence[Call]) -> Sequence[JsonObject]:
            return [self._answer_to(call) for call in calls]

        return (page for _, page in cursor_pages(ask, {"": Call(operation, fields)}, cursor))

    def _answer_to(self, call: Call) -> JsonObject:
        (reply,) = self._wire.send([call])
        if isinstance(reply, Answer):
            return reply.fields
        # An older service of ours, or one of another make, does not have the operation.
        if reply.code == Code.UNIMPLEMENTED:
            raise no_history()
        raise service_error(reply)


class ReadOnlyClient(HistoryClient):
    """A ``ReadOnlyService`` of a service that has the ``/reconciler/v1/`` operations."""

    def __init__(self, reader: ServiceReader, wire: ReadOnlyWire) -> None:
        """Ask over a wire; ``reader`` observes over the same one."""
        super().__init__(wire)
        self._reader = reader

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return all that is held in these organizations."""
        return self._reader.observe(organizations, flows=flows)

    def organizations(self) -> Sequence[str]:
        """Return every organization that the caller may see."""
        return sorted(text_of(found, "name") for found in self._listed("ListOrgs"))


def no_history() -> NoHistoryError:
    """Return the error that a service does not tell what was before."""
    return NoHistoryError(
        "the service keeps no history that can be read",
        remedy="Who changed what, and when, can be asked of the reconciler's own service only.",
    )


def _event(fields: JsonObject) -> ObjectEvent:
    context, payload = fields.get("context", {}), fields.get("payload", {})
    if not isinstance(context, dict) or not isinstance(payload, dict):
        raise unsound("?", "the context or payload of an event is not an object")
    return ObjectEvent(
        type=text_of(fields, "type"),
        sequence=sequence_of(fields),
        at=text_of(fields, "recordedAt"),
        writer=text_of(fields, "writer"),
        context=context,
        payload=payload,
    )


class EmptyService:
    """An empty service: a plan is made against it before the embedded store exists."""

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return nothing, of no instance."""
        return ObservedState(instance="", objects={})

    def organizations(self) -> Sequence[str]:
        """Return no organization."""
        return ()

    def history(self, object_id: str) -> Sequence[ObjectEvent]:
        """Refuse: there is no object of any id."""
        raise ObjectNotFoundError(
            "there is no service yet, and so no history", remedy="Apply something first."
        )

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Return that nothing was removed."""
        return ()
