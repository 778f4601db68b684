"""Confirming a write of unknown result, from the objects that the service holds now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from reconciler.resources.call import Call
from reconciler.service_client.port import DeleteOrder, Order, UpdateOrder, Written
from reconciler.state import ObservedObject, is_in_step, is_owned_by

# The first of an update's two calls: the fields are not sent yet.
_RENAMES_ALONE = frozenset({"UpdateApp", "UpdateOrgIDP"})


def came_true(order: Order, call: Call, now: Mapping[str, ObservedObject]) -> Written | None:
    """Return what carrying out the call gave if the service now holds what it asked for."""
    if isinstance(order, DeleteOrder):
        gone = order.held.id not in now
        return Written(order.held.id, order.held.sequence, order.held.client_id) if gone else None
    if not isinstance(order, UpdateOrder):
        return None
    held = now.get(order.held.id)
    if held is None or not _is_as_asked(order, call, held):
        return None
    return Written(held.id, held.sequence, held.client_id)


def _is_as_asked(order: UpdateOrder, call: Call, held: ObservedObject) -> bool:
    wanted = order.resource
    if call.operation in _RENAMES_ALONE:
        wanted = replace(wanted, spec=order.held.spec)
    tree = json.loads(call.context).get("tree") if call.context else None
    return is_in_step(wanted, held) and (tree is None or is_owned_by(held, tree))
