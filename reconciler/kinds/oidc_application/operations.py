"""The operations on OIDC applications, and their client secrets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from reconciler.kinds.oidc_application.compliance import (
    MESSAGES,
    compliance_problems,
    has_client_secret,
    is_none_compliant,
    oidc_problems,
)
from reconciler.kinds.oidc_application.events import SecretChanged
from reconciler.resources.fields import Spec
from reconciler.resources.ref import Kind
from reconciler.resources.secret import Secret
from reconciler.service.domain.client_secret import hash_of, make_secret
from reconciler.service.domain.refusal import invalid
from reconciler.service.domain.state import change
from reconciler.service.eventstore.rows import ObjectRow
from reconciler.service.operations.answers import Answer, details_read, named, spec_of
from reconciler.service.operations.custody import OWED_BY, SHOWN_ONCE
from reconciler.service.operations.form import NAME, Asked, Fixed, Form, name_field
from reconciler.service.operations.lists import BY_NAME, Listing, listed
from reconciler.service.operations.objects import (
    PROJECT_ID,
    ById,
    added,
    get,
    remove,
    rename,
    switches,
)
from reconciler.service.operations.operation import Effect, operation
from reconciler.service.operations.session import Writing
from reconciler.service.projections.objects import state_of

# Sentences of our own: those of the check itself quote what was sent.
_RULES = {
    "responseTypes": "no grant type covers this response type",
    "additionalOrigins": "must be scheme, host and port only, such as https://app.example.com",
}
_NOT_OFFERED = (Fixed("backChannelLogoutUri", ""), Fixed("loginVersion", None))
_APP = ById(Kind.OIDC_APPLICATION, OWED_BY)


def check_spec(spec: Spec) -> None:
    """Accept a configuration that OIDC knows how to carry out (wire facts 2.2, domain check).

    Raises:
        Refusal: it does not; the first problem is named.
    """
    for problem in oidc_problems(spec):
        raise invalid(f"{problem.field}[{problem.position}]", _RULES[problem.field])


def app_view(row: ObjectRow) -> Answer:
    """Return an application as it is answered."""
    spec = spec_of(row)
    return {
        **named(row, "APP_STATE"),
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


def allowed_origins(spec: Spec) -> list[str]:
    """Return the origins an application may call from: of its redirect URIs, then the others."""
    origins = [*_origins(spec["redirectUris"]), *spec["additionalOrigins"]]
    return list(dict.fromkeys(origins))


def _origins(uris: Sequence[str]) -> Iterator[str]:
    for uri in uris:
        try:
            parts = urlsplit(uri)
        except ValueError:
            continue
        if parts.netloc:
            yield f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def add_oidc_app(call: Writing, asked: Asked) -> Answer:
    """Make an application; if it signs in with a secret, answer the secret once."""
    check_spec(asked.spec)
    secret = make_secret(call.runtime.random_bytes) if has_client_secret(asked.spec) else None
    client_id, kept = call.runtime.identifiers.next(), hash_of(secret) if secret else ""
    row = added(call, Kind.OIDC_APPLICATION, asked, client_id, kept)
    return {
        OWED_BY: row.id,
        "details": details_read(row),
        "clientId": row.client_id,
        **_once(secret),
        **compliance_view(asked.spec),
    }


def update_config(call: Writing, asked: Asked) -> Answer:
    """Update the whole configuration. No secret is made by it: that is an operation of its own."""
    row = _APP.target(call, asked)
    check_spec(asked.spec)
    return call.update(row, change(state_of(row), spec=asked.spec))


def regenerate_secret(call: Writing, asked: Asked) -> Answer:
    """Make a new client secret and answer it once; the one before ends now."""
    row = _APP.target(call, asked)
    secret = make_secret(call.runtime.random_bytes)
    changed = SecretChanged(Kind.OIDC_APPLICATION, hash_of(secret))
    return {**_once(secret), **call.update(row, (changed,))}


def _once(secret: Secret | None) -> Answer:
    return {SHOWN_ONCE: secret} if secret else {}


_LISTING = Listing(Kind.OIDC_APPLICATION, app_view, {"nameQuery": BY_NAME})
_READ, _WRITE = "project.app.read", "project.app.write"
_ADD_FORM = Form(Kind.OIDC_APPLICATION, (PROJECT_ID, *_NOT_OFFERED, NAME))
_CONFIG_FORM = Form(Kind.OIDC_APPLICATION, (PROJECT_ID, *_NOT_OFFERED, name_field(OWED_BY)))
ROWS = (
    operation("AddOIDCApp", _WRITE, Effect.CREATES, add_oidc_app, _ADD_FORM),
    listed("ListApps", _READ, _LISTING),
    get("GetAppByID", _READ, _APP, "app", app_view),
    rename("UpdateApp", _WRITE, _APP),
    operation("UpdateOIDCAppConfig", _WRITE, Effect.CHANGES, update_config, _CONFIG_FORM),
    remove(
        "RemoveApp",
        "project.app.delete",
        _APP,
        about="Remove an application; its client id and secret are gone for good.",
    ),
    operation(
        "RegenerateOIDCClientSecret",
        _WRITE,
        Effect.CHANGES,
        regenerate_secret,
        _APP.form,
    ),
    *switches("App", _WRITE, _APP),
)
