"""One call as its operation sees it: its caller, the objects in its reach, and its writes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from reconciler.kinds.fields import KINDS
from reconciler.kinds.organization.events import UNMADE, ObjectRemade, ObjectUnmade
from reconciler.resources.ref import Kind
from reconciler.resources.undone import undone_of_text
from reconciler.service.domain.events import Event, side_stream
from reconciler.service.domain.refusal import (
    invalid,
    lease_lost,
    moved_on,
    name_taken,
    not_found,
    organization_unnamed,
    too_many_trees,
)
from reconciler.service.eventstore.errors import NameTakenError
from reconciler.service.eventstore.port import Transaction
from reconciler.service.eventstore.rows import (
    Author,
    ObjectKey,
    ObjectRow,
    OwedRow,
    StoredEvent,
    StreamAt,
)
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.operations.answers import Answer, details_at, stored_context
from reconciler.service.operations.request import Request
from reconciler.service.operations.runtime import Batch, Runtime
from reconciler.service.operations.texts import (
    Encoded,
    Make,
    View,
    as_json,
    as_part,
    is_too_long,
    longest_text,
    longest_texts,
    whole,
)
from reconciler.service.projections.objects import encode, next_row, trees_of

MAX_TREES = 32


class Reading:
    """A call that reads. An object that its caller may not see is refused as a missing one is."""

    def __init__(self, view: Snapshot, request: Request, runtime: Runtime, batch: Batch) -> None:
        self.view = view
        self.request = request
        self.caller = request.caller
        self.runtime = runtime
        self.batch = batch

    def organization(self, named: str = "") -> ObjectRow:
        """Return the organization of an id, or by default the one the call is made for.

        Raises:
            Refusal: it is missing, or no organization is named.
        """
        named = named or self.request.organization or self.caller.only_organization
        if not named:
            raise organization_unnamed()
        return self.owner(Kind.ORGANIZATION, named)

    def owner(self, kind: Kind, object_id: str) -> ObjectRow:
        """Return an organization or a project that owns others.

        Raises:
            Refusal: it is missing.
        """
        known = self.batch.owners.get(object_id)
        if known is None:
            known = self.batch.owners[object_id] = self.object(kind, object_id)
        elif not self._is_visible(known, kind):
            raise not_found(KINDS[kind].noun)
        return known

    def object(self, kind: Kind, object_id: str) -> ObjectRow:
        """Return the object of an id.

        Raises:
            Refusal: it is missing.
        """
        row = self.view.get_object(object_id)
        if row is None or not self._is_visible(row, kind):
            raise not_found(KINDS[kind].noun)
        return row

    def shown(self, member: str, view: View, keys: Sequence[ObjectKey]) -> list[Answer] | Encoded:
        """Return a view of each object, as a member of the answer; encoded if that was asked for.

        None is ever left out: callers of lists count on getting as many as they asked for.

        Raises:
            Refusal: the objects are too long for one answer.
        """
        request = self.request
        if request.as_text:
            return Encoded(self._whole(as_json(view), keys))
        if request.encode:
            parts = self._whole(as_part(request.encode, member, view), keys)
            if is_too_long(longest_texts(parts)):  # maybe: the limit is of the page as text
                self._whole(as_json(view), keys)
            return Encoded(parts)
        rows = {row.id: row for row in self.view.get_objects([object_id for object_id, _ in keys])}
        # To make the texts costs as much as all the rest: only for a page that may be too long.
        if is_too_long(sum(map(longest_text, rows.values()))):
            self._whole(as_json(view), keys)
        return [view(rows[object_id]) for object_id, _ in keys]

    def shown_alone(self, member: str, view: View, row: ObjectRow) -> Answer:
        """Return the answer that shows one object as its only member.

        The view must show nothing that changes without a new sequence; see ``Texts``.
        """
        encode = self.request.encode
        if encode is None:
            return {member: view(row)}
        return self.runtime.texts.of_answer(encode, member, view, row)

    def _whole(self, make: Make, keys: Sequence[ObjectKey]) -> Sequence[bytes]:
        return whole(self.runtime.texts.of(make, keys, self.view.get_objects))

    def sees(self, organization: str) -> bool:
        """Return whether what belongs to an organization exists, as far as this call goes."""
        asked = self.request.organization
        return self.caller.sees(organization) and asked in {"", organization}

    def _is_visible(self, row: ObjectRow, kind: Kind) -> bool:
        return row.kind == kind and self.sees(row.organization)


class Writing(Reading):
    """A call that writes. Every write is refused if the call names a lease that was lost."""

    def __init__(self, tx: Transaction, request: Request, runtime: Runtime, batch: Batch) -> None:
        super().__init__(tx, request, runtime, batch)
        self.tx = tx
        self._expected = request.expected_sequence
        self._author = Author(
            request.caller.name, stored_context(request.context, request.caller.verified)
        )

    def expect(self, sequence: int, *others: int) -> None:
        """Refuse if the caller expects another sequence than that of the object, or the others."""
        if self._expected not in {None, sequence, *others}:
            raise moved_on(sequence)
        self._expected = None  # it was for this object; ``end`` refuses one that was for none

    def end(self) -> None:
        """Refuse an expectation that no object was held to."""
        if self._expected is not None:
            raise invalid("if-match", "is for updates and deletes only")

    def create(self, organization: str, event: Event) -> ObjectRow:
        """Write the first event of a new object of an organization; empty makes one.

        Raises:
            Refusal: the name is taken.
        """
        new = self.runtime.identifiers.next()
        return self.begin(StreamAt(organization or new, new, 0), event)

    def begin(self, stream: StreamAt, event: Event) -> ObjectRow:
        """Write the first event of an object whose id was known before it exists."""
        is_organization = stream.organization == stream.id
        if not is_organization:
            self.check_lease(self.owner(Kind.ORGANIZATION, stream.organization).folded)
        (stored,) = self.tx.append(stream, (encode(event),), self._author)
        row = next_row(None, stored, event)
        if row is None:
            raise AssertionError("a new object is held")
        if is_organization:
            self.check_lease(row.folded)
        self._put(row)
        self._end_unmade(row)
        return row

    def change(self, row: ObjectRow, events: Sequence[Event]) -> ObjectRow:
        """Write what was decided about an object, and return it as it is then.

        Raises:
            Refusal: the new name is taken, or it has too many trees.
        """
        changed: ObjectRow | None = row
        for stored, event in zip(self._record(row, events), events, strict=True):
            changed = next_row(changed, stored, event)
        if changed is None:
            raise AssertionError("a changed object is held")
        if changed.marks != row.marks:
            _check_trees(row, changed)
        if events:
            self._put(changed)
        if changed.secret_hash != row.secret_hash:
            self._end_custody(row)
        return changed

    def update(self, row: ObjectRow, events: Sequence[Event]) -> Answer:
        """Change an object as ``change`` does, and return the answer of an update."""
        return {"details": details_at(row.organization, self.change(row, events).sequence)}

    def remove(self, row: ObjectRow, event: Event) -> StoredEvent:
        """Write the last event of an object, and return the event."""
        (stored,) = self._record(row, (event,))
        self.tx.remove(row)
        if row.secret_hash:
            self._end_custody(row)
        self._keep_unmade(row)
        return stored

    def _keep_unmade(self, row: ObjectRow) -> None:
        """Keep the mark of an undo that removed an object, with its organization."""
        said = json.loads(self.request.context or "{}").get("undone")
        if undone_of_text(said) is not None:
            owner = self.object(Kind.ORGANIZATION, row.organization)
            self.change(owner, [ObjectUnmade(Kind.ORGANIZATION, _key_of(row), said)])

    def _end_unmade(self, row: ObjectRow) -> None:
        """End the mark of an undo that removed an object of this name."""
        if row.kind == Kind.ORGANIZATION:
            return
        if UNMADE in self.owner(Kind.ORGANIZATION, row.organization).marks:
            owner = self.object(Kind.ORGANIZATION, row.organization)
            key = _key_of(row)
            if key in json.loads(owner.marks).get(UNMADE, ()):
                self.change(owner, [ObjectRemade(Kind.ORGANIZATION, key)])

    def _end_custody(self, row: ObjectRow) -> None:
        for owed in self.tx.owed([row.id]):
            self.remove_owed(owed)

    def remove_owed(self, owed: OwedRow) -> None:
        """Remove an owed secret. The commit seals what is left of its seal again."""
        self.tx.remove(owed)
        if owed.seal is not None:
            self.batch.reduced.add(owed.seal)

    def record_side_event(self, row: ObjectRow, event: Event) -> None:
        """Write an event that is about an object and changes neither it nor its sequence."""
        name = side_stream(row.id)
        stream = StreamAt(row.organization, name, self.tx.stream_version(name))
        self.tx.append(stream, (encode(event),), self._author)

    def _record(self, row: ObjectRow, events: Sequence[Event]) -> Sequence[StoredEvent]:
        if not events:
            return ()
        self.check_lease(self.owner(Kind.ORGANIZATION, row.organization).folded)
        stream = StreamAt(row.organization, row.id, row.version)
        return self.tx.append(stream, [encode(event) for event in events], self._author)

    def _put(self, row: ObjectRow) -> None:
        try:
            self.tx.put(row)
        except NameTakenError:
            raise name_taken(KINDS[Kind(row.kind)].noun) from None

    def check_lease(self, organization: str) -> None:
        """Refuse if the call names a lease that is not the one of this folded organization name."""
        if not self.request.lease:
            return
        lease, now = self.tx.lease(organization), self.runtime.lease_time()
        if lease is None or lease.token != self.request.lease or lease.expires_at <= now:
            raise lease_lost()


def _check_trees(before: ObjectRow, after: ObjectRow) -> None:
    """Refuse one tree too many. None is forgotten instead, because trees own objects.

    An object from before the limit keeps the trees that it has.
    """
    if len(trees_of(after.marks)) > max(MAX_TREES, len(trees_of(before.marks))):
        raise too_many_trees(MAX_TREES)


def _key_of(row: ObjectRow) -> str:
    """Return the key under which an organization keeps the mark of an object."""
    return f"{row.kind}/{row.parent}/{row.folded}"
