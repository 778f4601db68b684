"""Calls of the identity service's operations, as its clients and the service itself state them.

An operation has one name, one set of REST addresses, and one set of values that a call may carry
beside its fields; a refusal has one of the codes. Client and service read all of it from here, as
neither side may import the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

MANAGEMENT = "/management/v1"
_OWN = "/reconciler/v1"
_OWED = f"{_OWN}/organizations/{{organizationId}}/owed-secrets"

JsonObject: TypeAlias = Mapping[str, Any]
"""Fields of a call, of an answer or of an object in it, by their JSON names."""

WRITE_BATCH = "WriteBatch"


class Code(IntEnum):
    """gRPC's numbers for the refusals of the service, and no others."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    PRECONDITION_FAILED = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


# Addresses of operations that are of no kind: verb and path. A path parameter has the JSON name of
# the field it sets. Clients use the first. Those of a kind are in its row, and ``kinds.addresses``
# has them all.
OF_A_SERVICE: Mapping[str, tuple[str, ...]] = {
    # Of a ZITADEL only.
    "ListExecutionFunctions": ("GET /v2/actions/executions/functions",),
    "ListOrganizations": ("POST /v2/organizations/_search",),
    "ListMyMemberships": ("POST /auth/v1/memberships/me/_search",),
    "Healthz": (f"GET {MANAGEMENT}/healthz", "GET /admin/v1/healthz"),
    "GetIAM": (f"GET {MANAGEMENT}/iam",),
}
OF_OUR_SERVICE: Mapping[str, tuple[str, ...]] = {
    "GetServiceInfo": (f"GET {_OWN}/service",),
    "ListObjects": (f"GET {_OWN}/organizations/{{organizationId}}/objects",),
    "ListObjectsAt": (f"POST {_OWN}/organizations/{{organizationId}}/objects/_search",),
    "GetObjectHistory": (f"GET {_OWN}/objects/{{id}}/history",),
    "ListRemovals": (f"GET {_OWN}/organizations/{{organizationId}}/removals",),
    "ListChanges": (f"GET {_OWN}/organizations/{{organizationId}}/changes",),
    "ListHeads": (f"GET {_OWN}/heads",),
    "ListTrees": (f"GET {_OWN}/trees",),
    "ListTokens": (f"GET {_OWN}/tokens",),
    "RecordContext": (f"POST {_OWN}/objects/{{id}}/context",),
    WRITE_BATCH: (f"POST {_OWN}/batch",),
    "ListOwedSecrets": (f"GET {_OWED}",),
    "ClaimSecrets": (f"POST {_OWED}/_claim",),
    "AcknowledgeSecrets": (f"POST {_OWED}/_acknowledge",),
    "AcquireLease": (f"POST {_OWN}/leases",),
    "RenewLease": (f"PUT {_OWN}/leases",),
    "ReleaseLease": (f"DELETE {_OWN}/leases",),
    "PauseTree": (f"POST {_OWN}/pauses",),
    "ResumeTree": (f"DELETE {_OWN}/pauses",),
    "RecordCommit": (f"POST {_OWN}/commits",),
    "ListTrust": (f"GET {_OWN}/trust",),
    "GetTrust": (f"GET {_OWN}/trust/{{name}}",),
    "GrantTrust": (f"POST {_OWN}/trust",),
    "RevokeTrust": (f"DELETE {_OWN}/trust/{{name}}",),
}

# Of the values that a call carries beside its fields: the header of each in a request of its own
# (gRPC: metadata of the same name), and its key in an order of a batch.
HEADERS: Mapping[str, str] = {
    "organization": "x-service-orgid",
    "expected_sequence": "if-match",
    "idempotency_key": "idempotency-key",
    "lease": "x-reconciler-lease",
    "context": "x-reconciler-context",
    "custody": "x-reconciler-custody",
}
ORGANIZATION_OF_ZITADEL = "x-zitadel-orgid"  # another name of the organization's header
ORDER_KEYS: Mapping[str, str] = {
    "organization": "organizationId",
    "expected_sequence": "ifMatch",
    "idempotency_key": "idempotencyKey",
    "lease": "lease",
    "context": "context",
    "custody": "custody",
}

MAX_TEXTS: Mapping[str, int] = {
    "tree": 200,
    "revision": 200,
    "reason": 500,
    "ignore": 1000,
    "owner": 200,
    "undone": 6000,
}
"""Code points of fields of a context, which rows and caches keep."""

# Not only digits: a ZITADEL may have ids of another form. No separator of paths or headers.
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def is_id(text: object) -> bool:
    """Return whether a text can be the id of an object: it goes into addresses and headers."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one operation.

    Attributes:
        operation: Its name, such as ``AddProject``.
        fields: Path parameters and body together, by their JSON names.
        organization: Id of the organization the call is made for. Empty for the token's own.
        expected_sequence: Sequence that the object must still be at, or None.
        idempotency_key: Makes a repeated write give the first answer again. Empty for none.
        lease: Token of the lease of the organization written to. Empty for a write under none.
        context: The reason of the write, text of a JSON object. Empty for none.
        custody: Id of the run that asks the service to keep a client secret made by this call
            until its delivery is acknowledged. Empty for none.
    """

    operation: str
    fields: JsonObject = field(default_factory=dict)
    organization: str = ""
    expected_sequence: int | None = None
    idempotency_key: str = ""
    lease: str = ""
    context: str = ""
    custody: str = ""
