"""Operations whose requests are models. See ``table``, which loads this module when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from reconciler.resources.models import Model
from reconciler.service.operations.actions import (
    ActionRequest,
    CreateActionRequest,
    UpdateActionRequest,
    create_action,
    delete_action,
    get_action,
    update_action,
)
from reconciler.service.operations.answers import Answer
from reconciler.service.operations.applications import (
    AddOIDCAppRequest,
    AppRequest,
    UpdateAppRequest,
    UpdateOIDCAppConfigRequest,
    add_oidc_app,
    get_app,
    regenerate_secret,
    remove_app,
    rename_app,
    update_config,
)
from reconciler.service.operations.flows import (
    FlowRequest,
    SetTriggerActionsRequest,
    clear_flow,
    get_flow,
    set_trigger_actions,
)
from reconciler.service.operations.identity_providers import (
    AddJWTProviderRequest,
    AddOrgJWTIDPRequest,
    GetOrgIDPByIDRequest,
    ProviderRequest,
    RemoveOrgIDPRequest,
    UpdateJWTProviderRequest,
    UpdateOrgIDPJWTConfigRequest,
    UpdateOrgIDPRequest,
    add_idp,
    add_provider,
    get_idp,
    get_provider,
    remove_idp,
    remove_provider,
    rename_idp,
    update_jwt_config,
    update_provider,
)
from reconciler.service.operations.operation import ADMIN, MANAGEMENT, Effect, Operation
from reconciler.service.operations.organizations import (
    AddOrgRequest,
    AddProjectRequest,
    GetProjectByIDRequest,
    UpdateProjectRequest,
    add_org,
    add_project,
    get_project,
    update_project,
)
from reconciler.service.operations.session import Reading, Writing
from reconciler.service.operations.states import (
    IdpRequest,
    ProjectRequest,
    deactivate_action,
    deactivate_app,
    deactivate_idp,
    deactivate_project,
    reactivate_action,
    reactivate_app,
    reactivate_idp,
    reactivate_project,
)

M = TypeVar("M", bound=Model)


def _read(
    name: str, permission: str, handler: Callable[[Reading, M], Answer], request: type[M]
) -> Operation:
    return Operation(name, permission, Effect.READS, handler, request, (f"{MANAGEMENT}/{name}",))


def _write(
    name: str,
    permission: str,
    handler: Callable[[Writing, M], Answer],
    request: type[M],
    effect: Effect,
) -> Operation:
    return Operation(name, permission, effect, handler, request, (f"{MANAGEMENT}/{name}",))


_CREATES, _CHANGES, _REMOVES = Effect.CREATES, Effect.CHANGES, Effect.REMOVES
_PROJECT = "project.write"
_IDP, _APP, _ACTION = "org.idp.write", "project.app.write", "org.action.write"

ROWS = (
    _write("AddOrg", "org.create", add_org, AddOrgRequest, _CREATES),
    _write("AddProject", "project.create", add_project, AddProjectRequest, _CREATES),
    _read("GetProjectByID", "project.read", get_project, GetProjectByIDRequest),
    _write("UpdateProject", "project.write", update_project, UpdateProjectRequest, _CHANGES),
    # Identity providers.
    _write("AddOrgJWTIDP", _IDP, add_idp, AddOrgJWTIDPRequest, _CREATES),
    _read("GetOrgIDPByID", "org.idp.read", get_idp, GetOrgIDPByIDRequest),
    _write("UpdateOrgIDP", _IDP, rename_idp, UpdateOrgIDPRequest, _CHANGES),
    replace(
        _write(
            "UpdateOrgIDPJWTConfig",
            _IDP,
            update_jwt_config,
            UpdateOrgIDPJWTConfigRequest,
            _CHANGES,
        ),
        grpc=(f"{MANAGEMENT}/UpdateOrgIDPJWTConfig", f"{ADMIN}/UpdateIDPJWTConfig"),
    ),
    _write("RemoveOrgIDP", _IDP, remove_idp, RemoveOrgIDPRequest, _REMOVES),
    _write("AddJWTProvider", _IDP, add_provider, AddJWTProviderRequest, _CREATES),
    _read("GetProviderByID", "org.idp.read", get_provider, ProviderRequest),
    _write("UpdateJWTProvider", _IDP, update_provider, UpdateJWTProviderRequest, _CHANGES),
    _write("DeleteProvider", _IDP, remove_provider, ProviderRequest, _REMOVES),
    # Applications.
    _write("AddOIDCApp", _APP, add_oidc_app, AddOIDCAppRequest, _CREATES),
    _read("GetAppByID", "project.app.read", get_app, AppRequest),
    _write("UpdateApp", _APP, rename_app, UpdateAppRequest, _CHANGES),
    _write("UpdateOIDCAppConfig", _APP, update_config, UpdateOIDCAppConfigRequest, _CHANGES),
    _write("RemoveApp", "project.app.delete", remove_app, AppRequest, _REMOVES),
    _write("RegenerateOIDCClientSecret", _APP, regenerate_secret, AppRequest, _CHANGES),
    # Actions.
    _write("CreateAction", _ACTION, create_action, CreateActionRequest, _CREATES),
    _read("GetAction", "org.action.read", get_action, ActionRequest),
    _write("UpdateAction", _ACTION, update_action, UpdateActionRequest, _CHANGES),
    _write("DeleteAction", "org.action.delete", delete_action, ActionRequest, _REMOVES),
    # Flows. One that was cleared goes on, so that its sequence can still be expected.
    _read("GetFlow", "org.flow.read", get_flow, FlowRequest),
    _write(
        "SetTriggerActions",
        "org.flow.write",
        set_trigger_actions,
        SetTriggerActionsRequest,
        _CHANGES,
    ),
    _write("ClearFlow", "org.flow.delete", clear_flow, FlowRequest, _CHANGES),
    # States.
    _write(
        "DeactivateProject",
        _PROJECT,
        deactivate_project,
        ProjectRequest,
        _CHANGES,
    ),
    _write(
        "ReactivateProject",
        _PROJECT,
        reactivate_project,
        ProjectRequest,
        _CHANGES,
    ),
    _write("DeactivateOrgIDP", _IDP, deactivate_idp, IdpRequest, _CHANGES),
    _write("ReactivateOrgIDP", _IDP, reactivate_idp, IdpRequest, _CHANGES),
    _write("DeactivateApp", _APP, deactivate_app, AppRequest, _CHANGES),
    _write("ReactivateApp", _APP, reactivate_app, AppRequest, _CHANGES),
    _write("DeactivateAction", _ACTION, deactivate_action, ActionRequest, _CHANGES),
    _write("ReactivateAction", _ACTION, reactivate_action, ActionRequest, _CHANGES),
)
