"""Addresses of every operation, by its name: verb and path, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.kinds.action import addresses as action
from reconciler.kinds.action_flow import addresses as action_flow
from reconciler.kinds.idp_jwt_config import addresses as idp_jwt_config
from reconciler.kinds.oidc_application import addresses as oidc_application
from reconciler.kinds.organization import addresses as organization
from reconciler.kinds.project import addresses as project
from reconciler.kinds.project_role import addresses as project_role
from reconciler.resources.call import OF_A_SERVICE, OF_OUR_SERVICE

ADDRESSES: Mapping[str, tuple[str, ...]] = {
    **OF_A_SERVICE,
    **organization.ADDRESSES,
    **project.ADDRESSES,
    **project_role.ADDRESSES,
    **idp_jwt_config.ADDRESSES,
    **oidc_application.ADDRESSES,
    **action.ADDRESSES,
    **action_flow.ADDRESSES,
    **OF_OUR_SERVICE,
}

REST = project_role.REST
"""The parameters that stand last in an address and take all that is left of it, any text."""
