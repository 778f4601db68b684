"""The events that only some kinds have; the row of any other kind is empty."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action_flow import events as action_flow
from reconciler.kinds.oidc_application import events as oidc_application
from reconciler.kinds.organization import events as organization
from reconciler.resources.ref import Kind
from reconciler.service.domain.events import KindEvents

EVENTS: Mapping[Kind, KindEvents] = {
    **dict.fromkeys(Kind, KindEvents()),
    Kind.ORGANIZATION: organization.ROW,
    Kind.OIDC_APPLICATION: oidc_application.ROW,
    Kind.ACTION_FLOW: action_flow.ROW,
}
