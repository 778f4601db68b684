"""Parts of answers: details, times as text, and objects as reads answer them.

The shapes are those of the API that this service is compatible with.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeAlias

from reconciler.kinds.oidc_application.compliance import (
    MESSAGES,
    compliance_problems,
    is_none_compliant,
)
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.service.domain.oidc_application import allowed_origins
from reconciler.service.domain.refusal import Refusal
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.projections.objects import is_active

Answer: TypeAlias = dict[str, Any]
"""An answer, or an object in one, by the JSON names of its members."""

MICROSECONDS = 1_000_000
ERROR_DETAIL = "type.googleapis.com/zitadel.v1.ErrorDetail"


def timestamp(microseconds: int) -> str:
    """Return a time as RFC 3339 in UTC, to the microsecond."""
    seconds, rest = divmod(microseconds, MICROSECONDS)
    return f"{to_the_second(seconds)}.{rest:06d}Z"


@lru_cache(maxsize=1024)
def to_the_second(seconds: int) -> str:
    """Return a time in seconds since the epoch as RFC 3339 in UTC, without its zone."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def details_read(row: ObjectRow) -> Answer:
    """Return the details of an object that was read, or created: then both dates are the same."""
    return {
        "sequence": str(row.sequence),
        "creationDate": timestamp(row.created),
        "changeDate": timestamp(row.sequence),
        "resourceOwner": row.organization,
    }


def details_changed(row: ObjectRow) -> Answer:
    """Return the details of an object that was changed, or that an update found as wanted."""
    return details_at(row.organization, row.sequence)


def details_at(organization: str, sequence: int) -> Answer:
    """Return the details of an event that changed or removed an object."""
    return {
        "sequence": str(sequence),
        "changeDate": timestamp(sequence),
        "resourceOwner": organization,
    }


def made_id(answer: Answer) -> str:
    """Return the id of the object that a create made; empty for the answers of other calls."""
    return answer.get("appId") or answer.get("idpId") or answer.get("id") or ""


def error_body(refusal: Refusal) -> Answer:
    """Return the body of a refusal (source 7); what is known of it stands in its detail."""
    detail = {
        "@type": ERROR_DETAIL,
        "id": refusal.reason,
        "message": refusal.message,
        **refusal.details,
    }
    return {"code": int(refusal.code), "message": refusal.message, "details": [detail]}


def organization_view(row: ObjectRow) -> Answer:
    """Return an organization as it is answered."""
    return {**_named(row, "ORG_STATE"), "primaryDomain": ""}


def project_view(row: ObjectRow) -> Answer:
    """Return a project as it is answered."""
    members = _named(row, "PROJECT_STATE")
    state = members.pop("state")  # stands after the name, in projects only
    return {**members, "state": state, **_spec_of(row, Kind.PROJECT)}


def idp_view(row: ObjectRow) -> Answer:
    """Return an identity provider as it is answered."""
    return {
        **_named(row, "IDP_STATE"),
        "stylingType": "STYLING_TYPE_UNSPECIFIED",
        "owner": "IDP_OWNER_TYPE_ORG",
        "jwtConfig": _spec_of(row, Kind.IDP_JWT_CONFIG),
        "autoRegister": False,
    }


def provider_view(row: ObjectRow) -> Answer:
    """Return an identity provider as the template calls answer it."""
    return {
        **_named(row, "IDP_STATE"),
        "owner": "IDP_OWNER_TYPE_ORG",
        "type": "PROVIDER_TYPE_JWT",
        "config": {"options": dict(_OPTIONS), "jwt": _spec_of(row, Kind.IDP_JWT_CONFIG)},
    }


# What every provider allows; only a call of ours could ask for something else, and is refused.
_OPTIONS = {
    "isLinkingAllowed": True,
    "isCreationAllowed": True,
    "isAutoCreation": False,
    "isAutoUpdate": False,
    "autoLinking": "AUTO_LINKING_OPTION_UNSPECIFIED",
}


def app_view(row: ObjectRow) -> Answer:
    """Return an application as it is answered."""
    spec = _spec_of(row, Kind.OIDC_APPLICATION)
    return {
        **_named(row, "APP_STATE"),
        "oidcConfig": {
            **spec,
            "clientId": row.client_id,
            **compliance_view(spec),
            "allowedOrigins": allowed_origins(spec),
            "backChannelLogoutUri": "",
        },
    }


def compliance_view(spec: Spec) -> Answer:
    """Return what is answered about a configuration's compliance, on create and on read."""
    problems = compliance_problems(spec)
    return {
        "noneCompliant": is_none_compliant(problems),
        "complianceProblems": [{"key": key, "localizedMessage": MESSAGES[key]} for key in problems],
    }


def action_view(row: ObjectRow) -> Answer:
    """Return an action as it is answered."""
    return {**_named(row, "ACTION_STATE"), **_spec_of(row, Kind.ACTION)}


def _named(row: ObjectRow, state: str) -> Answer:
    """Return the members that objects of every kind have; ``state`` names the enum of theirs."""
    return {
        "id": row.id,
        "details": details_read(row),
        "state": f"{state}_{'ACTIVE' if is_active(row.marks) else 'INACTIVE'}",
        "name": row.name,
    }


def _spec_of(row: ObjectRow, kind: Kind) -> Answer:
    """Return the spec of an object."""
    spec: Answer = json.loads(row.spec)
    return spec
