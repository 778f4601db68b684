"""Information on the service, and taking over an object without changing it."""

from __future__ import annotations

from reconciler import __version__
from reconciler.service.domain.events import ContextRecorded
from reconciler.service.operations.answers import Answer, details_changed, organization_view
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.fields import Fields
from reconciler.service.operations.session import Reading, Writing

PRODUCT = "reconciler"


def healthz(_: Reading, fields: Fields) -> Answer:
    """Answer that the service answers."""
    fields.end()
    return {}


def get_service_info(call: Reading, fields: Fields) -> Answer:
    """Answer which service this is."""
    fields.end()
    return {
        "instance": call.view.meta("instance"),
        "product": PRODUCT,
        "version": __version__,
        "custody": True,
        "batch": MAX_ORDERS,
        "allOrganizations": call.caller.organizations is None,
    }


def get_my_org(call: Reading, fields: Fields) -> Answer:
    """Answer the organization of the call."""
    fields.end()
    return {"org": organization_view(call.organization())}


def record_context(call: Writing, fields: Fields) -> Answer:
    """Record the context of this call with an object that is already as wanted.

    So a tree takes over what it finds in step, and protection from deletion is remembered.
    """
    object_id = fields.text("id", required=True)
    fields.end()
    held = call.any_object(object_id)
    call.expect(held)
    return {"details": details_changed(call.change(held, (ContextRecorded(),)))}
