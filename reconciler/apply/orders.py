"""Changes as orders to the service, and as intents of the journal."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping

from reconciler.apply.journal import Intent, secret_intent
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    Update,
    held_of,
    makes_secret,
    ref_of,
)
from reconciler.resources.flows import named_actions
from reconciler.resources.ref import Kind, ResourceRef, organization_ref, owner_of
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.state import ObservedObject

Ids = Mapping[ResourceRef, str]
"""Id of each object that is held, by the key of its ref."""


def order_of(
    change: Change,
    intent: Intent | None,
    ids: Ids,
    losers: Collection[str] = (),
) -> Order:
    """Return the order that carries out a change; its owners are held.

    ``losers`` are the ids of the organizations of which this run has removed an action: each flow
    that ran it is at a later sequence.
    """
    held = held_of(change)
    is_moved = (
        held is not None and held.ref.kind is Kind.ACTION_FLOW and held.organization_id in losers
    )
    if isinstance(change, Delete):
        return DeleteOrder(change.held, is_moved=is_moved)
    if not isinstance(change, Create):
        actions = _actions(change, ids)
        return UpdateOrder(change.resource, change.held, actions=actions, is_moved=is_moved)
    ref, resource = change.resource.ref, change.resource
    return CreateOrder(
        ref=ref,
        spec=resource.spec,
        key=intent.key if intent else "",
        organization_id=_organization_id(ref, ids),
        project_id=_project_id(ref, ids),
        prevent_delete=resource.prevent_delete,
        critical=resource.critical,
        actions=_actions(change, ids),
    )


def needed_by(change: Change) -> Iterator[ResourceRef]:
    """Yield the keys of what must be held before a change: its owner, and the actions of a flow."""
    ref = ref_of(change)
    owner = owner_of(ref)
    if owner is not None:
        yield owner.key
    if ref.kind is Kind.ACTION_FLOW and not isinstance(change, Delete):
        yield from (action.key for action, _ in named_actions(ref, change.resource.spec))


def _actions(change: Create | Update | Adopt, ids: Ids) -> Mapping[str, str]:
    resource = change.resource
    if resource.ref.kind is not Kind.ACTION_FLOW:
        return {}
    keys = (action.key for action, _ in named_actions(resource.ref, resource.spec))
    return {key.name: ids[key] for key in keys}


def secret_order(held: ObservedObject) -> SecretOrder:
    """Return the order that gives a held application a new secret."""
    return SecretOrder(held.ref, held.id, held.organization_id, held.project_id, held.client_id)


def is_created_inactive(change: Change) -> bool:
    """Return whether a change makes an object and then deactivates it: two writes."""
    return isinstance(change, Create) and change.resource.active is False


def deactivation_of(change: Change, made: Written, ids: Ids) -> UpdateOrder:
    """Return the order that deactivates what a create has just made."""
    if isinstance(change, Delete):
        raise TypeError(f"{change.held.ref} is gone")
    resource, ref = change.resource, change.resource.ref
    held = ObservedObject(
        ref,
        made.id,
        made.sequence,
        resource.spec,
        _organization_id(ref, ids),
        _project_id(ref, ids),
        made.client_id,
    )
    return UpdateOrder(resource, held, is_new=True)


def intent_of(change: Change, run: str) -> Intent | None:
    """Return what the journal records before a change is sent, if there is anything to record."""
    if isinstance(change, Create):
        resource = change.resource
        return Intent(
            purpose="create",
            key=uuid.uuid4().hex,
            ref=resource.ref,
            owes_secret=makes_secret(change),
            spec=resource.spec,
            prevent_delete=resource.prevent_delete,
            critical=resource.critical,
            active=resource.active,
            run=run,
        )
    if makes_secret(change):
        return secret_intent(ref_of(change), held_before(change).id, run)
    return None


def unchanged(change: Change) -> Written:
    """Return the result of a change of which nothing had to be sent yet."""
    held = held_before(change)
    return Written(held.id, held.sequence, held.client_id)


def held_before(change: Change) -> ObservedObject:
    """Return what the service holds before a change that is no create."""
    if isinstance(change, Create):
        raise TypeError(f"{change.resource.ref} does not exist yet")
    return change.held


def _organization_id(ref: ResourceRef, ids: Ids) -> str:
    if ref.kind is Kind.ORGANIZATION:
        return ""
    return ids[organization_ref(ref.organization).key]


def _project_id(ref: ResourceRef, ids: Ids) -> str:
    owner = owner_of(ref)
    return ids[owner.key] if owner and owner.kind is Kind.PROJECT else ""
