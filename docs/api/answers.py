"""What each operation answers: every field, always, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from docs.api.schemas import (
    ID,
    TIME,
    Schema,
    choice,
    closed,
    flag,
    many,
    model_schema,
    ref,
)
from reconciler.kinds.action.operations import action_view
from reconciler.kinds.action_flow.flows import FLOW_NUMBERED, TRIGGER_NUMBERED
from reconciler.kinds.idp_jwt_config.operations import PROVIDER_OPTIONS, idp_view, provider_view
from reconciler.kinds.oidc_application.operations import app_view
from reconciler.kinds.organization.operations import organization_view
from reconciler.kinds.project.operations import project_view
from reconciler.kinds.project_role.operations import role_view
from reconciler.resources.ref import Kind
from reconciler.service.domain.trust import EDITOR, ISSUER, MACHINE, VIEWER
from reconciler.service.operations.form import Form
from reconciler.service.operations.lists import Listing
from reconciler.service.operations.models import model_of
from reconciler.service.operations.objects import Add, Get
from reconciler.service.operations.operation import Effect, Operation
from reconciler.service.operations.trees import OUTCOMES

_NUMBER: Schema = {"type": "string", "pattern": "^[0-9]{1,19}$"}
_TIME: Schema = {"type": "string", "format": "date-time", "pattern": TIME}
_ID: Schema = {"type": "string", "pattern": ID}
_TEXT: Schema = {"type": "string"}
_SECRET: Schema = {
    "type": "string",
    "pattern": "^[A-Za-z0-9]{64}$",
    "description": "Shown in this answer and never again.",
}
_CONTEXT: Schema = {
    "type": "object",
    "description": "What the last writer sent as x-reconciler-context.",
}
_VERIFIED: Schema = {
    "type": "object",
    "additionalProperties": _TEXT,
    "description": "What the service verified of a caller with a short token: its rule, its issuer"
    " and what its job is. Empty for other callers.",
}
_LOCALIZED: Schema = closed({"key": _TEXT, "localizedMessage": _TEXT})


def answer_schema(operation: Operation) -> Schema:
    """Return the schema of an operation's answer."""
    written = _ANSWERS.get(operation.name)
    if written:
        return written()
    match handler := operation.handler:
        case Add():
            (name,) = (each for each in handler.answers if each != "details")
            return closed({name: _ID, "details": ref("DetailsRead")})
        case Get():
            return closed({handler.member: ref(_COMPONENTS[handler.view])})
        case Listing():
            column = {"sortingColumn": _TEXT} if handler.sortable else {}
            found = many(ref(_COMPONENTS[handler.view]))
            return closed({"details": ref("ListDetails"), **column, "result": found})
        case _ if operation.effect in {Effect.CHANGES, Effect.REMOVES}:
            return _changed()
        case _:
            raise LookupError(f"what does {operation.name} answer? Say it in the table below")


_COMPONENTS = {
    organization_view: "Organization",
    project_view: "Project",
    role_view: "ProjectRole",
    idp_view: "IdentityProvider",
    provider_view: "Provider",
    app_view: "Application",
    action_view: "Action",
}


def components() -> dict[str, Schema]:
    """Return the schemas that answers refer to."""
    return {
        "Error": _error(),
        "DetailsRead": closed(_details("sequence", "creationDate", "changeDate")),
        "DetailsChanged": closed(_details("sequence", "changeDate")),
        "ListDetails": closed(
            {"totalResult": _NUMBER, "processedSequence": _NUMBER, "viewTimestamp": _TIME}
        ),
        "Organization": _held("ORG_STATE", {"primaryDomain": {"const": ""}}, "ACTIVE"),
        "Project": _held("PROJECT_STATE", _spec(Kind.PROJECT)),
        "ProjectRole": closed(
            {"key": _TEXT, "details": ref("DetailsRead"), **_spec(Kind.PROJECT_ROLE)}
        ),
        "IdentityProvider": _held("IDP_STATE", _identity_provider()),
        "Provider": _held("IDP_STATE", _provider()),
        "OidcConfig": _oidc_config(),
        "Application": _held("APP_STATE", {"oidcConfig": ref("OidcConfig")}),
        "Action": _held("ACTION_STATE", _spec(Kind.ACTION)),
        "FlowDetails": _flow_details(),
        "Flow": _flow(),
        "ComplianceProblem": _LOCALIZED,
        "Object": _object(),
        "Event": _event(),
        "Removal": _removal(),
        "Change": _change(),
        "Head": _head(),
        "Token": _token(),
        "Pause": _pause(),
        "OwedSecret": _owed_secret(),
        "Lease": closed(
            {"lease": _TEXT, "fence": _NUMBER, "acquiredAt": _TIME, "expiresAt": _TIME}
        ),
    }


def _undone() -> Schema:
    values = {"type": "object", "additionalProperties": _TEXT}
    return closed({"run": _TEXT, "of": _TEXT, "reason": _TEXT, "values": values})


def _token() -> Schema:
    return closed(
        {
            "name": _TEXT,
            "role": {"enum": ["viewer", "editor", "admin"]},
            "allOrganizations": flag("Whether it sees every organization there is."),
            "organizations": many(_ID, "Those it sees, where it does not see all."),
            "created": _TIME,
            "expires": {"type": "string", "description": "RFC 3339 in UTC; empty for never."},
            "revoked": {"type": "string", "description": "RFC 3339 in UTC; empty where it is not."},
        }
    )


def _error() -> Schema:
    detail: Schema = {
        "type": "object",
        "required": ["@type", "id", "message"],
        "properties": {
            "@type": {"const": "type.googleapis.com/zitadel.v1.ErrorDetail"},
            "id": {"type": "string", "description": "The reason, for programs."},
            "message": _TEXT,
        },
        "additionalProperties": _TEXT,
    }
    code: Schema = {"type": "integer", "format": "int32", "description": "The code of gRPC."}
    details: Schema = {"type": "array", "items": detail, "minItems": 1, "maxItems": 1}
    return closed({"code": code, "message": _TEXT, "details": details})


def _details(*names: str) -> dict[str, Schema]:
    return {
        **{name: _NUMBER if name == "sequence" else _TIME for name in names},
        "resourceOwner": {**_ID, "description": "Id of the organization it belongs to."},
    }


def _held(enum: str, further: Mapping[str, Schema], *states: str) -> Schema:
    words = [f"{enum}_{state}" for state in states or ("ACTIVE", "INACTIVE")]
    return closed(
        {
            "id": _ID,
            "details": ref("DetailsRead"),
            "state": choice(words) if len(words) > 1 else {"const": words[0]},
            "name": _TEXT,
            **further,
        }
    )


def _spec(kind: Kind) -> dict[str, Schema]:
    """Return the fields of a kind. What is answered is all there, so nothing has a default."""
    properties = model_schema(model_of(Form(kind, ())))["properties"]
    return {
        name: {key: value for key, value in field.items() if key != "default"}
        for name, field in properties.items()
    }


def _identity_provider() -> dict[str, Schema]:
    return {
        "stylingType": {"const": "STYLING_TYPE_UNSPECIFIED"},
        "owner": {"const": "IDP_OWNER_TYPE_ORG"},
        "jwtConfig": closed(_spec(Kind.IDP_JWT_CONFIG)),
        "autoRegister": {"const": False},
    }


_OPTIONS = model_schema(model_of(Form(None, (PROVIDER_OPTIONS,))))["properties"]["providerOptions"]


def _provider() -> dict[str, Schema]:
    options = closed(_OPTIONS["properties"])
    return {
        "owner": {"const": "IDP_OWNER_TYPE_ORG"},
        "type": {"const": "PROVIDER_TYPE_JWT"},
        "config": closed({"options": options, "jwt": closed(_spec(Kind.IDP_JWT_CONFIG))}),
    }


def _flow_details() -> Schema:
    """Return the details of a flow: without times where nothing was ever set in it."""
    dated = _details("sequence", "creationDate", "changeDate")
    return closed(dated, ("sequence", "resourceOwner"))


def _flow() -> Schema:
    kind = closed({"id": choice(FLOW_NUMBERED), "name": _LOCALIZED})
    trigger = closed({"id": choice(TRIGGER_NUMBERED), "name": _LOCALIZED})
    actions = closed({"triggerType": trigger, "actions": many(ref("Action"))})
    return closed(
        {
            "type": kind,
            "details": ref("FlowDetails"),
            "state": {"const": "FLOW_STATE_ACTIVE"},
            "triggerActions": many(actions, "Those that have actions, in the order of numbers."),
        }
    )


def _flow_written() -> Schema:
    return closed({"details": ref("FlowDetails")})


def _compliance() -> dict[str, Schema]:
    return {
        "noneCompliant": flag("Whether the configuration breaks rules of OIDC."),
        "complianceProblems": many(ref("ComplianceProblem")),
    }


def _oidc_config() -> Schema:
    return closed(
        {
            **_spec(Kind.OIDC_APPLICATION),
            "clientId": _ID,
            **_compliance(),
            "allowedOrigins": many(_TEXT),
            "backChannelLogoutUri": {"const": ""},
        }
    )


def _object() -> Schema:
    return closed(
        {
            "kind": choice(kind.value for kind in Kind),
            "id": _ID,
            "organizationId": _ID,
            "projectId": {"type": "string", "description": "Empty where an organization owns it."},
            "name": _TEXT,
            "spec": {
                "type": "object",
                "description": "As its manifest has it, complete; of a flow, the ids of the"
                " actions at each trigger that has some.",
            },
            "details": ref("DetailsRead"),
            "clientId": _TEXT,
            "hasSecret": flag(),
            "state": choice(("ACTIVE", "INACTIVE")),
            "trees": many(_TEXT, "Names of the trees that applied it."),
            "owner": {
                "type": "string",
                "description": "Tree that was the last to create, update or take over the object;"
                " empty where none was.",
            },
            "preventDelete": flag(),
            "critical": flag(),
            "ignore": many(_TEXT, "Names of the fields that its manifest leaves to others."),
            "undone": {
                "description": "What an undo took back: digests by field; null for nothing.",
                "oneOf": [_undone(), {"type": "null"}],
            },
            "changedBy": {"type": "string", "description": "Name of the last writer's token."},
            "context": _CONTEXT,
            "verified": _VERIFIED,
        }
    )


def _event() -> Schema:
    return closed(
        {
            "type": _TEXT,
            "version": {"type": "integer", "minimum": 1},
            "sequence": _NUMBER,
            "recordedAt": _TIME,
            "writer": _TEXT,
            "context": _CONTEXT,
            "verified": _VERIFIED,
            "payload": {"type": "object"},
        }
    )


def _removal() -> Schema:
    return closed(
        {
            "kind": choice(kind.value for kind in Kind),
            "id": _ID,
            "projectId": {"type": "string", "description": "Empty where an organization owns it."},
            "name": _TEXT,
            "trees": many(_TEXT, "Names of the trees that applied it."),
            "type": _TEXT,
            "sequence": _NUMBER,
            "recordedAt": _TIME,
            "writer": _TEXT,
            "context": _CONTEXT,
            "verified": _VERIFIED,
        }
    )


def _change() -> Schema:
    removal = _removal()["properties"]
    return closed({name: removal[name] for name in removal if name != "trees"})


def _pause() -> Schema:
    said = {"tree": _TEXT, "reason": _TEXT, "until": _TIME, "since": _TIME}
    return closed({**said, "writer": _TEXT})


def _head() -> Schema:
    record = {"tree": _TEXT, "commit": _TEXT, "outcome": choice(OUTCOMES), "recordedAt": _TIME}
    return closed(
        {
            "id": _ID,
            "name": _TEXT,
            "sequence": {**_NUMBER, "description": "Of its last event."},
            "owed": {**_NUMBER, "description": "How many client secrets are owed and kept."},
            "pauses": many(ref("Pause"), "Those that are not over."),
            "applied": many(closed({**record, "writer": _TEXT}), "Last record of each tree."),
        }
    )


def _heads() -> Schema:
    page = _page("organizations", "Head")()
    return closed({"instance": _TEXT, **page["properties"]})


def _owed_secret() -> Schema:
    return closed(
        {
            "id": {**_ID, "description": "Id of the application."},
            "organizationId": _ID,
            "projectId": _ID,
            "name": _TEXT,
            "clientId": _ID,
            "madeAt": {**_NUMBER, "description": "Sequence of the event that made the secret."},
            "since": _TIME,
            "madeBy": {"type": "string", "description": "Name of the token that made it."},
            "tree": _TEXT,
            "run": {"type": "string", "description": "Id of the run, as the caller named it."},
            "state": choice(("owed", "lost")),
            "expires": _TIME,
        }
    )


def _claimed() -> Schema:
    secret = {**_SECRET, "description": "Answered again until its delivery is acknowledged."}
    had = closed({"id": _ID, "clientId": _ID, "madeAt": _NUMBER, "clientSecret": secret})
    code: Schema = {"type": "integer", "format": "int32", "description": "The code of gRPC."}
    refused = closed({"id": _TEXT, "error": closed({"code": code, "message": _TEXT})})
    return closed({"secrets": many({"oneOf": [had, refused]}, "In the order asked.")})


def _batch() -> Schema:
    needed: Schema = {
        "type": "integer",
        "minimum": 0,
        "description": "Index of an earlier order that failed, which this one takes a value from.",
    }
    answer: Schema = {"type": "object", "description": "As the operation answers alone."}
    views = ({"answer": answer}, {"error": ref("Error")}, {"notTried": needed})
    each: Schema = {"oneOf": [closed(view) for view in views]}
    return closed({"answers": many(each, "One for each order, in the order of the orders.")})


def _trust_rule() -> dict[str, Schema]:
    value: Schema = {"type": ["string", "integer", "boolean"]}
    return {
        "name": _TEXT,
        "id": _ID,
        "kind": choice((ISSUER, MACHINE)),
        "role": choice((VIEWER, EDITOR)),
        "allOrganizations": flag(),
        "organizations": many(_TEXT, "Names; empty where the rule is for all."),
        "issuer": _TEXT,
        "claims": {"type": "object", "additionalProperties": many(value)},
        "preset": _TEXT,
        "hasKeys": flag("Whether the rule has the keys; else they are fetched from the issuer."),
        "once": flag("Whether each token is exchanged only once."),
        "created": _TIME,
        "createdBy": _TEXT,
        "expires": {"type": "string", "description": "RFC 3339 in UTC; empty for never."},
    }


def _nothing() -> Schema:
    return closed({})


def _changed() -> Schema:
    return closed({"details": ref("DetailsChanged")})


def _one(name: str, component: str) -> Callable[[], Schema]:
    return lambda: closed({name: ref(component)})


def _app_made() -> Schema:
    schema = closed({"appId": _ID, "details": ref("DetailsRead"), "clientId": _ID, **_compliance()})
    secret = {**_SECRET, "description": f"Where BASIC or POST is used. {_SECRET['description']}"}
    schema["properties"]["clientSecret"] = secret
    return schema


def _page(name: str, component: str) -> Callable[[], Schema]:
    following: Schema = {"type": "string", "description": "Where to go on; empty at the end."}
    return lambda: closed({name: many(ref(component)), "next": following})


_ANSWERS: Mapping[str, Callable[[], Schema]] = {
    "Healthz": _nothing,
    "GetIAM": lambda: closed(
        {
            "globalOrgId": {"const": ""},
            "iamProjectId": _TEXT,
            "defaultOrgId": {"const": ""},
        }
    ),
    "AddOrg": lambda: closed({"id": _ID, "details": ref("DetailsRead")}),
    "GetMyOrg": _one("org", "Organization"),
    "AddProjectRole": lambda: closed({"details": ref("DetailsRead")}),
    "AddOIDCApp": _app_made,
    "RegenerateOIDCClientSecret": lambda: closed(
        {"clientSecret": _SECRET, "details": ref("DetailsChanged")}
    ),
    "DeleteAction": _nothing,
    "RemoveOrgIDP": _nothing,
    "GetFlow": _one("flow", "Flow"),
    "SetTriggerActions": _flow_written,
    "ClearFlow": _flow_written,
    "GetServiceInfo": lambda: closed(
        {
            "instance": _TEXT,
            "product": {"const": "reconciler"},
            "version": _TEXT,
            "custody": flag("Whether secrets are kept until their delivery is acknowledged."),
            "batch": {"type": "integer", "description": "How many orders a batch may have."},
            "feed": flag("Whether it has heads, changes, and what is kept of trees."),
            "allOrganizations": flag("Whether the caller sees every organization there is."),
            "role": {"enum": ["viewer", "editor", "admin"], "description": "Of the token."},
            "expires": {
                "type": "string",
                "description": "When the token ends, RFC 3339 in UTC; empty for never.",
            },
        }
    ),
    "ListObjects": _page("objects", "Object"),
    "ListObjectsAt": lambda: closed(
        {
            "objects": many(ref("Object")),
            "absent": many(_TEXT, "Ids of none. Ask again for those in neither list."),
        }
    ),
    "ListRemovals": _page("removals", "Removal"),
    "ListChanges": _page("changes", "Change"),
    "ListHeads": _heads,
    "GetObjectHistory": _page("events", "Event"),
    "ListTokens": _page("tokens", "Token"),
    "ListTrees": lambda: closed(
        {
            "organizations": many(
                closed(
                    {
                        "id": _TEXT,
                        "name": _TEXT,
                        "trees": many(_TEXT),
                        "owed": many(closed({"tree": _TEXT, "secrets": _NUMBER})),
                        "custody": flag(),
                        "pauses": many(ref("Pause"), "Those that are not over."),
                        "unmade": many(
                            closed(
                                {
                                    "kind": _TEXT,
                                    "projectId": _TEXT,
                                    "name": _TEXT,
                                    "undone": _undone(),
                                }
                            ),
                            "Objects that an undo removed, with its mark; names are folded. "
                            "The newest 200.",
                        ),
                    }
                )
            )
        }
    ),
    "WriteBatch": _batch,
    "ListOwedSecrets": _page("owedSecrets", "OwedSecret"),
    "ClaimSecrets": _claimed,
    "AcknowledgeSecrets": _nothing,
    "AcquireLease": lambda: ref("Lease"),
    "RenewLease": lambda: ref("Lease"),
    "ReleaseLease": _nothing,
    "PauseTree": _changed,
    "ResumeTree": _changed,
    "RecordCommit": _changed,
    "ListTrust": lambda: closed({"rules": many(closed(_trust_rule()))}),
    "GetTrust": lambda: closed(
        {"rule": closed({**_trust_rule(), "keys": _TEXT, "authority": _TEXT})}
    ),
    "GrantTrust": lambda: closed({"id": _ID}),
    "RevokeTrust": _nothing,
}
