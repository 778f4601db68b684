"""Digests of calls under an idempotency key: the same in every version of the service."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from tests.examples import CODE, JWT, SCRIPT, Clock
from tests.memory_store import open_memory
from tests.unit.service.asking import ADMIN, Asking

# Fields of a call, and the text of their meaning as earlier versions digested it. IN_PROJECT
# stands for the id of the project.
IN_PROJECT = "@project"
PROJECT = (
    '{"name":"caf\u00e9 \\"1\\"","project_role_assertion":false,"project_role_check":false,'
    '"has_project_check":false,"private_labeling_setting":"PRIVATE_LABELING_SETTING_UNSPECIFIED"}'
)
IDP = (
    '{"jwt_endpoint":"https://login.example.com/jwt","issuer":"https://login.example.com",'
    '"keys_endpoint":"https://login.example.com/keys","header_name":"x-token","name":"partner",'
    '"styling_type":"STYLING_TYPE_UNSPECIFIED","auto_register":false}'
)
APP = (
    '{"redirect_uris":["https://a.example/cb"],"response_types":["OIDC_RESPONSE_TYPE_CODE"],'
    '"grant_types":["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],"app_type":"OIDC_APP_TYPE_WEB",'
    '"auth_method_type":"OIDC_AUTH_METHOD_TYPE_BASIC","post_logout_redirect_uris":[],'
    '"version":"OIDC_VERSION_1_0","dev_mode":false,"access_token_type":"OIDC_TOKEN_TYPE_BEARER",'
    '"access_token_role_assertion":false,"id_token_role_assertion":false,'
    '"id_token_userinfo_assertion":false,"clock_skew":"1.5s","additional_origins":[],'
    '"skip_native_app_success_page":false,"project_id":"@project","back_channel_logout_uri":"",'
    '"login_version":null,"name":"web"}'
)
ACTION = (
    '{"script":"function greet(ctx, api) {}","timeout":"1s","allowed_to_fail":true,"name":"greet"}'
)


@pytest.mark.parametrize(
    ("operation", "fields", "meaning"),
    [
        ("AddProject", {"name": 'caf\u00e9 "1"'}, PROJECT),
        ("AddOrgJWTIDP", {"name": "partner", **JWT}, IDP),
        (
            "AddOIDCApp",
            {
                "projectId": IN_PROJECT,
                "name": "web",
                "redirectUris": ["https://a.example/cb"],
                "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
                "grantTypes": [CODE],
                "appType": "OIDC_APP_TYPE_WEB",
                "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
                "clockSkew": "1.5s",
            },
            APP,
        ),
        (
            "CreateAction",
            {"name": "greet", "script": SCRIPT, "timeout": "1s", "allowedToFail": True},
            ACTION,
        ),
    ],
)
def test_a_request_has_the_digest_that_earlier_versions_kept(
    operation: str, fields: dict[str, Any], meaning: str
) -> None:
    """Otherwise a retry after an upgrade is refused, and its one-time secret is lost."""
    clock = Clock()
    ask = Asking(open_memory(now=clock), clock)
    ask.prepare()
    if "projectId" in fields:
        fields = {**fields, "projectId": ask.project}
    meaning = meaning.replace(IN_PROJECT, ask.project)

    ask(operation, organization=ask.organization, idempotency_key="k1", **fields)

    with ask.service.store.snapshot() as view:
        kept = view.record(ADMIN.account, "k1")
    assert kept is not None
    asked = sha256(f"{operation}\n{ask.organization}\n{meaning}".encode()).digest()
    assert kept.digest == sha256(asked + f"{kept.seal} {kept.slot} {kept.answer}".encode()).digest()
