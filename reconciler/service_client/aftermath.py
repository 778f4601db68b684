"""Whether a call that may have been carried out was: told from what the service holds now."""

from __future__ import annotations

import json
from collections.abc import Mapping

from reconciler.service_client.port import DeleteOrder, Order, UpdateOrder, Written
from reconciler.service_client.wire import Call
from reconciler.state import ObservedObject

_RENAMES = frozenset({"UpdateApp", "UpdateOrgIDP", "UpdateAction"})
_CONFIGURES = frozenset({"UpdateOIDCAppConfig", "UpdateOrgIDPJWTConfig", "UpdateAction"})


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
    resource = order.resource
    if call.operation in _RENAMES and held.ref.name != resource.ref.name:
        return False
    if call.operation in _CONFIGURES and held.spec != resource.spec:
        return False
    if held.prevent_delete not in {None, resource.prevent_delete}:
        return False
    tree = json.loads(call.context).get("tree") if call.context else None
    return tree is None or tree in held.trees
