"""The feed, and what a service of our own keeps of trees: heads, changes, pauses, records."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from reconciler.resources.call import Call, JsonObject
from reconciler.resources.ref import IN_PROJECT, KIND_NAMED, PROJECT, ResourceRef, fold
from reconciler.resources.undone import undone_of
from reconciler.service_client.answers import event_of, id_of, objects_of, sequence_of, text_of
from reconciler.service_client.locks import Leases, Terms
from reconciler.service_client.port import Context
from reconciler.service_client.wire import Wire, answers_of
from reconciler.state import (
    Applied,
    FeedEvent,
    Head,
    Heads,
    ObservedObject,
    Pause,
    Undone,
)


def heads_in(pages: Iterable[JsonObject]) -> Heads:
    """Return the heads of all pages of a list."""
    instance, found = "", dict[str, Head]()
    for page in pages:
        instance = text_of(page, "instance")
        for fields in objects_of(page, "organizations"):
            found[fold(text_of(fields, "name"))] = _head(fields)
    return Heads(instance, found)


def _head(fields: JsonObject) -> Head:
    return Head(
        id_of(fields),
        text_of(fields, "name"),
        sequence_of(fields),
        sequence_of(fields, "owed"),
        pauses_in(fields),
        tuple(
            Applied(*(text_of(each, name) for name in _OF_RECORD))
            for each in objects_of(fields, "applied")
        ),
    )


_OF_RECORD = ("tree", "commit", "recordedAt", "writer")
_OF_PAUSE = ("tree", "reason", "until", "since", "writer")


def pauses_in(organization: JsonObject) -> tuple[Pause, ...]:
    """Return the pauses of a listed organization."""
    found = objects_of(organization, "pauses")
    return tuple(Pause(*(text_of(each, name) for name in _OF_PAUSE)) for each in found)


def unmade_in(
    organizations: Iterable[JsonObject], objects: Mapping[ResourceRef, ObservedObject]
) -> Mapping[str, Undone]:
    """Return the marks of the objects that an undo removed, by their folded addresses.

    Args:
        organizations: As they are listed.
        objects: What they hold.
    """
    projects = {held.id: held.ref.name for ref, held in objects.items() if ref.kind == PROJECT}
    found = {}
    for organization in organizations:
        for fields in objects_of(organization, "unmade"):
            kind, mark = KIND_NAMED.get(text_of(fields, "kind")), undone_of(fields.get("undone"))
            project = projects.get(text_of(fields, "projectId"), "")
            if kind is None or mark is None or (kind in IN_PROJECT and not project):
                continue
            owner = text_of(organization, "name")
            ref = ResourceRef(kind, owner, project, text_of(fields, "name"))
            found[ref.folded] = mark
    return found


def changes_in(page: JsonObject) -> Iterator[FeedEvent]:
    """Yield the events of a page of a list."""
    for fields in objects_of(page, "changes"):
        yield event_of(
            FeedEvent,
            fields,
            kind=text_of(fields, "kind"),
            id=id_of(fields),
            project_id=text_of(fields, "projectId"),
            name=text_of(fields, "name"),
        )


class Trees:
    """A ``TreeControl`` over a wire, for one process."""

    def __init__(
        self,
        wire: Wire,
        leases: Callable[[Terms], Leases],
        locks: Callable[[], Mapping[str, str]],
    ) -> None:
        """Lead by leases of some terms.

        ``locks`` returns the leases of the one writer, by the folded names of organizations.
        """
        self._wire = wire
        self._locks = locks
        self._leases_of = leases
        self._tree = ""
        self._leases = leases(Terms())

    def lead(
        self, tree: str, organizations: Collection[str], seconds: int, *, take: bool = False
    ) -> None:
        self.resign()
        self._tree = tree
        self._leases = self._leases_of(Terms(tree, seconds, take))
        self._leases.acquire(organizations)

    def renew(self, *, at_once: bool = False) -> None:
        self._leases.renew(at_once=at_once)

    def resign(self) -> None:
        """Stop being the leader; what cannot be given back runs out by itself."""
        self._leases.release()

    def record_commit(self, commit: str, outcome: str, context: Context) -> None:
        said = {"tree": self._tree, "commit": commit, "outcome": outcome}
        # A run that was stopped after it applied may have been followed by another one. Then its
        # record would be of a commit that is not the last one any more: the lock shows it.
        locks, text = self._locks(), json.dumps(context)
        calls = [
            Call(
                "RecordCommit",
                {"organization": name, "lease": lease, **said},
                lease=locks.get(name, ""),
                context=text,
            )
            for name, lease in self._leases.by_folded_name().items()
        ]
        lost = f"another run leads tree {self._tree} by now, or the lease ran out"
        answers_of(self._wire, calls, lost)

    def pause(self, tree: str, organizations: Collection[str], reason: str, seconds: int) -> None:
        said = {"tree": tree, "reason": reason, "seconds": seconds}
        calls = [Call("PauseTree", {"organization": name, **said}) for name in organizations]
        answers_of(self._wire, calls)

    def resume(self, tree: str, organizations: Collection[str]) -> None:
        named = ({"organization": name, "tree": tree} for name in organizations)
        answers_of(self._wire, [Call("ResumeTree", fields) for fields in named])
