"""Objects as reads answer them: the shapes of the API that this service is compatible with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.resources.compliance import MESSAGES, compliance_problems, is_none_compliant
from reconciler.service.domain.oidc_application import allowed_origins
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import details_read


def organization_view(row: ObjectRow) -> dict[str, Any]:
    """Return an organization as it is answered."""
    return {
        "id": row.id,
        "details": details_read(row),
        "state": "ORG_STATE_ACTIVE",
        "name": row.name,
        "primaryDomain": "",
    }


def project_view(row: ObjectRow) -> dict[str, Any]:
    """Return a project as it is answered."""
    return {
        "id": row.id,
        "details": details_read(row),
        "name": row.name,
        "state": "PROJECT_STATE_ACTIVE",
        "projectRoleAssertion": False,
        "projectRoleCheck": False,
        "hasProjectCheck": False,
        "privateLabelingSetting": "PRIVATE_LABELING_SETTING_UNSPECIFIED",
    }


def idp_view(row: ObjectRow) -> dict[str, Any]:
    """Return an identity provider as it is answered."""
    return {
        "id": row.id,
        "details": details_read(row),
        "state": "IDP_STATE_ACTIVE",
        "name": row.name,
        "stylingType": "STYLING_TYPE_UNSPECIFIED",
        "owner": "IDP_OWNER_TYPE_ORG",
        "jwtConfig": json.loads(row.spec),
        "autoRegister": False,
    }


def app_view(row: ObjectRow) -> dict[str, Any]:
    """Return an application as it is answered."""
    spec = json.loads(row.spec)
    return {
        "id": row.id,
        "details": details_read(row),
        "state": "APP_STATE_ACTIVE",
        "name": row.name,
        "oidcConfig": {
            **spec,
            "clientId": row.client_id,
            **compliance_view(spec),
            "allowedOrigins": allowed_origins(spec),
            "backChannelLogoutUri": "",
        },
    }


def compliance_view(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is answered about a configuration's compliance, on create and on read."""
    problems = compliance_problems(spec)
    return {
        "noneCompliant": is_none_compliant(problems),
        "complianceProblems": [{"key": key, "localizedMessage": MESSAGES[key]} for key in problems],
    }


def action_view(row: ObjectRow) -> dict[str, Any]:
    """Return an action as it is answered."""
    return {
        "id": row.id,
        "details": details_read(row),
        "state": "ACTION_STATE_ACTIVE",
        "name": row.name,
        **json.loads(row.spec),
    }
