"""The kinds and the calls that write them: a row for each."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import calls as action
from reconciler.kinds.action_flow import calls as action_flow
from reconciler.kinds.idp_jwt_config import calls as idp_jwt_config
from reconciler.kinds.oidc_application import calls as oidc_application
from reconciler.kinds.organization import calls as organization
from reconciler.kinds.project import calls as project
from reconciler.kinds.project_role import calls as project_role
from reconciler.resources.ref import Kind
from reconciler.service_client.kinds import KindCalls

CALLS: Mapping[Kind, KindCalls] = {
    Kind.ORGANIZATION: organization.ROW,
    Kind.PROJECT: project.ROW,
    Kind.IDP_JWT_CONFIG: idp_jwt_config.ROW,
    Kind.OIDC_APPLICATION: oidc_application.ROW,
    Kind.ACTION: action.ROW,
    Kind.ACTION_FLOW: action_flow.ROW,
    Kind.PROJECT_ROLE: project_role.ROW,
}
