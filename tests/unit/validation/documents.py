"""Documents for tests: valid by default, so that a test states only its subject."""

from __future__ import annotations

import json
from typing import Any

from reconciler.resources.ref import Kind

APPLICATION: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "OidcApplication",
    "metadata": {"organization": "acme", "project": "shop", "name": "storefront"},
    "spec": {"redirectUris": ["https://shop.example.com/callback"]},
}
IDP: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "IdpJwtConfig",
    "metadata": {"organization": "acme", "name": "partner"},
    "spec": {
        "jwtEndpoint": "https://login.example.com/jwt",
        "issuer": "https://login.example.com",
        "keysEndpoint": "https://login.example.com/keys",
        "headerName": "x-partner-token",
    },
}
ACTION: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "Action",
    "metadata": {"organization": "acme", "name": "greet"},
    "spec": {"script": "function greet(ctx, api) {}"},
}
ACTION_FLOW: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "ActionFlow",
    "metadata": {"organization": "acme", "name": "COMPLEMENT_TOKEN"},
    "spec": {"PRE_USERINFO_CREATION": ["greet"]},
}
PROJECT_ROLE: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "ProjectRole",
    "metadata": {"organization": "acme", "project": "shop", "name": "orders.manage"},
    "spec": {"displayName": "Order manager", "group": "Orders"},
}
PROJECT: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "Project",
    "metadata": {"organization": "acme", "name": "shop"},
}
ORGANIZATION: dict[str, Any] = {
    "apiVersion": "reconciler/v1",
    "kind": "Organization",
    "metadata": {"name": "acme"},
}

DOCUMENTS = {
    Kind(each["kind"]): each
    for each in (APPLICATION, IDP, ACTION, ACTION_FLOW, PROJECT_ROLE, PROJECT, ORGANIZATION)
}
"""A document of every kind."""


def with_spec(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**document, "spec": {**document.get("spec", {}), **changes}}


def with_metadata(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**document, "metadata": {**document["metadata"], **changes}}


def without(document: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return a copy without the value under a path."""
    first, *rest = path
    if rest:
        return {**document, first: without(document[first], *rest)}
    return {name: value for name, value in document.items() if name != first}


def text_of(document: Any) -> str:
    """Return a document as YAML; JSON is, but for characters it writes as two escapes."""
    text = json.dumps(document, ensure_ascii=False)
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    )
