"""The rules of the kinds: a row for each."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import rules as action
from reconciler.kinds.action_flow import rules as action_flow
from reconciler.kinds.idp_jwt_config import rules as idp_jwt_config
from reconciler.kinds.oidc_application import rules as oidc_application
from reconciler.kinds.project import rules as project
from reconciler.kinds.project_role import rules as project_role
from reconciler.resources.ref import Kind
from reconciler.rules.form import KindRules

# In the order in which a plan shows their findings.
RULES: Mapping[Kind, KindRules] = {
    Kind.OIDC_APPLICATION: oidc_application.RULES,
    Kind.IDP_JWT_CONFIG: idp_jwt_config.RULES,
    Kind.ACTION: action.RULES,
    Kind.ACTION_FLOW: action_flow.RULES,
    Kind.PROJECT_ROLE: project_role.RULES,
    Kind.PROJECT: project.RULES,
    Kind.ORGANIZATION: KindRules(),
}
