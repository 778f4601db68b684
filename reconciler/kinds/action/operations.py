"""The operations on actions."""

from __future__ import annotations

from reconciler.kinds.action_flow.operations import drop_from_flows
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import Removed
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, flat_view
from reconciler.service.operations.form import Asked
from reconciler.service.operations.lists import BY_ID, BY_NAME, Listing, by_state, listed
from reconciler.service.operations.objects import ById, add, get, switches, update
from reconciler.service.operations.operation import Effect, operation
from reconciler.service.operations.session import Writing

_ACTION = ById(Kind.ACTION)


def action_view(row: ObjectRow) -> Answer:
    """Return an action as it is answered."""
    return flat_view(row, "ACTION_STATE")


def delete_action(call: Writing, asked: Asked) -> Answer:
    """Remove an action, also from every trigger that it is part of."""
    row = _ACTION.target(call, asked)
    call.remove(row, Removed(Kind.ACTION))
    drop_from_flows(call, row)
    return {}


_LISTING = Listing(
    Kind.ACTION,
    action_view,
    {
        "actionIdQuery": BY_ID,
        "actionNameQuery": BY_NAME,
        "actionStateQuery": by_state(
            "ACTION_STATE_UNSPECIFIED", "ACTION_STATE_INACTIVE", "ACTION_STATE_ACTIVE"
        ),
    },
    (
        "ACTION_FIELD_NAME_UNSPECIFIED",
        "ACTION_FIELD_NAME_NAME",
        "ACTION_FIELD_NAME_ID",
        "ACTION_FIELD_NAME_STATE",
    ),
)
_READ, _WRITE = "org.action.read", "org.action.write"
ROWS = (
    add("CreateAction", _WRITE, Kind.ACTION),
    listed("ListActions", _READ, _LISTING),
    get("GetAction", _READ, _ACTION, "action", action_view),
    update("UpdateAction", _WRITE, _ACTION),
    operation(
        "DeleteAction", "org.action.delete", Effect.REMOVES, delete_action,
        _ACTION.form,
    ),
    *switches("Action", _WRITE, _ACTION),
)  # fmt: skip
