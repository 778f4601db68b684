"""The kinds and the calls that a ZITADEL has for them: a row for each, copied by each client."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import zitadel as action
from reconciler.kinds.action_flow import zitadel as action_flow
from reconciler.kinds.idp_jwt_config import zitadel as idp_jwt_config
from reconciler.kinds.oidc_application import zitadel as oidc_application
from reconciler.kinds.organization import zitadel as organization
from reconciler.kinds.project import zitadel as project
from reconciler.kinds.project_role import zitadel as project_role
from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.kinds import ZitadelKind

ZITADEL: Mapping[Kind, ZitadelKind] = {
    Kind.ORGANIZATION: organization.ROW,
    Kind.PROJECT: project.ROW,
    Kind.IDP_JWT_CONFIG: idp_jwt_config.ROW,
    Kind.OIDC_APPLICATION: oidc_application.ROW,
    Kind.ACTION: action.ROW,
    Kind.ACTION_FLOW: action_flow.ROW,
    Kind.PROJECT_ROLE: project_role.ROW,
}
