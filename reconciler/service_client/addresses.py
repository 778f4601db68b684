"""The address of each operation over HTTP: verb and path, and whether it may be asked twice.

The service keeps the same table for itself; a test outside holds the two together, because
neither side may import the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from reconciler.errors import ServiceError
from reconciler.service_client.wire import Call

_PROJECTS = "/management/v1/projects"
_APP = f"{_PROJECTS}/{{projectId}}/apps/{{appId}}"
_IDPS = "/management/v1/idps"
_ACTIONS = "/management/v1/actions"
_OWN = "/reconciler/v1"
WRITE_BATCH = "WriteBatch"
_OWED = f"{_OWN}/organizations/{{organizationId}}/owed-secrets"

ADDRESSES: Mapping[str, str] = {
    "GetIAM": "GET /management/v1/iam",
    "GetMyOrg": "GET /management/v1/orgs/me",
    "AddOrg": "POST /management/v1/orgs",
    "ListOrgs": "POST /admin/v1/orgs/_search",
    "AddProject": f"POST {_PROJECTS}",
    "ListProjects": f"POST {_PROJECTS}/_search",
    "AddOrgJWTIDP": f"POST {_IDPS}/jwt",
    "ListOrgIDPs": f"POST {_IDPS}/_search",
    "GetOrgIDPByID": f"GET {_IDPS}/{{id}}",
    "UpdateOrgIDP": f"PUT {_IDPS}/{{idpId}}",
    "UpdateOrgIDPJWTConfig": f"PUT {_IDPS}/{{idpId}}/jwt_config",
    "RemoveOrgIDP": f"DELETE {_IDPS}/{{idpId}}",
    "AddOIDCApp": f"POST {_PROJECTS}/{{projectId}}/apps/oidc",
    "ListApps": f"POST {_PROJECTS}/{{projectId}}/apps/_search",
    "GetAppByID": f"GET {_APP}",
    "UpdateApp": f"PUT {_APP}",
    "UpdateOIDCAppConfig": f"PUT {_APP}/oidc_config",
    "RemoveApp": f"DELETE {_APP}",
    "RegenerateOIDCClientSecret": f"POST {_APP}/oidc_config/_generate_client_secret",
    "CreateAction": f"POST {_ACTIONS}",
    "ListActions": f"POST {_ACTIONS}/_search",
    "GetAction": f"GET {_ACTIONS}/{{id}}",
    "UpdateAction": f"PUT {_ACTIONS}/{{id}}",
    "DeleteAction": f"DELETE {_ACTIONS}/{{id}}",
    "GetServiceInfo": f"GET {_OWN}/service",
    "ListObjects": f"GET {_OWN}/organizations/{{organizationId}}/objects",
    "GetObjectHistory": f"GET {_OWN}/objects/{{id}}/history",
    "ListRemovals": f"GET {_OWN}/organizations/{{organizationId}}/removals",
    "ListTrees": f"GET {_OWN}/trees",
    "RecordContext": f"POST {_OWN}/objects/{{id}}/context",
    WRITE_BATCH: f"POST {_OWN}/batch",
    "ListOwedSecrets": f"GET {_OWED}",
    "ClaimSecrets": f"POST {_OWED}/_claim",
    "AcknowledgeSecrets": f"POST {_OWED}/_acknowledge",
    "AcquireLease": f"POST {_OWN}/leases",
    "RenewLease": f"PUT {_OWN}/leases",
    "ReleaseLease": f"DELETE {_OWN}/leases",
}

_PARAMETER = re.compile(r"\{(\w+)\}", re.ASCII)
# Safe to repeat: a repeated claim only adds one more event, and each order of a batch has a key.
_REPEATABLE = frozenset(
    {"RenewLease", "ReleaseLease", "ClaimSecrets", "AcknowledgeSecrets", WRITE_BATCH}
)


_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)


def is_id(text: object) -> bool:
    """Return whether a text can be the id of an object: it goes into addresses and headers."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


class Target(NamedTuple):
    """A call as HTTP addresses it: verb, path with query, and the JSON body or nothing."""

    verb: str
    path: str
    body: bytes | None


def target_of(call: Call) -> Target:
    """Return the address of a call. What is not in the path goes into the query or the body."""
    verb, _, template = ADDRESSES[call.operation].partition(" ")
    in_path = set(_PARAMETER.findall(template))
    path = _PARAMETER.sub(lambda found: _segment(call.fields[found[1]]), template)
    rest = {name: value for name, value in call.fields.items() if name not in in_path}
    if verb == "GET":
        query = urlencode({name: value for name, value in rest.items() if value != ""})
        return Target(verb, f"{path}?{query}" if query else path, None)
    if verb == "DELETE" and not rest:
        return Target(verb, path, None)
    return Target(verb, path, json.dumps(rest, separators=(",", ":")).encode())


def may_repeat(call: Call) -> bool:
    """Return whether a call may be sent again when its first result is unknown.

    A read may. A write may where the service keeps a second one from counting: by its
    idempotency key, or because it expects a sequence that the first one moved on.
    """
    return bool(
        is_read(call)
        or call.idempotency_key
        or call.expected_sequence is not None
        or call.operation in _REPEATABLE
    )


def is_read(call: Call) -> bool:
    """Return whether a call writes nothing."""
    verb, _, path = ADDRESSES[call.operation].partition(" ")
    return verb == "GET" or path.endswith("/_search")


def _segment(value: object) -> str:
    """Return an id as one segment of a path. What could leave the segment is no id."""
    text = str(value)
    if not is_id(text):
        raise ServiceError(
            "the service gave an id that cannot be part of an address",
            remedy="Ids are letters, digits, - and _. Nothing was sent.",
        )
    return text
