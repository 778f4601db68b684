"""The rules that span several fields of an OIDC application.

Both sides use these rules: the service refuses by them, the reconciler judges by them before
anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconciler.resources.fields import Spec
from reconciler.resources.origin import parse_origin

WITH_SECRET = frozenset({"OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_POST"})

_COVERING_GRANTS: Mapping[str, tuple[str, ...]] = {
    "OIDC_RESPONSE_TYPE_CODE": (
        "OIDC_GRANT_TYPE_AUTHORIZATION_CODE",
        "OIDC_GRANT_TYPE_DEVICE_CODE",
    ),
    "OIDC_RESPONSE_TYPE_ID_TOKEN": ("OIDC_GRANT_TYPE_IMPLICIT",),
    "OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN": ("OIDC_GRANT_TYPE_IMPLICIT",),
}


class FieldProblem(NamedTuple):
    """A fault of a field: its name, the position in its list, and a sentence."""

    field: str
    position: int
    message: str


def has_client_secret(spec: Spec) -> bool:
    """Return whether an application that is configured so signs in with a client secret."""
    return spec["authMethodType"] in WITH_SECRET


def oidc_problems(spec: Spec) -> list[FieldProblem]:
    """Return why a service refuses these fields, in normal form (wire facts 2.2, domain check)."""
    return [
        *_uncovered_response_types(spec["responseTypes"], spec["grantTypes"]),
        *_wrong_origins(spec["additionalOrigins"]),
    ]


def _uncovered_response_types(
    response_types: Sequence[str], grant_types: Sequence[str]
) -> list[FieldProblem]:
    problems = []
    for index, response_type in enumerate(response_types):
        wanted = _COVERING_GRANTS[response_type]
        if set(wanted).isdisjoint(grant_types):
            message = f"{response_type} needs {' or '.join(wanted)} among grantTypes"
            problems.append(FieldProblem("responseTypes", index, message))
    return problems


def _wrong_origins(origins: Sequence[str]) -> list[FieldProblem]:
    problems = []
    for index, origin in enumerate(origins):
        try:
            parse_origin(origin)
        except ValueError as error:
            problems.append(FieldProblem("additionalOrigins", index, str(error)))
    return problems
