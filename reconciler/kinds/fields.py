"""The kinds and their fields: a row for each."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import fields as action
from reconciler.kinds.action_flow import fields as action_flow
from reconciler.kinds.idp_jwt_config import fields as idp_jwt_config
from reconciler.kinds.oidc_application import fields as oidc_application
from reconciler.kinds.organization import fields as organization
from reconciler.kinds.project import fields as project
from reconciler.kinds.project_role import fields as project_role
from reconciler.resources.kinds import KindRow
from reconciler.resources.ref import Kind

KINDS: Mapping[Kind, KindRow] = {
    Kind.ORGANIZATION: organization.ROW,
    Kind.PROJECT: project.ROW,
    Kind.IDP_JWT_CONFIG: idp_jwt_config.ROW,
    Kind.OIDC_APPLICATION: oidc_application.ROW,
    Kind.ACTION: action.ROW,
    Kind.ACTION_FLOW: action_flow.ROW,
    Kind.PROJECT_ROLE: project_role.ROW,
}
