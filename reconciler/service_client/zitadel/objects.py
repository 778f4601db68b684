"""Objects as a ZITADEL answers them, as observed objects.

Its JSON leaves out every zero value, so what is missing is at its default. What no manifest can
say (an API application, a grant type that is not known here) is observed all the same, marked
so that nothing ever writes to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from reconciler.kinds.action_flow.flows import TRIGGER_NUMBERED, Flow, flow_id
from reconciler.resources.call import JsonObject
from reconciler.resources.normal import DEFAULTS, TYPES, normal_form
from reconciler.resources.ref import ACTION_FLOW, Kind, ResourceRef
from reconciler.service_client.answers import (
    ReadSpec,
    id_of,
    objects_of,
    read_spec,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.state import ObservedObject

# Told by the service, and never sent to it.
_DERIVED = {"clientId", "noneCompliant", "complianceProblems", "allowedOrigins"}
_OUTSIDE = {"id", "details", "state", "name"}
# Of applications that are not of OIDC, by the field that has their configuration.
_OTHER_APPLICATIONS = {"apiConfig": "an API application", "samlConfig": "a SAML application"}
# What the old create of an identity provider allowed, and what users need to log in by it at all.
OPTIONS_OF_NEW = {"isLinkingAllowed": True, "isCreationAllowed": True}
# Of an identity provider, beside its configuration; what renames it sends them, too.
BESIDE_IDP = {"stylingType", "autoRegister"}
_NOTHING_SAID = dict.fromkeys(TYPES[Kind.IDP_JWT_CONFIG], "")


class Owner(NamedTuple):
    """An organization or a project, by id and name."""

    id: str
    name: str


def items_of(answer: JsonObject) -> Sequence[JsonObject]:
    """Return the items of a page; an empty list is left out of the JSON."""
    return objects_of({"result": [], **answer}, "result")


def total_of(answer: JsonObject) -> int:
    """Return how many items a list has, over all of its pages."""
    details = answer.get("details", {})
    total = details.get("totalResult", "0") if isinstance(details, dict) else None
    if isinstance(total, str) and total.isascii() and total.isdecimal() and len(total) <= 9:
        return int(total)
    raise unsound("?", "details.totalResult is not a number")


def owner_of_item(fields: JsonObject) -> str:
    """Return the id of the organization that an answered object belongs to."""
    return text_of(_details(fields), "resourceOwner")


def is_active(fields: JsonObject) -> bool:
    """Return whether an answered object is active; a state that is missing is no other one."""
    return not str(fields.get("state", "")).endswith("_INACTIVE")


def organization(fields: JsonObject) -> ObservedObject:
    """Return an organization."""
    own = Owner(id_of(fields), text_of(fields, "name"))
    return _observed(Kind.ORGANIZATION, fields, own, ReadSpec({}, {}, ()))


def plain_object(kind: Kind, fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return a project or an action, whose spec stands among its other fields."""
    said = {name: value for name, value in fields.items() if name not in _OUTSIDE}
    return _observed(kind, fields, owner, _read(kind, fields, said))


def jwt_provider(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return a JWT provider as the template calls answer it.

    Options that are not those of a new provider, and every field that is not known here, are
    sent back by an update.
    """
    config = fields.get("config")
    if not isinstance(config, dict):
        config = {}
    carried = {name: value for name, value in config.items() if name not in {"jwt", "options"}}
    options = config.get("options", {})
    if options != OPTIONS_OF_NEW:
        carried["providerOptions"] = options
    return _provider(fields, owner, config.get("jwt"), carried, {"type", "config"})


def identity_provider(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return an identity provider as the old calls answer it."""
    return _provider(fields, owner, fields.get("jwtConfig"), {}, {"jwtConfig"})


def _provider(
    fields: JsonObject, owner: Owner, said: object, carried: JsonObject, known: set[str]
) -> ObservedObject:
    """Return an identity provider; one without a JWT configuration is marked as strange.

    Carried are those fields, too, that are not ``known`` here.
    """
    kind, outside = Kind.IDP_JWT_CONFIG, _OUTSIDE | {"owner"} | known
    if not isinstance(said, dict):
        return _observed(kind, fields, owner, ReadSpec(_NOTHING_SAID, {}, _strange(fields)))
    read = _read(kind, fields, {**_NOTHING_SAID, **said})
    beside = {name: value for name, value in fields.items() if name not in outside}
    carried = {**read.carried, **beside, **carried}
    return _observed(kind, fields, owner, read._replace(carried=carried))


def application(fields: JsonObject, owner: Owner, project: Owner) -> ObservedObject:
    """Return an application; one that is not of OIDC is marked as strange."""
    kind, said = Kind.OIDC_APPLICATION, fields.get("oidcConfig")
    if isinstance(said, dict):
        config = {name: value for name, value in said.items() if name not in _DERIVED}
        read = _read(kind, fields, config)
        client_id = text_of({"clientId": "", **said}, "clientId")
    else:
        # Without an auth method it differs from everything that a manifest can say.
        read = ReadSpec({**DEFAULTS[kind], "authMethodType": ""}, {}, _strange(fields))
        client_id = ""
    held = _observed(kind, fields, owner, read, project.name)
    return replace(held, project_id=project.id, client_id=client_id)


def _read(kind: Kind, fields: JsonObject, said: JsonObject) -> ReadSpec:
    try:
        read = read_spec(kind, {**DEFAULTS[kind], **said})
    except ValueError as failure:
        raise unsound(id_of(fields), str(failure)) from None
    return read._replace(spec=normal_form(kind, read.spec))


def _strange(fields: JsonObject) -> tuple[str, ...]:
    """Return what an object has instead of the configuration that manifests can say."""
    names = sorted(set(fields) - _OUTSIDE - BESIDE_IDP - {"owner"})
    words = (
        f"the configuration of {_OTHER_APPLICATIONS[name]}" if name in _OTHER_APPLICATIONS else name
        for name in names
    )
    return tuple(words) or ("no configuration",)


def _observed(
    kind: Kind, fields: JsonObject, owner: Owner, read: ReadSpec, project: str = ""
) -> ObservedObject:
    details = _details(fields)
    return ObservedObject(
        ref=ResourceRef(kind, owner.name, project, text_of(fields, "name")),
        id=id_of(fields),
        sequence=sequence_of(details),
        spec=read.spec,
        organization_id=owner.id,
        changed_at=text_of({"changeDate": "", **details}, "changeDate"),
        carried=read.carried,
        uncarried=read.uncarried,
        active=is_active(fields),
        created_at=_created_at(details),
    )


def _created_at(details: JsonObject) -> str:
    """Return when an object was made; empty where that is not told.

    The details of an action have only the time of its last event. That of sequence 1 made it.
    """
    name = "changeDate" if sequence_of(details) == 1 else "creationDate"
    return text_of({name: "", **details}, name)


def _details(fields: JsonObject) -> JsonObject:
    details = fields.get("details")
    if not isinstance(details, dict):
        raise unsound(id_of(fields), "it has no details")
    return details


class AnsweredFlow(NamedTuple):
    """A flow as one call answers it.

    Attributes:
        triggers: The actions of each trigger that has any, by the number of the trigger.
        sequence: That of one of its triggers; 0 where none has actions.
    """

    triggers: Mapping[str, Sequence[JsonObject]]
    sequence: int
    changed_at: str


def answered_flow(answer: JsonObject) -> AnsweredFlow:
    """Return the flow that is answered."""
    fields = answer.get("flow")
    if not isinstance(fields, dict):
        raise unsound("?", "flow is not an object")
    triggers = {}
    for each in objects_of({"triggerActions": [], **fields}, "triggerActions"):
        kind = each.get("triggerType")
        actions = objects_of({"actions": [], **each}, "actions")
        if not isinstance(kind, dict):
            raise unsound("?", "triggerType is not an object")
        if actions:
            triggers[text_of(kind, "id")] = actions
    if not triggers:
        return AnsweredFlow({}, 0, "")
    told = fields.get("details")
    details = {"sequence": "0", "changeDate": "", **(told if isinstance(told, dict) else {})}
    return AnsweredFlow(triggers, sequence_of(details), text_of(details, "changeDate"))


def flow_object(
    flow: Flow, found: AnsweredFlow, owner: Owner, actions: Mapping[str, str]
) -> ObservedObject:
    """Return a flow that has actions, named as they are in ``actions``, by id."""
    spec: dict[str, Any] = {**DEFAULTS[ACTION_FLOW]}
    strange: list[str] = []
    for number, ran in found.triggers.items():
        # An action that was made or renamed since the list was read has the name of this answer.
        names = [actions.get(id_of(action)) or text_of(action, "name") for action in ran]
        trigger = TRIGGER_NUMBERED.get(number)
        if trigger in flow.triggers and trigger is not None:
            spec[trigger.name] = names
        else:
            strange.append(f"actions at trigger {number}")
    return ObservedObject(
        ref=ResourceRef(ACTION_FLOW, owner.name, "", flow.name),
        id=flow_id(owner.id, flow),
        sequence=found.sequence,
        spec=spec,
        organization_id=owner.id,
        changed_at=found.changed_at,
        uncarried=tuple(sorted(strange)),
    )
