"""The calls that write the roles of projects, which name a role by its project and its key."""

from __future__ import annotations

from reconciler.kinds.project_role.fields import role_id
from reconciler.service_client.kinds import KindCalls
from reconciler.service_client.port import CreateOrder


class _Calls(KindCalls):
    def known_id(self, order: CreateOrder) -> str:
        return role_id(order.project_id, order.ref.name)


ROW = _Calls(
    create="AddProjectRole",
    configure="UpdateProjectRole",
    remove="RemoveProjectRole",
    id_field="",
)
