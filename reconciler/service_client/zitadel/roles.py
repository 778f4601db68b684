"""Roles of a ZITADEL that a run needs: what to say to the user of a token that lacks one.

The roles are the server's defaults. An operator can give them other permissions.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import AccessDeniedError, ServiceError, UnauthenticatedError
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, SecretOrder, UpdateOrder

_SHOWN = 20  # roles in a message
_OF_INSTANCE = "IAM_ORG_MANAGER or IAM_OWNER of the instance"
_MANAGERS = "Managers (newer consoles: Administrators)"
_IN_ORGANIZATION = f"Console: the organization, {_MANAGERS}."
_IN_INSTANCE = f"Console: the settings of the instance, {_MANAGERS}."
_IN_PROJECT = f"Console: the project, {_MANAGERS}."


def missing_role(organization: str, roles: Sequence[str] | None, *, is_held: bool) -> str:
    """Return the remedy for an organization that the user of a token does not see.

    Args:
        organization: Its name.
        roles: The user's own, each with its place; None where the service does not tell.
        is_held: It exists, as far as the service tells.
    """
    create = "" if is_held else f" To create organizations it takes {_OF_INSTANCE}."
    return f"{_told(roles)} {_owner(f'organization {organization}')}{create}"


def no_organization(roles: Sequence[str] | None) -> AccessDeniedError:
    """Return why a run ends whose user may read no organization at all."""
    return AccessDeniedError(
        "this token may read no organization",
        remedy=f"{_told(roles)} {_owner('organization of the manifests')}",
    )


def denied_read(refused: ServiceError, organization: str) -> ServiceError:
    """Return the refusal of a list of an organization, with the role that reads it."""
    if not _is_about_a_role(refused):
        return refused
    return AccessDeniedError(
        refused.problem,
        remedy=_owner(f"organization {organization}"),
    )


def denied_write(refused: ServiceError, order: Order) -> ServiceError:
    """Return the refusal of a write, with the role that may do it."""
    if not _is_about_a_role(refused):
        return refused
    return AccessDeniedError(refused.problem, remedy=_role_for(order))


def _is_about_a_role(refused: ServiceError) -> bool:
    is_denied = isinstance(refused, AccessDeniedError)
    return is_denied and not isinstance(refused, UnauthenticatedError)


def _role_for(order: Order) -> str:
    match order:
        case CreateOrder(ref=ResourceRef(kind=Kind.ORGANIZATION)):
            return f"Give the user of this token {_OF_INSTANCE}. {_IN_INSTANCE}"
        case DeleteOrder(held=held) if held.ref.kind is Kind.OIDC_APPLICATION:
            return (
                f"Give the user of this token PROJECT_OWNER of the project {held.ref.project}. "
                f"{_IN_PROJECT} ORG_OWNER may not delete applications."
            )
        case CreateOrder(ref=ref) | SecretOrder(ref=ref):
            return _owner_of(ref)
        case UpdateOrder(held=held) | DeleteOrder(held=held):
            return _owner_of(held.ref)


def _owner(organization: str) -> str:
    return (
        f"Give the user of this token ORG_OWNER of the {organization} (ORG_OWNER_VIEWER is enough "
        f"to plan). {_IN_ORGANIZATION}"
    )


def _owner_of(ref: ResourceRef) -> str:
    return (
        f"Give the user of this token ORG_OWNER of the organization {ref.organization}. "
        f"{_IN_ORGANIZATION}"
    )


def _told(roles: Sequence[str] | None) -> str:
    if roles is None:
        return "The service does not tell the roles of its user."
    if not roles:
        return "Its user has no role."
    only = " A role of a project is not enough." if all(" project " in r for r in roles) else ""
    more = f" and {len(roles) - _SHOWN} more" if len(roles) > _SHOWN else ""
    return f"Its user has the roles: {', '.join(roles[:_SHOWN])}{more}.{only}"
