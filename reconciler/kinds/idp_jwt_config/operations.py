"""The operations on identity providers.

There are two families of calls for the same objects. The template calls (``Provider``) are the
present ones, and the only ones that write the audience. The old calls (``IDP``), the source's 4.1
among them, leave it as it is.
"""

from __future__ import annotations

from dataclasses import replace

from reconciler.resources.ref import Kind
from reconciler.service.domain.state import change
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, named, spec_of
from reconciler.service.operations.form import NAME, Asked, Fixed, Form
from reconciler.service.operations.lists import BY_ID, BY_NAME, Listing, by_constant, listed
from reconciler.service.operations.objects import ById, add, get, remove, rename, switches, update
from reconciler.service.operations.operation import ADMIN, Effect, deprecated, operation
from reconciler.service.operations.session import Writing
from reconciler.service.projections.objects import state_of

AUDIENCE = "audience"  # which the source's calls do not know

# Options that an old call gives a provider; this service has no others.
OPTIONS = {
    "isLinkingAllowed": True,
    "isCreationAllowed": True,
    "isAutoCreation": False,
    "isAutoUpdate": False,
    "autoLinking": "AUTO_LINKING_OPTION_UNSPECIFIED",
}
PROVIDER_OPTIONS = Fixed(
    "providerOptions",
    OPTIONS,
    "Options of a provider: this service has those that an old call gives one, and no others.",
)
_STYLING = Fixed("stylingType", "STYLING_TYPE_UNSPECIFIED")
_AUTO_REGISTER = Fixed("autoRegister", value=False)


def idp_view(row: ObjectRow) -> Answer:
    """Return an identity provider as it is answered."""
    return {
        **named(row, "IDP_STATE"),
        "stylingType": "STYLING_TYPE_UNSPECIFIED",
        "owner": "IDP_OWNER_TYPE_ORG",
        "jwtConfig": spec_of(row),
        "autoRegister": False,
    }


def provider_view(row: ObjectRow) -> Answer:
    """Return an identity provider as the template calls answer it."""
    return {
        **named(row, "IDP_STATE"),
        "owner": "IDP_OWNER_TYPE_ORG",
        "type": "PROVIDER_TYPE_JWT",
        "config": {"options": dict(OPTIONS), "jwt": spec_of(row)},
    }


_OLD = ById(Kind.IDP_JWT_CONFIG, "idpId")
_BY_ID = ById(Kind.IDP_JWT_CONFIG)


def update_jwt_config(call: Writing, asked: Asked) -> Answer:
    """Update the whole JWT configuration; a field that is sent empty is empty afterwards.

    This call does not know the audience, which stays.
    """
    row = _OLD.target(call, asked)
    held = state_of(row)
    return call.update(row, change(held, spec={**asked.spec, AUDIENCE: held.spec[AUDIENCE]}))


_LISTING = Listing(
    Kind.IDP_JWT_CONFIG,
    idp_view,
    {
        "idpIdQuery": BY_ID,
        "idpNameQuery": BY_NAME,
        "ownerTypeQuery": by_constant(
            "ownerType",
            "IDP_OWNER_TYPE_ORG",
            *("IDP_OWNER_TYPE_UNSPECIFIED", "IDP_OWNER_TYPE_SYSTEM", "IDP_OWNER_TYPE_ORG"),
        ),
    },
    ("IDP_FIELD_NAME_UNSPECIFIED", "IDP_FIELD_NAME_NAME"),
)
_READ, _WRITE = "org.idp.read", "org.idp.write"
_OLD_CALLS = (
    deprecated(
        add(
            "AddOrgJWTIDP",
            _WRITE,
            Kind.IDP_JWT_CONFIG,
            _STYLING,
            _AUTO_REGISTER,
            answers=("details", "idpId"),
            but_for=AUDIENCE,
        ),
        "AddJWTProvider",
    ),
    deprecated(listed("ListOrgIDPs", _READ, _LISTING), "ListProviders"),
    deprecated(get("GetOrgIDPByID", _READ, _BY_ID, "idp", idp_view), "GetProviderByID"),
    deprecated(rename("UpdateOrgIDP", _WRITE, _OLD, _STYLING, _AUTO_REGISTER), "UpdateJWTProvider"),
    deprecated(
        operation(
            "UpdateOrgIDPJWTConfig",
            _WRITE,
            Effect.CHANGES,
            update_jwt_config,
            Form(Kind.IDP_JWT_CONFIG, _OLD.fields, AUDIENCE),
            f"{ADMIN}/UpdateIDPJWTConfig",
        ),
        "UpdateJWTProvider",
    ),
    *switches("OrgIDP", _WRITE, _OLD),
    deprecated(remove("RemoveOrgIDP", _WRITE, _OLD, answers_details=False), "DeleteProvider"),
)
_TEMPLATE_CALLS = (
    add(
        "AddJWTProvider",
        _WRITE,
        Kind.IDP_JWT_CONFIG,
        PROVIDER_OPTIONS,
        about="Make a JWT identity provider in the organization of the call.",
    ),
    listed(
        "ListProviders",
        _READ,
        replace(_LISTING, view=provider_view, sortable=()),
        about="List the same identity providers, as the template calls answer them.",
    ),
    get("GetProviderByID", _READ, _BY_ID, "idp", provider_view),
    update(
        "UpdateJWTProvider",
        _WRITE,
        _BY_ID,
        *_BY_ID.fields,
        NAME,
        PROVIDER_OPTIONS,
        about="Update name and configuration; a field that is left out is empty afterwards.",
    ),
    remove("DeleteProvider", _WRITE, _BY_ID),
)
ROWS = (*_OLD_CALLS, *_TEMPLATE_CALLS)
