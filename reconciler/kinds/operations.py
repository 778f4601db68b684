"""The operations of each kind."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import operations as action
from reconciler.kinds.action_flow import operations as action_flow
from reconciler.kinds.idp_jwt_config import operations as idp_jwt_config
from reconciler.kinds.oidc_application import operations as oidc_application
from reconciler.kinds.organization import operations as organization
from reconciler.kinds.project import operations as project
from reconciler.kinds.project_role import operations as project_role
from reconciler.resources.ref import Kind
from reconciler.service.operations.operation import Operation

OPERATIONS: Mapping[Kind, tuple[Operation, ...]] = {
    Kind.ORGANIZATION: organization.ROWS,
    Kind.PROJECT: project.ROWS,
    Kind.IDP_JWT_CONFIG: idp_jwt_config.ROWS,
    Kind.OIDC_APPLICATION: oidc_application.ROWS,
    Kind.ACTION: action.ROWS,
    Kind.ACTION_FLOW: action_flow.ROWS,
    Kind.PROJECT_ROLE: project_role.ROWS,
}
