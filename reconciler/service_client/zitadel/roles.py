"""Roles of a ZITADEL: those of the user of a token, and what to say where one is missing.

The roles are the server's defaults. An operator can give them other permissions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.diagnostics import listed
from reconciler.errors import AccessDeniedError, ServiceError, UnauthenticatedError
from reconciler.kinds.fields import KINDS
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order
from reconciler.service_client.wire import Wire, WireRefusal
from reconciler.service_client.zitadel.objects import all_items

_SHOWN = 20  # roles in a message
_OF_INSTANCE = "IAM_ORG_MANAGER or IAM_OWNER of the instance"
_MANAGERS = "Managers (newer consoles: Administrators)"
_IN_ORGANIZATION = f"Console: the organization, {_MANAGERS}."
_IN_INSTANCE = f"Console: the settings of the instance, {_MANAGERS}."
_IN_PROJECT = f"Console: the project, {_MANAGERS}."


def memberships(wire: Wire, *queries: JsonObject) -> Sequence[JsonObject] | None:
    """Return the memberships of the user; None where they cannot be asked for."""
    items = all_items(wire, "ListMyMemberships", {"queries": list(queries)})
    return None if isinstance(items, WireRefusal) else items


def reads_everything(membership: JsonObject) -> bool:
    """Return whether a membership of the instance reads its organizations.

    Those that only act for other users do not.
    """
    return any(not role.endswith("_IMPERSONATOR") for role in _names(membership))


def roles_of_user(wire: Wire) -> Sequence[str] | None:
    """Return the roles of the user, each with its place; None where they are not shown."""
    told = memberships(wire)
    return None if told is None else [role for each in told for role in _placed(each)]


def _placed(membership: JsonObject) -> Iterator[str]:
    name = membership.get("displayName", "")
    if membership.get("iam") is True:
        place = "the instance"
    else:
        kind = "organization" if "orgId" in membership else "project"
        place = f"the {kind} {name}"
    yield from (f"{role} of {place}" for role in _names(membership))


def _names(membership: JsonObject) -> Sequence[str]:
    roles = membership.get("roles", ())
    return [str(role) for role in roles] if isinstance(roles, list) else ()


def missing_role(organization: str, roles: Sequence[str] | None, *, is_held: bool) -> str:
    """Return the remedy for an organization that the user of a token does not see.

    Args:
        organization: Its name.
        roles: The user's own, each with its place; None where the service does not report them.
        is_held: It exists, as far as the service tells.
    """
    create = "" if is_held else f" To create organizations it takes {_OF_INSTANCE}."
    return f"{_told(roles)} {role_that_reads(f'organization {organization}')}{create}"


def no_organization(roles: Sequence[str] | None) -> AccessDeniedError:
    """Return why a run ends whose user may read no organization at all."""
    return AccessDeniedError(
        "this token may read no organization",
        remedy=f"{_told(roles)} {role_that_reads('organization of the manifests')}",
    )


def denied(refused: ServiceError, remedy: str) -> ServiceError:
    """Return a refusal with a remedy that names the role it takes, if it is about a role."""
    is_denied = isinstance(refused, AccessDeniedError)
    if not is_denied or isinstance(refused, UnauthenticatedError):
        return refused
    return AccessDeniedError(refused.problem, remedy=remedy)


def role_that_writes(order: Order) -> str:
    """Return which role may carry out an order, and where it is given."""
    ref = order.ref
    if isinstance(order, CreateOrder) and ref.kind is Kind.ORGANIZATION:
        return f"Give the user of this token {_OF_INSTANCE}. {_IN_INSTANCE}"
    role = ZITADEL[ref.kind].removed_by
    if isinstance(order, DeleteOrder) and role:
        return (
            f"Give the user of this token {role} of the project {ref.project}. "
            f"{_IN_PROJECT} ORG_OWNER may not delete {KINDS[ref.kind].plural}."
        )
    return (
        f"Give the user of this token ORG_OWNER of the organization {ref.organization}. "
        f"{_IN_ORGANIZATION}"
    )


def role_that_reads(organization: str) -> str:
    """Return which role reads and plans an organization, and where it is given."""
    return (
        f"Give the user of this token ORG_OWNER of the {organization} (ORG_OWNER_VIEWER is enough "
        f"to plan). {_IN_ORGANIZATION}"
    )


def _told(roles: Sequence[str] | None) -> str:
    if roles is None:
        return "The service does not report the roles of its user."
    if not roles:
        return "Its user has no role."
    only = " A role of a project is not enough." if all(" project " in r for r in roles) else ""
    return f"Its user has the roles: {listed(roles, _SHOWN)}.{only}"
