"""The REST API in OpenAPI 3.1, made from the table of operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from docs.api.answers import answer_schema, components
from docs.api.requests import request_schema
from docs.api.schemas import ID, Schema, choice, ref, text
from reconciler import __version__
from reconciler.kinds.action_flow.flows import FLOW_NUMBERED, TRIGGER_NUMBERED
from reconciler.kinds.addresses import REST
from reconciler.resources.fields import NO_NUL
from reconciler.resources.kinds import MAX_NAME
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.table import operations

TAGS = {
    "core": "The three operations that this service is about.",
    "supporting": "What a reconciler needs beside them.",
    "own": "This service's own, which similar services do not have.",
}
CORE = frozenset({"UpdateOrgIDPJWTConfig", "AddOIDCApp", "CreateAction"})
_IN_PATH = re.compile(r"\{(\w+)\}", re.ASCII)
_OF_NO_ORGANIZATION = frozenset(
    {
        "Healthz",
        "GetIAM",
        "GetServiceInfo",
        "AddOrg",
        "WriteBatch",
        "AcquireLease",
        "RenewLease",
        "ReleaseLease",
        "ListTrust",
        "GetTrust",
        "GrantTrust",
        "RevokeTrust",
    }
)
ERROR_STATUSES: Mapping[int, str] = {
    400: "Invalid argument.",
    401: "The token is missing, malformed, unknown, revoked or expired.",
    403: "The token's role does not include the permission.",
    404: "There is no such object, or the caller may not know of it.",
    405: "The address, perhaps with an empty id, is one that has other verbs.",
    409: "Precondition failed, name in use, or lost to another writer.",
    413: "The body is too large.",
    415: "The content type or encoding is not understood.",
    429: "The service is busy or full.",
    500: "The service failed.",
    503: "The store cannot be used now.",
}
"""The statuses of refusals, in words."""
_MAKES_A_SECRET = frozenset({"AddOIDCApp", "RegenerateOIDCClientSecret"})


@cache
def openapi_text() -> str:
    """Return the document as it stands in its file."""
    return json.dumps(openapi(), indent=2, ensure_ascii=False) + "\n"


def openapi() -> dict[str, Any]:
    """Return the document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Identity service",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Made with `reconciler token create`.",
                }
            },
            "schemas": components(),
            "headers": _RESPONSE_HEADERS,
            "responses": {str(status): _refusal(status) for status in ERROR_STATUSES},
        },
    }


def _paths() -> dict[str, dict[str, Any]]:
    """Return every address; those that differ in the names of their parts only are one."""
    paths: dict[str, dict[str, Any]] = {}
    shapes: dict[str, str] = {}
    for operation in operations().values():
        for number, address in enumerate(operation.http):
            verb, _, path = address.partition(" ")
            shown = shapes.setdefault(_IN_PATH.sub("{}", path), path)
            described = _described(operation, address, shown)
            described["operationId"] += "Alias" if number else ""
            paths.setdefault(shown, {})[verb.lower()] = described
    return paths


def _described(operation: Operation, address: str, shown: str) -> dict[str, Any]:
    verb, _, path = address.partition(" ")
    request = request_schema(operation, _IN_PATH.findall(path))
    statuses = [status for status in ERROR_STATUSES if status != 401 or _needs_token(operation)]
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [_tag(operation)],
        "parameters": [
            *(_path_parameter(name) for name in _IN_PATH.findall(shown)),
            *_headers(operation),
            *(_query_parameters(request) if verb == "GET" else ()),
        ],
        "responses": {
            "200": _answer(operation),
            **{str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses},
        },
    }
    if operation.permission:
        described["description"] = f"Needs the permission `{operation.permission}`."
    if operation.successor:
        described["deprecated"] = True
    if not _needs_token(operation):
        described["security"] = []
    if verb != "GET" and (request["properties"] or verb != "DELETE"):
        described["requestBody"] = {
            "required": "required" in request,
            "content": {"application/json": {"schema": request}},
        }
    return described


def _needs_token(operation: Operation) -> bool:
    return operation.needs_token


def _tag(operation: Operation) -> str:
    if operation.name in CORE:
        return "core"
    return "supporting" if operation.grpc else "own"


def _answer(operation: Operation) -> dict[str, Any]:
    told = ("deprecation", "link") if operation.successor else ()
    names = ("x-request-id", *told)
    return {
        "description": "Done.",
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {"application/json": {"schema": answer_schema(operation)}},
    }


def _refusal(status: int) -> dict[str, Any]:
    names = ["x-request-id", *_FURTHER_HEADERS.get(status, ())]
    return {
        "description": ERROR_STATUSES[status],
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in names},
        "content": {"application/json": {"schema": ref("Error")}},
    }


# Parameters of a path that are no ids: numbers of flows and of their triggers, and any text.
_NO_IDS = {
    **dict.fromkeys(REST, text(shortest=1, longest=MAX_NAME)),
    "type": choice(FLOW_NUMBERED),
    "flowType": choice(FLOW_NUMBERED),
    "triggerType": choice(TRIGGER_NUMBERED),
}


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": _NO_IDS.get(name) or {"type": "string", "pattern": ID},
    }


def _query_parameters(request: Schema) -> list[dict[str, Any]]:
    parameters = []
    for name, schema in request["properties"].items():
        kind = next(kind for kind in schema["type"] if kind != "null")
        parameters.append({"name": name, "in": "query", "schema": {**schema, "type": kind}})
    return parameters


def _headers(operation: Operation) -> list[dict[str, Any]]:
    names = [] if operation.name in _OF_NO_ORGANIZATION else ["x-service-orgid"]
    if operation.effect in {Effect.CHANGES, Effect.REMOVES}:
        names += ["if-match"]
    if operation.is_of_an_object:
        names += ["idempotency-key"]
    if operation.is_of_an_object or operation.name == "ClaimSecrets":
        names += ["x-reconciler-lease", "x-reconciler-context"]
    if operation.name in _MAKES_A_SECRET:
        names += ["x-reconciler-custody"]
    return [{"name": name, "in": "header", **_REQUEST_HEADERS[name]} for name in names]


_ABOUT = """\
Organizations with projects, OIDC applications, JWT identity providers, actions and flows. Which
actions belong to a trigger of a flow is stored. This service runs no action.

Names are in camelCase, enums are names, 64-bit numbers may be strings, and `null` means that a
field is left out. A field that an operation does not know is refused. A field that the address
carries wins over one of the same name in the body. An update is full: what is left out is at its
default afterwards. The same operations are answered over gRPC and gRPC-web."""

_PRINTABLE = "^[ -~]*$"
_CONTEXT = {
    "type": "object",
    "propertyNames": {"pattern": NO_NUL},
    "additionalProperties": {
        "anyOf": [
            {"type": "string", "pattern": NO_NUL},
            {"type": "integer", "minimum": 1 - 2**64, "maximum": 2**64 - 1},
            {"type": ["boolean", "null"]},
        ]
    },
}
_REQUEST_HEADERS: Mapping[str, dict[str, Any]] = {
    "x-service-orgid": {
        "description": "Id of the organization the call is made for; the token's own by default."
        " `x-zitadel-orgid` means the same.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{0,200}$"},
    },
    "if-match": {
        "description": "Sequence the object must still be at, in quotes; 409 if it has moved on.",
        "schema": {"type": "string", "pattern": '^(?:"(?:0|[1-9][0-9]{0,17})")?$'},
        "example": '"1700000000000000"',
    },
    "idempotency-key": {
        "description": "A repeated call with the same key and body gives the first answer again,"
        " for 24 hours. Creates, updates and deletes take one.",
        "schema": {"type": "string", "maxLength": 200, "pattern": _PRINTABLE},
    },
    "x-reconciler-lease": {
        "description": "Lease under which the write is made; 409 if it is lost.",
        "schema": {"type": "string", "pattern": _PRINTABLE},
    },
    "x-reconciler-custody": {
        "description": "Id of a run that asks to keep the client secret, sealed, until its delivery"
        " is acknowledged.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
    },
    "x-reconciler-context": {
        "description": "Why the write is made: kept with the event. At most 8192 characters.",
        "content": {"application/json": {"schema": _CONTEXT}},
    },
}
_RESPONSE_HEADERS: Mapping[str, dict[str, Any]] = {
    "x-request-id": {
        "description": "Id of the request in the log of the server.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
    "deprecation": {
        "description": "Time since which the operation is deprecated (RFC 9745).",
        "required": True,
        "schema": {"type": "string", "pattern": "^@[0-9]+$"},
    },
    "link": {
        "description": "The address of the operation that replaces it.",
        "required": True,
        "schema": {"type": "string", "pattern": '^<[^>]+>; rel="successor-version"$'},
    },
    "www-authenticate": {
        "description": "How to say who asks.",
        "required": True,
        "schema": {"type": "string"},
    },
    "retry-after": {
        "description": "Seconds to wait before asking again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
}
_FURTHER_HEADERS = {401: ("www-authenticate",), 429: ("retry-after",), 503: ("retry-after",)}
