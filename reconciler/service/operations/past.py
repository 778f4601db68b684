"""Objects as they were at an earlier sequence of their organization.

A client asks for those that an event changed since, which ``ListChanges`` tells: all others are as
they are now. So a look into the past costs as much as what happened since, not as the whole log.
"""

from __future__ import annotations

from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.inventory import object_view
from reconciler.service.operations.operation import Effect, light_operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.session import Reading
from reconciler.service.operations.texts import READ_AT_ONCE, Page
from reconciler.service.projections.objects import SIDE_EVENTS, decode, next_row

AT_ONCE = 500  # objects of one call
EVENTS_AT_ONCE = 20_000  # events of one call, after which it begins with no further object


def list_objects_at(call: Reading, fields: Fields) -> Answer:
    """Answer objects as they were after the event of a sequence, or the last one before it.

    Objects are answered in the order of ``ids``, as many as an answer has room for, and at least
    one. ``absent`` has the ids of those that there were none of. What is in neither list is to be
    asked for again. An id of another organization is that of an object that never was.
    """
    organization = call.organization(fields.text("organizationId"))
    sequence = fields.number("sequence")
    values = fields.values("ids")
    fields.end()
    if not 1 <= len(values) <= AT_ONCE:
        raise fields.wrong("ids", f"must be 1 to {AT_ONCE} ids")
    ids = [Fields({"ids": value}).text("ids", required=True) for value in values]
    page = Page(AT_ONCE, as_text=call.request.as_text)
    absent: list[str] = []
    replayed = 0
    for object_id in ids:
        row, events = _as_of(call, organization.id, object_id, sequence)
        if row is None:
            absent.append(object_id)
        elif not page.takes(object_view(row)):
            break
        replayed += events
        if replayed >= EVENTS_AT_ONCE:
            break
    return {"objects": page.members(), "absent": absent}


def _as_of(
    call: Reading, organization: str, object_id: str, sequence: int
) -> tuple[ObjectRow | None, int]:
    """Return an object as it was at a sequence, and how many events were read for that."""
    row: ObjectRow | None = None
    version = 0
    # A few at a time: each may be as long as a request.
    while events := call.view.read_stream(object_id, after=version, limit=READ_AT_ONCE):
        for event in events:
            is_own = event.organization == organization and event.type not in SIDE_EVENTS
            if not is_own or event.sequence > sequence:
                return row, version + 1
            row, version = next_row(row, event, decode(event)), event.version
    return row, version


ROWS = (light_operation("ListObjectsAt", "org.read", Effect.READS, list_objects_at),)
