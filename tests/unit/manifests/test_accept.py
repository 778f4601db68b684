"""A held value becomes what its manifest writes, beside what stands there."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.manifests.accept import as_written, with_field
from reconciler.manifests.rewrite import GONE
from reconciler.resources.ref import Kind
from tests.rows import each_row

APP, ACTION, FLOW = Kind.OIDC_APPLICATION, Kind.ACTION, Kind.ACTION_FLOW
CODE, IMPLICIT, REFRESH = (
    f"OIDC_GRANT_TYPE_{word}" for word in ("AUTHORIZATION_CODE", "IMPLICIT", "REFRESH_TOKEN")
)
PAGES = {"loginV2": {"baseUri": "https://${host}/a"}}
FILLED = {"loginV2": {"baseUri": "https://h/a"}}


@each_row(
    ("kind", "field", "written", "resolved", "held", "wanted"),
    [
        pytest.param(APP, "devMode", False, False, True, True, id="a flag"),
        pytest.param(ACTION, "timeout", "5.0s", "5.0s", "7s", "7s", id="a duration"),
        pytest.param(
            APP, "appType", "WEB", "WEB", "OIDC_APP_TYPE_NATIVE", "NATIVE", id="a short word"
        ),
        pytest.param(
            APP, "appType", None, None, "OIDC_APP_TYPE_WEB", "OIDC_APP_TYPE_WEB", id="a new word"
        ),
        pytest.param(
            APP,
            "grantTypes",
            ["REFRESH_TOKEN", CODE],
            ["REFRESH_TOKEN", CODE],
            [CODE, IMPLICIT, REFRESH],
            ["REFRESH_TOKEN", CODE, "IMPLICIT"],
            id="a set keeps its order and its spellings",
        ),
        pytest.param(
            APP, "grantTypes", [CODE, REFRESH], [CODE, REFRESH], [CODE], [CODE], id="a word goes"
        ),
        pytest.param(
            APP,
            "redirectUris",
            ["https://${host}/a", "https://b"],
            ["https://h/a", "https://b"],
            ["https://c/${x}", "https://h/a"],
            ["https://c/$${x}", "https://${host}/a"],
            id="items keep their variables",
        ),
        pytest.param(APP, "redirectUris", "${all}", ["a"], ["b"], ["b"], id="a variable is all"),
        pytest.param(APP, "loginVersion", PAGES, FILLED, FILLED, PAGES, id="the same variant"),
        pytest.param(
            APP, "loginVersion", PAGES, FILLED, {"loginV1": {}}, {"loginV1": {}}, id="another one"
        ),
        pytest.param(APP, "loginVersion", PAGES, FILLED, {}, GONE, id="no variant"),
        pytest.param(
            FLOW, "PRE_CREATION", ["a", "b"], ["a", "b"], ["b", "a"], ["b", "a"], id="order"
        ),
    ],
)
def test_a_value_is_written_as_its_neighbours(
    kind: Kind, field: str, written: Any, resolved: Any, held: Any, wanted: Any
) -> None:
    """Spelling, order and variables stay; what only looks like a variable is escaped."""
    assert as_written(kind, field, written, resolved, held) == wanted


def test_a_resolved_document_has_the_held_value() -> None:
    """Judged before anything is written; a variant that is not held is not written either."""
    document = {"metadata": {"name": "a"}, "spec": {"loginVersion": FILLED}}

    assert with_field(document, "loginVersion", {}) == {"metadata": {"name": "a"}, "spec": {}}
    assert with_field({"metadata": {}}, "devMode", held=True)["spec"] == {"devMode": True}
    changed = with_field(document, "metadata.active", held=False)
    assert changed["metadata"] == {"name": "a", "active": False}
    assert document["metadata"] == {"name": "a"}
