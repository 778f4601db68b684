"""Actions: creating, reading, updating, deleting. They are stored, never run by this service."""

from __future__ import annotations

from reconciler.resources.models import Name, with_fields_of
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import ActionAdded, ActionRemoved
from reconciler.service.domain.state import change_action
from reconciler.service.operations.answers import (
    Answer,
    action_view,
    details_changed,
    details_created,
)
from reconciler.service.operations.flows import drop_action
from reconciler.service.operations.models import Id, Message, SpecMessage
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of


@with_fields_of(Kind.ACTION)
class CreateActionRequest(SpecMessage):
    """Make an action in the organization of the call (source 4.3)."""

    name: Name


class UpdateActionRequest(CreateActionRequest):
    """Update a whole action, its name included."""

    id: Id


class ActionRequest(Message):
    """Name an action, as the path does."""

    id: Id


def create_action(call: Writing, request: CreateActionRequest) -> Answer:
    """Make an action in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, ActionAdded(request.name, request.spec_of(Kind.ACTION)))
    return {"details": details_created(row), "id": row.id}


def get_action(call: Reading, request: ActionRequest) -> Answer:
    """Answer one action."""
    return call.shown_alone("action", action_view, call.object(Kind.ACTION, request.id))


def update_action(call: Writing, request: UpdateActionRequest) -> Answer:
    """Update a whole action; what is left out is at its default afterwards."""
    row = call.target(Kind.ACTION, request.id)
    changed = call.change(
        row, change_action(state_of(row), request.name, request.spec_of(Kind.ACTION))
    )
    return {"details": details_changed(changed)}


def delete_action(call: Writing, request: ActionRequest) -> Answer:
    """Remove an action, also from every trigger that it is part of."""
    row = call.target(Kind.ACTION, request.id)
    call.remove(row, ActionRemoved())
    drop_action(call, row)
    return {}
