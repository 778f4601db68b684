"""A plan for machines: stable keys, and nothing but JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler import __version__
from reconciler.diagnostics import SourceLocation, error, warning
from reconciler.plan.diff import carried_fields
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Adopt, Change, Create, Delete, Scope, Unmanaged, Update
from tests.builders import GREET, PARTNER, WEB, a_plan, an_application, declared, held
from tests.drawings import change_as_text, plan_as_json

APP_REF = {
    "kind": "OidcApplication", "organization": "acme", "project": "shop", "name": "storefront",
}  # fmt: skip
ACTION_REF = {"kind": "Action", "organization": "acme", "project": "", "name": "greet"}
IDP_REF = {"kind": "IdpJwtConfig", "organization": "acme", "project": "", "name": "partner"}


def contains(found: Any, expected: Any) -> bool:
    """Say whether JSON has at least these keys: minor versions add some."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            name in found and contains(found[name], value) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(contains, found, expected))
    return bool(found == expected) and type(found) is type(expected)


def test_a_plan_has_the_promised_keys() -> None:
    """Pipelines are written against them."""
    plan = a_plan(
        Create(declared(WEB, {"redirectUris": [], "devMode": True})),
        scope=Scope("web"),
        unmanaged=(Unmanaged(PARTNER, "7", "other"),),
        blocks=(error("GUARD-X", "s", "r"),),
        warnings=(warning("W", "s", "r"),),
    )
    place = SourceLocation("a.yaml", 1, 2)

    found = plan_as_json(plan, "sqlite:x.db", [warning("URI-HTTP", "s", "r", place)])

    assert json.loads(json.dumps(found)) == found
    assert contains(
        found,
        {
            "format_version": "1.0",
            "tool_version": __version__,
            "service": "sqlite:x.db",
            "instance": "instance-1",
            "new_service": False,
            "tree": "web",
            "digest": plan_digest(plan),
            "summary": {
                "create": 1,
                "update": 0,
                "adopt": 0,
                "delete": 0,
                "in_step": 2,
                "unmanaged": 1,
                "blocked": 1,
            },
            "unmanaged": [{**IDP_REF, "id": "7", "owner": "other", "deleted_by": None}],
            "diagnostics": [
                {"severity": "warning", "code": "URI-HTTP", "file": "a.yaml", "line": 1,
                 "column": 2, "summary": "s", "remedy": "r"},
                {"severity": "warning", "code": "W", "file": None},
                {"severity": "error", "code": "GUARD-X", "file": None},
            ],
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        pytest.param(
            Create(declared(WEB, {"redirectUris": [], "devMode": True})),
            {
                "ref": APP_REF,
                "change": "create",
                "id": None,
                "sequence": None,
                "fields": [
                    {"name": "redirectUris", "before": None, "after": [], "reset": False},
                    {"name": "devMode", "before": None, "after": True, "reset": False},
                ],
                "problems": [
                    {
                        "key": "Application.OIDC.V1.NotCompliant",
                        "message": "This configuration breaks rules of OIDC 1.0.",
                    },
                    {
                        "key": "Application.OIDC.V1.NoRedirectUris",
                        "message": "At least one redirect URI is needed for this grant type.",
                    },
                ],
            },
            id="create",
        ),
        pytest.param(
            Update(
                declared(WEB),
                held(WEB, an_application(clockSkew="1s"), object_id="7", sequence=2**53 + 1),
            ),
            {
                "ref": APP_REF,
                "change": "update",
                "id": "7",
                "sequence": "9007199254740993",
                "fields": [{"name": "clockSkew", "before": "1s", "after": "0s", "reset": True}],
                "problems": [],
            },
            id="update: a sequence is text, for it is longer than a number of JavaScript",
        ),
        pytest.param(
            Adopt(declared(GREET, {"script": "let b;"}), held(GREET, {"script": "let a;"})),
            {
                "ref": ACTION_REF,
                "change": "adopt",
                "fields": [
                    {"name": "script", "before": "let a;", "after": "let b;", "reset": False}
                ],
            },
            id="adopt",
        ),
        pytest.param(
            Delete(held(PARTNER, object_id="7", sequence=41)),
            {
                "ref": IDP_REF,
                "change": "delete",
                "id": "7",
                "sequence": "41",
                "fields": [],
                "problems": [],
            },
            id="delete",
        ),
    ],
)
def test_a_change_has_the_promised_keys(change: Change, fields: dict[str, Any]) -> None:
    """By the names of the manifest, so that a policy can be written against them."""
    (found,) = plan_as_json(a_plan(change), "sqlite:x.db", [])["changes"]

    assert contains(found, fields), found


def test_what_an_update_sends_back_unseen_is_told() -> None:
    """Nobody here knows what it means, so a reader should know that it is there."""
    found = held(WEB, an_application(devMode=True), carried={"newer": 1, "later": {}})
    update = Update(declared(WEB), found)

    assert carried_fields(update) == ("later", "newer")
    assert "later, newer" in change_as_text(update)
    (told,) = plan_as_json(a_plan(update), "sqlite:x.db", [])["changes"]
    assert told["carried"] == ["later", "newer"]
    assert carried_fields(Delete(found)) == carried_fields(Create(declared(WEB))) == ()
