"""Refusals of the service: one table of codes, and every reason.

A refusal crosses every wire as code, message and details. It says nothing of the inside, and
never repeats a value that the caller sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from reconciler.resources import call

Code = call.Code  # part of what a refusal says, so it is named here, too


HTTP_STATUS: Mapping[Code, int] = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.PRECONDITION_FAILED: 409,
    Code.ABORTED: 409,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.UNAUTHENTICATED: 401,
}


class Refusal(Exception):
    """The service says no.

    Attributes:
        code: The kind of refusal.
        message: One sentence for the caller.
        reason: A stable id of the reason, for programs.
        details: Further facts about it, by name.
        http_status: The status under which HTTP carries it.
    """

    def __init__(self, code: Code, message: str, reason: str, **details: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason
        self.details: Mapping[str, str] = details
        self.http_status = HTTP_STATUS[code]


def invalid(field: str, rule: str) -> Refusal:
    """Refuse a field, by its path and the rule it breaks."""
    return Refusal(Code.INVALID_ARGUMENT, f"{field}: {rule}", "field.invalid", field=field)


def not_found(what: str) -> Refusal:
    """Refuse because an object is missing, or must look so."""
    return Refusal(Code.NOT_FOUND, f"there is no such {what}", "object.not_found")


def name_taken(what: str) -> Refusal:
    """Refuse because a name is in use; names are unique ignoring case."""
    return Refusal(
        Code.ALREADY_EXISTS, f"there is another {what} of this name (ignoring case)", "name.taken"
    )


def moved_on(sequence: int) -> Refusal:
    """Refuse because the object is no longer what the request was based on."""
    return Refusal(
        Code.PRECONDITION_FAILED,
        f"the object has changed since; it is now at sequence {sequence}",
        "object.moved_on",
        sequence=str(sequence),
    )


def not_allowed(permission: str, role: str, where: str = "") -> Refusal:
    """Refuse because the caller lacks a permission, and name the role that has it."""
    return Refusal(
        Code.PERMISSION_DENIED,
        f"this needs a token with the role {role}{where} (permission {permission})",
        "permission.missing",
    )


def in_that_state(state: str) -> Refusal:
    """Refuse to give an object the state that it has."""
    return Refusal(Code.PRECONDITION_FAILED, f"the object is {state} already", "object.state")


def too_many_trees(most: int) -> Refusal:
    """Refuse because as many trees as may have already written to an object."""
    message = f"{most} trees have written to this object already, and none may be added"
    return Refusal(Code.RESOURCE_EXHAUSTED, message, "object.too_many_trees")


def always(code: Code, reason: str, message: str, **details: str) -> Callable[[], Refusal]:
    """Return what refuses in the same words each time.

    Each call makes a refusal of its own: one that is raised twice gathers the traceback of both.
    """
    return partial(Refusal, code, message, reason, **details)


role_exists = always(Code.ALREADY_EXISTS, "name.taken", "there is a role of this key")
organization_unnamed = always(
    Code.PRECONDITION_FAILED,
    "organization.unnamed",
    "x-service-orgid: must name an organization: this token is for several",
    field="x-service-orgid",
)
key_reused = always(
    Code.PRECONDITION_FAILED,
    "idempotency.reused",
    "the idempotency key was used for another request",
)
secret_gone = always(
    Code.PRECONDITION_FAILED,
    "idempotency.secret_gone",
    "this was done before, and its secret cannot be answered again",
)
object_gone = always(
    Code.PRECONDITION_FAILED,
    "idempotency.object_gone",
    "this was done before, and the object that was made then was removed or renamed since",
)
secret_replaced = always(
    Code.PRECONDITION_FAILED, "custody.replaced", "the application has a newer secret"
)
secret_lost = always(
    Code.PRECONDITION_FAILED,
    "custody.lost",
    "the secret was not fetched in time and is lost; make a new one",
)
secret_unreadable = always(
    Code.PRECONDITION_FAILED,
    "custody.unreadable",
    "the seal key that opens this secret is not the one of the service",
)
actions_unknown = always(
    Code.PRECONDITION_FAILED,
    "flow.actions_unknown",
    "actionIds: must be ids of actions of this organization, each once",
)
lease_lost = always(Code.ABORTED, "lease.lost", "the lease of this organization is no longer yours")
leadership_lost = always(
    Code.ABORTED, "leadership.lost", "the leadership of this tree is not yours"
)
in_the_way = always(Code.ABORTED, "write.conflict", "another request wrote at the same time")
# It does not say how the store failed: that is for the log of the operator.
store_unusable = always(Code.UNAVAILABLE, "store.unavailable", "the store cannot be used")
