"""Objects as a ZITADEL lists them, as observed objects.

Its JSON leaves out every zero value, so what is missing is at its default. What no manifest can
say (an API application, a grant type that is not known here) is observed all the same, marked
so that nothing ever writes to it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from reconciler.resources.call import JsonObject
from reconciler.resources.normal import DEFAULTS, TYPES, normal_form
from reconciler.resources.ref import Kind, ResourceRef
from reconciler.service_client.answers import (
    ReadSpec,
    id_of,
    read_spec,
    sequence_of,
    text_of,
    unsound,
)
from reconciler.state import ObservedObject

# Told by the service, and never sent to it.
_DERIVED = {"clientId", "noneCompliant", "complianceProblems", "allowedOrigins"}
_OUTSIDE = {"id", "details", "state", "name"}
_OUTSIDE_OF_TEMPLATE = _OUTSIDE | {"owner", "type", "config"}
# Of an identity provider, beside its configuration; what renames it sends them, too.
BESIDE_IDP = {"stylingType", "autoRegister"}
_NOTHING_SAID = dict.fromkeys(TYPES[Kind.IDP_JWT_CONFIG], "")


class Owner(NamedTuple):
    """An organization or a project, by id and name."""

    id: str
    name: str


def owner_of_item(fields: JsonObject) -> str:
    """Return the id of the organization that an answered object belongs to."""
    return text_of(_details(fields), "resourceOwner")


def organization(fields: JsonObject) -> ObservedObject:
    """Return an organization."""
    own = Owner(id_of(fields), text_of(fields, "name"))
    ref = ResourceRef(Kind.ORGANIZATION, own.name, "", own.name)
    return _observed(ref, fields, own, ReadSpec({}, {}, ()))


def project(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return a project."""
    return _with_spec_inside(Kind.PROJECT, fields, owner)


def action(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return an action."""
    return _with_spec_inside(Kind.ACTION, fields, owner)


def _with_spec_inside(kind: Kind, fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return an object whose spec stands among its other fields."""
    ref = ResourceRef(kind, owner.name, "", text_of(fields, "name"))
    said = {name: value for name, value in fields.items() if name not in _OUTSIDE}
    return _observed(ref, fields, owner, _read(kind, fields, said))


def jwt_provider(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return a JWT provider as the template calls answer it.

    Its options, and every field that is not known here, are sent back by an update.
    """
    ref = ResourceRef(Kind.IDP_JWT_CONFIG, owner.name, "", text_of(fields, "name"))
    config = fields.get("config")
    said = config.get("jwt") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(said, dict):
        return _observed(ref, fields, owner, ReadSpec(_NOTHING_SAID, {}, _strange(fields, "owner")))
    read = _read(Kind.IDP_JWT_CONFIG, fields, {**_NOTHING_SAID, **said})
    beside = {name: value for name, value in fields.items() if name not in _OUTSIDE_OF_TEMPLATE}
    more = {name: value for name, value in config.items() if name not in {"jwt", "options"}}
    options = {"providerOptions": config.get("options", {})}
    carried = {**read.carried, **beside, **more, **options}
    return _observed(ref, fields, owner, read._replace(carried=carried))


def identity_provider(fields: JsonObject, owner: Owner) -> ObservedObject:
    """Return an identity provider as the old calls answer it.

    One without a JWT configuration is marked as strange.
    """
    ref = ResourceRef(Kind.IDP_JWT_CONFIG, owner.name, "", text_of(fields, "name"))
    said = fields.get("jwtConfig")
    if not isinstance(said, dict):
        return _observed(ref, fields, owner, ReadSpec(_NOTHING_SAID, {}, _strange(fields, "owner")))
    read = _read(Kind.IDP_JWT_CONFIG, fields, {**_NOTHING_SAID, **said})
    beside = {
        name: value
        for name, value in fields.items()
        if name not in _OUTSIDE | {"jwtConfig", "owner"}
    }
    return _observed(ref, fields, owner, read._replace(carried={**read.carried, **beside}))


def application(fields: JsonObject, owner: Owner, project_owner: Owner) -> ObservedObject:
    """Return an application; one that is not of OIDC is marked as strange."""
    name = text_of(fields, "name")
    ref = ResourceRef(Kind.OIDC_APPLICATION, owner.name, project_owner.name, name)
    said = fields.get("oidcConfig")
    if not isinstance(said, dict):
        # Without an auth method it differs from everything that a manifest can say.
        nothing = {**DEFAULTS[Kind.OIDC_APPLICATION], "authMethodType": ""}
        strange = ReadSpec(nothing, {}, _strange(fields))
        return replace(_observed(ref, fields, owner, strange), project_id=project_owner.id)
    config = {name: value for name, value in said.items() if name not in _DERIVED}
    return replace(
        _observed(ref, fields, owner, _read(Kind.OIDC_APPLICATION, fields, config)),
        project_id=project_owner.id,
        client_id=text_of({"clientId": "", **said}, "clientId"),
    )


def _read(kind: Kind, fields: JsonObject, said: JsonObject) -> ReadSpec:
    try:
        read = read_spec(kind, {**DEFAULTS[kind], **said})
    except ValueError as failure:
        raise unsound(id_of(fields), str(failure)) from None
    return read._replace(spec=normal_form(kind, read.spec))


def _strange(fields: JsonObject, *known: str) -> tuple[str, ...]:
    """Return what an object has instead of the configuration that manifests can say."""
    return tuple(sorted(set(fields) - _OUTSIDE - BESIDE_IDP - {*known})) or ("no configuration",)


def _observed(ref: ResourceRef, fields: JsonObject, owner: Owner, read: ReadSpec) -> ObservedObject:
    details = _details(fields)
    return ObservedObject(
        ref=ref,
        id=id_of(fields),
        sequence=sequence_of(details),
        spec=read.spec,
        organization_id=owner.id,
        changed_at=text_of({"changeDate": "", **details}, "changeDate"),
        carried=read.carried,
        uncarried=read.uncarried,
        active=is_active(fields),
    )


def is_active(fields: JsonObject) -> bool:
    """Return whether an answered object is active; a state that is missing is no other one."""
    return not str(fields.get("state", "")).endswith("_INACTIVE")


def _details(fields: JsonObject) -> JsonObject:
    details = fields.get("details")
    if not isinstance(details, dict):
        raise unsound(id_of(fields), "it has no details")
    return details
