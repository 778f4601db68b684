"""Random manifests: valid, odd where that is allowed, and small enough to do many of.

Strategies are made once and kept: Hypothesis looks each new one through before it draws from it,
which takes longer than the draw.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st

from reconciler.kinds.action_flow.flows import FLOWS
from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import Kind

NAMES = st.sampled_from(
    ["web", "Web app", "a/b", "naïve", "日本", "x" * 200, "spa", "admin", "no", "010", "12:30:00"]
)
SECONDS = st.sampled_from(["0s", "1s", "1.0s", "1.50s", "1.5s", "5s", "0.000000001s"])
URIS = st.lists(
    st.sampled_from(["https://a.example.com/cb", "https://b.example.com/cb?x=1"]), max_size=3
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# The built-in service takes the values of the source document only.
WORDS = {
    field.name: tuple(word for word in field.words if word not in field.newer)
    for field in KINDS[Kind.OIDC_APPLICATION].fields
}


@cache
def applications() -> st.SearchStrategy[dict[str, Any]]:
    """Return specs of applications that the service accepts."""
    code = st.fixed_dictionaries(
        {},
        optional={
            "redirectUris": URIS,
            "postLogoutRedirectUris": URIS,
            "responseTypes": st.sampled_from([[], ["OIDC_RESPONSE_TYPE_CODE"]]),
            "grantTypes": st.lists(st.sampled_from(WORDS["grantTypes"]), max_size=3).map(
                lambda grants: ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", *grants] if grants else []
            ),
            "appType": st.sampled_from(WORDS["appType"]),
            "authMethodType": st.sampled_from(WORDS["authMethodType"]),
            "devMode": st.booleans(),
            "accessTokenRoleAssertion": st.booleans(),
            "clockSkew": SECONDS,
            "additionalOrigins": st.lists(
                st.sampled_from(["https://a.example.com", "http://localhost:3000"]), max_size=2
            ),
        },
    )
    implicit = code.map(
        lambda spec: {
            **spec,
            "responseTypes": ["OIDC_RESPONSE_TYPE_ID_TOKEN", "OIDC_RESPONSE_TYPE_CODE"],
            "grantTypes": ["OIDC_GRANT_TYPE_IMPLICIT", "OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
        }
    )
    return st.one_of(code, implicit)


@cache
def actions() -> st.SearchStrategy[dict[str, Any]]:
    """Return specs of actions."""
    return st.fixed_dictionaries(
        {"script": st.text(LETTERS, min_size=1, max_size=40).map(lambda x: f"// {x}\nlet q;\n")},
        optional={"timeout": SECONDS, "allowedToFail": st.booleans()},
    )


@cache
def providers() -> st.SearchStrategy[dict[str, Any]]:
    """Return specs of JWT identity providers."""
    endpoints = st.sampled_from(["https://idp.example.com/a", "https://idp.example.com/b"])
    return st.fixed_dictionaries(
        {
            "jwtEndpoint": endpoints,
            "issuer": endpoints,
            "keysEndpoint": endpoints,
            "headerName": st.sampled_from(["", "authorization", "x-token"]),
        }
    )


@cache
def flows(actions: tuple[str, ...]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    """Return specs of flows by their names; they run some of these actions, or none."""
    names = st.lists(st.sampled_from(actions), unique=True) if actions else st.just([])
    specs = {
        flow.name: st.fixed_dictionaries(
            {}, optional={trigger.name: names for trigger in flow.triggers}
        )
        for flow in FLOWS[:2]
    }
    return st.fixed_dictionaries({}, optional=specs)


@cache
def projects() -> st.SearchStrategy[dict[str, Any]]:
    """Return specs of projects; what they leave out is kept."""
    flags = {
        each.name: st.sampled_from(each.words or [True, False])
        for each in KINDS[Kind.PROJECT].fields
    }
    return st.fixed_dictionaries({}, optional=flags)


@cache
def roles() -> st.SearchStrategy[dict[str, Any]]:
    """Return specs of the roles of projects."""
    texts = st.sampled_from(["Manager", "Käufer", " x "])
    return st.fixed_dictionaries({"displayName": texts}, optional={"group": texts})


KEYS = st.sampled_from(
    ["admin", "Admin", "ADMIN", "a/b", "a%2Fb", "a=b", "Straße", "STRASSE", ".hidden", "a b",
     "_search", "x" * 200]
)  # fmt: skip
"""Keys of roles, some of which differ in case only."""

_ORGANIZATIONS = st.sets(st.sampled_from(["acme", "Büro"]), min_size=1)
_PROJECTS = st.sets(st.sampled_from(["shop", "Support"]))
_FLAGS = st.one_of(st.none(), projects())
_ACTIONS = st.dictionaries(NAMES, actions(), max_size=3)
_OF_ORGANIZATION = {"IdpJwtConfig": st.dictionaries(NAMES, providers(), max_size=2)}
_OF_PROJECT = {
    "OidcApplication": st.dictionaries(NAMES, applications(), max_size=4),
    "ProjectRole": st.dictionaries(KEYS, roles(), max_size=3),
}


@st.composite
def manifest_sets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return the documents of one tree: organizations, projects and what is in them."""
    documents: list[dict[str, Any]] = []
    for organization in draw(_ORGANIZATIONS):
        documents.append(_manifest("Organization", None, name=organization))
        owner = {"organization": organization}
        scripts = draw(_ACTIONS)
        documents += _declared("Action", scripts, **owner)
        documents += _declared("ActionFlow", draw(flows(tuple(sorted(scripts)))), **owner)
        for kind, specs in _OF_ORGANIZATION.items():
            documents += _declared(kind, draw(specs), **owner)
        for project in draw(_PROJECTS):
            documents.append(_manifest("Project", draw(_FLAGS), name=project, **owner))
            for kind, specs in _OF_PROJECT.items():
                documents += _declared(kind, draw(specs), project=project, **owner)
    ignored = draw(_IGNORED)
    for document in documents:
        if document["kind"] in ignored:
            document["metadata"]["ignore"] = ignored[document["kind"]]
    return documents


# One of the two as it is held may not fit the other as it is declared: GUARD-IGNORED.
_PAIR = {"grantTypes", "responseTypes"}

# Of a flow, a trigger that is left to others may run what the tree prunes, which is an error.
_IGNORED = st.fixed_dictionaries(
    {},
    optional={
        kind.value: st.lists(
            st.sampled_from([field.name for field in row.fields]), min_size=1, max_size=2
        ).map(lambda names: names if _PAIR.isdisjoint(names) else [*names, *sorted(_PAIR)])
        for kind, row in KINDS.items()
        if row.ignore and kind is not Kind.ACTION_FLOW
    },
)


def _declared(kind: str, specs: Mapping[str, Any], **owner: str) -> list[dict[str, Any]]:
    return [_manifest(kind, spec, name=name, **owner) for name, spec in specs.items()]


def _manifest(kind: str, spec: dict[str, Any] | None, **metadata: str) -> dict[str, Any]:
    document: dict[str, Any] = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata}
    return document if spec is None else {**document, "spec": spec}


def as_yaml(documents: list[dict[str, Any]]) -> str:
    """Return documents as one YAML stream; JSON is YAML."""
    return "\n---\n".join(json.dumps(document, ensure_ascii=False) for document in documents)
