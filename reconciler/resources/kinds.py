"""The kinds of resources: one row each, with every fact that differs from kind to kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.resources.fields import (
    ACTION_TIMEOUT,
    Field,
    Form,
    choice,
    duration,
    flag,
    text,
    texts,
)
from reconciler.resources.flows import FLOWS, TRIGGER_NAMED
from reconciler.resources.oidc import APPLICATION_FIELDS
from reconciler.resources.ref import Kind

VERSIONS = "reconciler/v"
"""Start of the ``apiVersion`` of every manifest, of whatever version."""

API_VERSION = f"{VERSIONS}1"
MAX_NAME = 200
MAX_SCRIPT = 2000
"""Characters of a script by the source document."""

MAX_SCRIPT_BYTES = 40_000
"""Bytes of a script on a ZITADEL."""


_NAME = text("name", "Name in the service, unique ignoring case.", shortest=1, longest=MAX_NAME)


@dataclass(frozen=True, slots=True)
class KindRow:
    """Facts about a kind that every part of the program needs.

    Attributes:
        about: Meaning of the kind.
        rank: Changes of a lower rank are applied first; owners come before what they own.
        schema: The name of its JSON Schema, without ``.schema.json``.
        plural: For sentences and folders.
        renamable: Whether ``metadata.id`` can rename an object of this kind.
        name: The name itself.
        owner: The metadata that names its owner, besides the name itself.
        has_state: Whether an object of this kind can be inactive.
        reading: Metadata that says how a manifest is read; reading takes it out.
        fields: The fields of its spec, in the order in which differences are shown.
        instead: A field that a manifest may write in place of one of the spec, by the name of that
            one. Reading replaces it, so that only manifests have it.
    """

    about: str
    rank: int
    schema: str
    plural: str
    renamable: bool = True
    name: Field = _NAME
    owner: tuple[Field, ...] = ()
    has_state: bool = False
    reading: tuple[Field, ...] = ()
    fields: tuple[Field, ...] = ()
    instead: Mapping[str, Field] = field(default_factory=dict)

    @property
    def metadata(self) -> tuple[Field, ...]:
        """Return the metadata after the fields that name its owner: the name, then the marks."""
        return (self.name, *MARKS, *((ACTIVE,) if self.has_state else ()))

    @property
    def alternatives(self) -> list[tuple[str, str]]:
        """Return the pairs of fields of which a manifest has one."""
        return [(name, other.name) for name, other in self.instead.items()]


_IN_ORGANIZATION = (
    text("organization", "Name of the organization that owns it.", shortest=1, longest=MAX_NAME),
)
_IN_PROJECT = (
    *_IN_ORGANIZATION,
    text(
        "project", "Name of the project the application belongs to.", shortest=1, longest=MAX_NAME
    ),
)

# Metadata of every kind, after its name.
MARKS = (
    Field(
        "id",
        Form.TEXT,
        "Id of the object in the service that this resource is. Pin it to rename the object "
        "instead of making a new one.",
        default="",  # not pinned; a manifest never writes it empty
        pattern=r"^[A-Za-z0-9_-]{1,200}$",
    ),
    flag("preventDelete", "Refuse every plan that would delete the object."),
    flag(
        "critical",
        "People are locked out when it breaks: refuse every plan that would remove or weaken the "
        "object, unless --break-glass names it.",
    ),
)

# Metadata of the kinds whose objects can be inactive.
ACTIVE = Field(
    "active",
    Form.FLAG,
    "Whether the object is active: false deactivates it, true reactivates it. Without it the state "
    "stays as it is, so that what was switched off is not switched on by accident.",
    default="",  # not said; a manifest never writes it empty
)

# Metadata of a document in an overlay folder that changes one of the base.
OVERLAID = (
    flag("absent", "In an overlay: the environment does without this resource."),
    flag("patch", "In an overlay: the manifests must declare this resource."),
)

_ORGANIZATION = KindRow(
    "An organization: a name, and the owner of everything in it. It has no fields.",
    rank=0,
    schema="organization",
    plural="organizations",
    renamable=False,
)

# Other tools set these flags as well, so each that a manifest leaves out stays as it is held.
PROJECT_FLAGS = tuple(
    each._replace(left_as_held=True)
    for each in (
        flag(
            "projectRoleAssertion",
            "Adds the roles of the project to the tokens of its applications even if no scope "
            "asks for them.",
        ),
        flag(
            "projectRoleCheck",
            "Authorization required: only a user with a role in the project may sign in to its "
            "applications.",
        ),
        flag(
            "hasProjectCheck",
            "Project access required: only a user of an organization that owns the project or "
            "was granted it may sign in to its applications.",
        ),
        choice(
            "privateLabelingSetting",
            "The organization whose branding the login shows: that of the system, of the "
            "project's own organization, or of the user's.",
            "PRIVATE_LABELING_SETTING_UNSPECIFIED",
            "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY",
            "PRIVATE_LABELING_SETTING_ALLOW_LOGIN_USER_RESOURCE_OWNER_POLICY",
        ),
    )
)

_PROJECT = KindRow(
    "A project of an organization: the owner of applications, and who may use them.",
    rank=1,
    schema="project",
    plural="projects",
    renamable=False,
    owner=_IN_ORGANIZATION,
    fields=PROJECT_FLAGS,
    has_state=True,
)

# Source 2.2. An update sends the whole configuration, and a field sent empty is empty afterwards.
# So no field of it has a default, not even headerName: a manifest that leaves it out must fail,
# not silently clear what the service holds. The audience is newer than the source.
_IDP_JWT_CONFIG = KindRow(
    "Settings by which the service reads and verifies the JWTs of one identity provider.",
    rank=2,
    schema="idp-jwt-config",
    plural="identity providers",
    owner=_IN_ORGANIZATION,
    has_state=True,
    fields=(
        text(
            "jwtEndpoint",
            "Endpoint from which the JWT can be extracted.",
            "https://login.partner.example.com/jwt",
            shortest=1,
            longest=200,
        ),
        text(
            "issuer",
            "Issuer that the JWT must name.",
            "https://login.partner.example.com",
            shortest=1,
            longest=200,
        ),
        text(
            "keysEndpoint",
            "Endpoint of the keys (JWK) that sign the JWT.",
            "https://login.partner.example.com/keys",
            shortest=1,
            longest=200,
        ),
        text(
            "headerName",
            "Header in which the JWT is sent; empty means `authorization`, and is refused by a "
            "ZITADEL.",
            *("authorization", "x-partner-token"),
            longest=200,
        ),
        text(
            "audience",
            "Audience that the JWT must name in `aud`. Empty means that `aud` is not checked: a "
            "token that the issuer made for another application is accepted.",
            "https://login.acme.example.com",
            longest=200,
        )._replace(default=""),
    ),
)

# Source 2.3 without the name, which is the resource's own. The service makes the client id. An
# update sends every field; a list that is left out is empty afterwards.
_OIDC_APPLICATION = KindRow(
    "The configuration of an OIDC application. The client id is made by the service.",
    rank=2,
    schema="oidc-application",
    plural="applications",
    owner=_IN_PROJECT,
    has_state=True,
    fields=APPLICATION_FIELDS,
)

# Source 2.5 without the name, which is the resource's own.
_ACTION = KindRow(
    "A script and how it runs.",
    rank=2,
    schema="action",
    plural="actions",
    owner=_IN_ORGANIZATION,
    has_state=True,
    reading=(flag("templated", "Replace variables in the script, too."),),
    fields=(
        text(
            "script",
            f"JavaScript to run, at most {MAX_SCRIPT} characters; on a ZITADEL, at most "
            f"{MAX_SCRIPT_BYTES} bytes. It must define a function with the action's own name.",
            "function greet(ctx, api) {\n  api.setClaim('greeting', 'hello');\n}\n",
            shortest=1,
            longest=MAX_SCRIPT_BYTES,
        ),
        duration(
            "timeout",
            "Time after which the action is ended if it has not finished, 0s to 20s: decimal "
            "seconds with s.",
            *("5s", "1.5s"),
            default="20s",
            limits=ACTION_TIMEOUT,
        ),
        flag("allowedToFail", "When true, the next action is called even if this one fails."),
    ),
    instead={
        "script": text(
            "scriptFile",
            "Path of a file with the script, from the manifest's own folder. It stays beneath the "
            "folder of the manifests and holds no more than a script may have.",
            "scripts/greet.js",
            shortest=1,
            longest=1000,
        )
    },
)

_TRIGGER_TEXTS = {
    "POST_AUTHENTICATION": "after a user signed in",
    "PRE_CREATION": "before a user is created",
    "POST_CREATION": "after a user was created",
    "PRE_USERINFO_CREATION": "before the user info is made, and the claims of the id token",
    "PRE_ACCESS_TOKEN_CREATION": "before an access token of type JWT is made",
    "PRE_SAML_RESPONSE_CREATION": "before a SAML response is made",
}

# A trigger has the same name in every flow that has it, so all flows share these fields. Which of
# them a flow has is told by ``resources.flows``; a manifest with another one is refused.
_TRIGGERS = tuple(
    texts(
        trigger, f"Names of the actions to run, in order, {_TRIGGER_TEXTS[trigger]}.", "greet"
    )._replace(shortest=1, longest=MAX_NAME)
    for trigger in TRIGGER_NAMED
)

_ACTION_FLOW = KindRow(
    "The actions that run at the triggers of one flow. It is the whole flow: a trigger that is "
    "left out runs no action.",
    rank=3,
    schema="action-flow",
    plural="action flows",
    renamable=False,
    name=Field("name", Form.CHOICE, "The flow.", words=tuple(flow.name for flow in FLOWS)),
    owner=_IN_ORGANIZATION,
    fields=_TRIGGERS,
)

KINDS: Mapping[Kind, KindRow] = {
    Kind.ORGANIZATION: _ORGANIZATION,
    Kind.PROJECT: _PROJECT,
    Kind.IDP_JWT_CONFIG: _IDP_JWT_CONFIG,
    Kind.OIDC_APPLICATION: _OIDC_APPLICATION,
    Kind.ACTION: _ACTION,
    Kind.ACTION_FLOW: _ACTION_FLOW,
}
