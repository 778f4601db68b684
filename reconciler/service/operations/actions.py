"""Actions: creating, reading, updating, deleting. They are stored, never run by this service."""

from __future__ import annotations

from typing import ClassVar

from reconciler.resources.action import Action
from reconciler.resources.base import Name
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from reconciler.service.domain.action import ActionAdded, ActionRemoved, change
from reconciler.service.operations.answers import (
    Answer,
    action_view,
    details_changed,
    details_created,
)
from reconciler.service.operations.models import Id, Message
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.projections.objects import state_of


class CreateActionRequest(Action):
    """Make an action in the organization of the call (source 4.3)."""

    BESIDE: ClassVar[frozenset[str]] = frozenset({"name", "id"})

    name: Name

    def spec(self) -> Answer:
        """Return the fields but id and name, in normal form."""
        fields = self.model_dump(mode="json", by_alias=True, exclude=set(self.BESIDE))
        return normal_form(Kind.ACTION, fields)


class UpdateActionRequest(CreateActionRequest):
    """Update a whole action, its name included."""

    id: Id


class ActionRequest(Message):
    """Name an action, as the path does."""

    id: Id


def create_action(call: Writing, request: CreateActionRequest) -> Answer:
    """Make an action in the organization of the call."""
    owner = call.organization()
    row = call.create(owner.id, ActionAdded(request.name, request.spec()))
    return {"details": details_created(row), "id": row.id}


def get_action(call: Reading, request: ActionRequest) -> Answer:
    """Answer one action."""
    return {"action": action_view(call.object(Kind.ACTION, request.id))}


def update_action(call: Writing, request: UpdateActionRequest) -> Answer:
    """Update a whole action; what is left out is at its default afterwards."""
    row = call.target(Kind.ACTION, request.id)
    changed = call.change(row, change(state_of(row), request.name, request.spec()))
    return {"details": details_changed(changed)}


def delete_action(call: Writing, request: ActionRequest) -> Answer:
    """Remove an action."""
    call.remove(call.target(Kind.ACTION, request.id), ActionRemoved())
    return {}
