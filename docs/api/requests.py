"""What each operation takes: of its model, or as its handler reads the fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from docs.api.schemas import (
    Schema,
    choice,
    closed,
    flag,
    many,
    model_schema,
    number,
    text,
)
from reconciler.resources.call import MAX_TEXTS
from reconciler.resources.fields import NO_NUL
from reconciler.resources.origin import DEFAULT_PORTS
from reconciler.resources.schemas import or_null
from reconciler.service.domain.trust import (
    EDITOR,
    ISSUER,
    MACHINE,
    MAX_CLAIMS,
    MAX_KEYS_BYTES,
    PRESETS,
    VIEWER,
)
from reconciler.service.operations.batch import MAX_ORDERS
from reconciler.service.operations.custody import AT_ONCE
from reconciler.service.operations.form import Form
from reconciler.service.operations.history import OBJECTS_AT_ONCE, ORDERS
from reconciler.service.operations.leases import MAX_HOLDER, MAX_SECONDS
from reconciler.service.operations.lists import (
    MAX_PAGE,
    MAX_QUERIES,
    METHODS,
    Listing,
    Query,
)
from reconciler.service.operations.models import model_of
from reconciler.service.operations.operation import Operation
from reconciler.service.operations.request import LARGEST
from reconciler.service.operations.table import operations
from reconciler.service.operations.trees import COMMIT, MAX_PAUSE_SECONDS, OUTCOMES

RULE_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"(?:{_OCTET}\.){{3}}{_OCTET}"
_GROUP = "[0-9a-f]{1,4}"
_IPV6 = "|".join(
    (
        f"(?:{_GROUP}:){{7}}{_GROUP}",
        f"(?:{_GROUP}:){{1,6}}:{_GROUP}",
        f"(?:{_GROUP}:){{1,5}}(?::{_GROUP}){{2}}",
        f"(?:{_GROUP}:){{1,4}}(?::{_GROUP}){{3}}",
        f"(?:{_GROUP}:){{1,3}}(?::{_GROUP}){{4}}",
        f"(?:{_GROUP}:){{1,2}}(?::{_GROUP}){{5}}",
        f"{_GROUP}:(?::{_GROUP}){{6}}",
        f"(?:{_GROUP}:){{1,7}}:",
        f":(?::{_GROUP}){{1,7}}",
        "::",
    )
)
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LAST_LABEL = f"(?!(?:[0-9]+|0x[0-9a-f]*)(?:[:]|$)){_LABEL}"
_PORT = r":(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_NOT_DEFAULT = "".join(rf"(?!{scheme}://[^/]*:{port}$)" for scheme, port in DEFAULT_PORTS.items())
ORIGIN = (
    rf"^{_NOT_DEFAULT}[a-z][a-z0-9+.-]*://"
    rf"(?:\[(?:{_IPV6})\]|{_IPV4}|(?:{_LABEL}\.)*{_LAST_LABEL})(?:{_PORT})?$"
)

_CODE = "OIDC_RESPONSE_TYPE_CODE"
_CODE_GRANTS = ("OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_DEVICE_CODE")
_TOKEN_TYPES = ("OIDC_RESPONSE_TYPE_ID_TOKEN", "OIDC_RESPONSE_TYPE_ID_TOKEN_TOKEN")
_TOKEN_GRANTS = ("OIDC_GRANT_TYPE_IMPLICIT",)
_WITH_GRANTS = frozenset({"AddOIDCApp", "UpdateOIDCAppConfig"})


def request_schema(operation: Operation, in_path: Sequence[str]) -> Schema:
    """Return the schema of the fields that do not come in the address.

    A field that may be left out may be null, too: that is the same.
    """
    whole = _whole(operation)
    required = [name for name in whole.get("required", ()) if name not in in_path]
    properties = {
        name: field if name in required else or_null(field)
        for name, field in whole["properties"].items()
        if name not in in_path
    }
    schema = closed(properties, required)
    if operation.name in _WITH_GRANTS:
        schema["allOf"] = _grants_cover_response_types()
    return schema


def _whole(operation: Operation) -> Schema:
    if isinstance(operation.handler, Listing):
        return _list(operation.handler)
    if not isinstance(operation.request, Form):
        return _READ_BY_HAND[operation.name]()
    schema = model_schema(model_of(operation.request))
    origins = schema["properties"].get("additionalOrigins")
    if origins is not None:
        origins["items"] = {"type": "string", "pattern": ORIGIN}
    return schema


def _grants_cover_response_types() -> list[Schema]:
    """Return the rule that spans two fields: each response type needs a grant that covers it."""
    tokens: Schema = {"type": "array", "contains": {"enum": list(_TOKEN_TYPES)}}
    code: Schema = {"type": "array", "contains": {"const": _CODE}}
    unsaid: Schema = {"anyOf": [{"type": "null"}, {"type": "array", "maxItems": 0}]}
    return [
        {
            "if": {"properties": {"responseTypes": tokens}, "required": ["responseTypes"]},
            "then": {
                "properties": {"grantTypes": _among(_TOKEN_GRANTS)},
                "required": ["grantTypes"],
            },
        },
        {
            "if": {"properties": {"responseTypes": {"anyOf": [code, unsaid]}}},
            "then": {"properties": {"grantTypes": {"anyOf": [_among(_CODE_GRANTS), unsaid]}}},
        },
    ]


def _among(grants: Sequence[str]) -> Schema:
    return {"type": "array", "contains": {"enum": list(grants)}}


def _nothing() -> Schema:
    return closed({})


def _list(listing: Listing) -> Schema:
    cut = closed(
        {
            "offset": or_null(number("How many to leave out.")),
            "limit": or_null(number(f"How many at most; 0 for {MAX_PAGE}.", greatest=MAX_PAGE)),
            "asc": or_null(flag("Ascending; counts together with a sorting column.")),
        },
        (),
    )
    queries = [closed({name: _query(query)}) for name, query in listing.queries.items()]
    properties: dict[str, Schema] = {
        "query": cut,
        "queries": {
            **many({"oneOf": queries}, "All of them must hold."),
            "maxItems": MAX_QUERIES,
        },
    }
    if listing.sortable:
        properties["sortingColumn"] = choice(listing.sortable)
    return closed(properties, ())


def _query(query: Query) -> Schema:
    fields = {query.field: or_null(choice(query.words) if query.words else text())}
    if query.has_method:
        fields["method"] = or_null(choice(METHODS))
    return closed(fields, ())


def _list_objects() -> Schema:
    return closed(
        {
            "cursor": text("What the page before it gave as ``next``."),
            "limit": _whole_number(),
        },
        (),
    )


def _history() -> Schema:
    version = "(?:0|[1-9][0-9]{0,17})"
    after: Schema = {
        "type": "string",
        "pattern": rf"^(?:{version}(?:\.{version})?)?$",
        "description": "What the page before it gave as ``next``.",
    }
    return closed({"after": after}, ())


def _owed_secrets() -> Schema:
    made_at = number("Sequence of the event that made the secret.", least=1)
    secret = closed({"id": text("Id of the application.", shortest=1), "madeAt": made_at})
    return closed(
        {
            "secrets": {
                **many(secret, "Secrets by application and sequence of the event that made them."),
                "minItems": 1,
                "maxItems": AT_ONCE,
            }
        }
    )


def _write_batch() -> Schema:
    orders = many(_order(), "Carried out in turn, each as if it had come alone.")
    return closed({"orders": {**orders, "minItems": 1, "maxItems": MAX_ORDERS}})


def _order() -> Schema:
    """Return the schema of one order; texts are judged when the order is carried out."""
    names = (row.name for row in operations().values() if row.is_of_an_object)
    index: Schema = {"type": "integer", "minimum": 0, "maximum": MAX_ORDERS - 2}
    known: dict[str, Schema] = {
        "fields": {"type": "object", "description": "Those of the address and of the body."},
        "organizationId": _like_header("x-service-orgid"),
        "ifMatch": {**_like_header("if-match"), "pattern": "^(?:0|[1-9][0-9]{0,18})$"},
        "idempotencyKey": _like_header("idempotency-key"),
        "lease": _like_header("x-reconciler-lease"),
        "custody": {**_like_header("x-reconciler-custody"), "minLength": 1},
        "context": {"type": "object", "description": "As the header `x-reconciler-context`."},
        "from": {
            "type": "object",
            "additionalProperties": index,
            "description": "Values that earlier orders answer, by the index of each order: the id"
            " it made, for a field, for `organizationId` or for a place in a list, such as"
            " `actionIds[1]`, which has an empty text there; its sequence, for `ifMatch`.",
        },
    }
    operation = choice(sorted(names))
    return closed(
        {"operation": operation, **{name: or_null(schema) for name, schema in known.items()}},
        ("operation",),
    )


def _like_header(name: str) -> Schema:
    return {"type": "string", "pattern": NO_NUL, "description": f"As the header `{name}`."}


def _list_removals() -> Schema:
    return closed({"cursor": _whole_number(), "limit": _whole_number()}, ())


def _list_changes() -> Schema:
    schema = _list_removals()
    schema["properties"]["order"] = choice(ORDERS)
    return schema


def _list_objects_at() -> Schema:
    ids = many(text("Of an object.", shortest=1), "The objects, in the order of the answer.")
    sequence = number("Objects are answered as they were after the last event up to it.")
    return closed(
        {"sequence": sequence, "ids": {**ids, "minItems": 1, "maxItems": OBJECTS_AT_ONCE}},
        ("ids",),
    )


def _whole_number() -> Schema:
    """Return a number as a query parameter has it."""
    return {"type": "integer", "minimum": 0, "maximum": LARGEST}


def _list_heads() -> Schema:
    return closed({"cursor": text()}, ())


def _lease(**further: Schema) -> Schema:
    organization = text("Name of the organization, which need not exist yet.", shortest=1)
    schema = closed({"organization": organization, **further})
    schema["properties"]["tree"] = text(
        "Name of a tree: the lease makes its leader in the organization."
    )
    return schema


def _of_tree(**further: Schema) -> Schema:
    organization = text("Name of the organization.", shortest=1)
    return closed({"organization": organization, "tree": text(shortest=1), **further})


def _pause_tree() -> Schema:
    reason = text(longest=MAX_TEXTS["reason"], shortest=1)
    seconds = number("How long it lasts.", least=1, greatest=MAX_PAUSE_SECONDS)
    return _of_tree(reason=reason, seconds=seconds)


def _record_commit() -> Schema:
    commit = {"type": "string", "pattern": COMMIT, "description": "In hexadecimal digits."}
    lease = text("Of the leader of the tree.", shortest=1)
    schema = _of_tree(commit=commit, lease=lease)
    schema["properties"]["outcome"] = choice(OUTCOMES)
    return schema


def _seconds() -> Schema:
    return number("How long it counts.", least=1, greatest=MAX_SECONDS)


def _acquire_lease() -> Schema:
    holder = text("Who wants it, for others to read.", longest=MAX_HOLDER, shortest=1)
    schema = _lease(holder=holder, seconds=_seconds())
    instead = number("Fence of the lease to end: its holder is known to be gone.")
    schema["properties"]["insteadOf"] = instead
    return schema


def _renew_lease() -> Schema:
    return _lease(lease=text(shortest=1), seconds=_seconds())


def _grant_trust() -> Schema:
    value: Schema = {"type": ["string", "integer", "boolean"]}
    claim: Schema = {**many(value), "minItems": 1, "maxItems": MAX_CLAIMS}
    claims: Schema = {"type": "object", "additionalProperties": claim}
    properties = {
        "kind": choice((ISSUER, MACHINE)),
        "name": {"type": "string", "pattern": RULE_NAME},
        "role": choice((VIEWER, EDITOR)),
        "organizations": many(text(), "Names; none for all of them."),
        "issuer": text("Of the tokens; not of a machine."),
        "claims": {**claims, "description": "Each with the values that are accepted."},
        "preset": text(f"Empty, or one of {', '.join(PRESETS)}."),
        "keys": text("JSON Web Key Set; needed for a machine.", longest=MAX_KEYS_BYTES),
        "authority": text("Certificates in PEM.", longest=MAX_KEYS_BYTES),
        "once": flag("Whether each token is exchanged only once."),
        "expiresAt": number("Microseconds since the epoch; 0 for never."),
    }
    return closed(properties, ("kind", "name", "role"))


def _release_lease() -> Schema:
    return _lease(lease=text(shortest=1))


_READ_BY_HAND: Mapping[str, Callable[[], Schema]] = {
    "Healthz": _nothing,
    "GetIAM": _nothing,
    "GetMyOrg": _nothing,
    "GetServiceInfo": _nothing,
    "ListTokens": _list_objects,
    "ListTrees": _nothing,
    "RecordContext": _nothing,
    "WriteBatch": _write_batch,
    "ListObjects": _list_objects,
    "ListObjectsAt": _list_objects_at,
    "ListRemovals": _list_removals,
    "ListChanges": _list_changes,
    "ListHeads": _list_heads,
    "GetObjectHistory": _history,
    "ListOwedSecrets": _list_objects,
    "ClaimSecrets": _owed_secrets,
    "AcknowledgeSecrets": _owed_secrets,
    "AcquireLease": _acquire_lease,
    "RenewLease": _renew_lease,
    "ReleaseLease": _release_lease,
    "PauseTree": _pause_tree,
    "ResumeTree": _of_tree,
    "RecordCommit": _record_commit,
    "ListTrust": lambda: closed({}),
    "GetTrust": lambda: closed({"name": text(shortest=1)}),
    "GrantTrust": _grant_trust,
    "RevokeTrust": lambda: closed({"name": text(shortest=1)}),
}
