"""The messages of gRPC: in step with their sources, and with what the API publishes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from google.protobuf.descriptor import Descriptor

from reconciler.kinds.fields import KINDS
from reconciler.service.operations.table import operations
from reconciler.service.transport.protobuf import DESCRIPTORS, METHODS, POOL, SERVICES

PROTOS = DESCRIPTORS.parent


def test_the_descriptor_set_is_what_its_sources_make(tmp_path: Path) -> None:
    """Whoever changes a message runs ``make protos``."""
    made = tmp_path / DESCRIPTORS.name
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            "--proto_path=.",
            "--include_imports",
            f"--descriptor_set_out={made}",
            *sources,
        ],
        cwd=PROTOS,
        check=True,
    )

    assert made.read_bytes() == DESCRIPTORS.read_bytes()


def test_the_services_have_the_methods_of_the_table_and_no_others() -> None:
    """A method that nothing carries out would be a promise to nobody."""
    declared = {
        f"{service}/{method.name}"
        for service in SERVICES
        for method in POOL.FindServiceByName(service).methods
    }

    assert declared == {method for row in operations().values() for method in row.grpc}


@pytest.mark.parametrize("path", METHODS)
def test_messages_are_named_after_their_method(path: str) -> None:
    """Generated clients rely on the names."""
    method = METHODS[path]
    _, service, name = path.split("/")
    package = service.rpartition(".")[0]

    assert method.request.DESCRIPTOR.full_name == f"{package}.{name}Request"
    assert method.answer.DESCRIPTOR.full_name == f"{package}.{name}Response"


def numbers(name: str) -> dict[str, int]:
    """Return the numbers of the fields of a message, or of the words of an enum."""
    try:
        found = POOL.FindMessageTypeByName(name)
    except KeyError:
        return {word.name: word.number for word in POOL.FindEnumTypeByName(name).values}
    return {field.name: field.number for field in found.fields}


# What the API publishes and nobody would guess; the rest counts up from 1 in the order written.
ODD = {
    "zitadel.management.v1.UpdateAppRequest": {"project_id": 1, "app_id": 2, "name": 5},
    "zitadel.management.v1.RemoveOrgIDPResponse": {},
    "zitadel.management.v1.DeleteActionResponse": {},
    "zitadel.idp.v1.IDP": {
        "id": 1, "details": 2, "state": 3, "name": 4, "styling_type": 5, "owner": 6,
        "auto_register": 8, "jwt_config": 9,
    },
    "zitadel.app.v1.App": {"id": 1, "details": 2, "state": 3, "name": 4, "oidc_config": 5},
    "zitadel.app.v1.OIDCConfig": {
        "redirect_uris": 1, "response_types": 2, "grant_types": 3, "app_type": 4, "client_id": 5,
        "auth_method_type": 7, "post_logout_redirect_uris": 8, "version": 9, "none_compliant": 10,
        "compliance_problems": 11, "dev_mode": 12, "access_token_type": 13,
        "access_token_role_assertion": 14, "id_token_role_assertion": 15,
        "id_token_userinfo_assertion": 16, "clock_skew": 17, "additional_origins": 18,
        "allowed_origins": 19, "skip_native_app_success_page": 20, "back_channel_logout_uri": 21,
        "login_version": 22,
    },
    "zitadel.action.v1.ActionState": {
        "ACTION_STATE_UNSPECIFIED": 0, "ACTION_STATE_INACTIVE": 1, "ACTION_STATE_ACTIVE": 2,
    },
    "zitadel.management.v1.AddOIDCAppRequest": {
        "project_id": 1, "name": 2, "redirect_uris": 3, "response_types": 4, "grant_types": 5,
        "app_type": 6, "auth_method_type": 7, "post_logout_redirect_uris": 8, "version": 9,
        "dev_mode": 10, "access_token_type": 11, "access_token_role_assertion": 12,
        "id_token_role_assertion": 13, "id_token_userinfo_assertion": 14, "clock_skew": 15,
        "additional_origins": 16, "skip_native_app_success_page": 17,
        "back_channel_logout_uri": 18, "login_version": 19,
    },
    "zitadel.management.v1.UpdateOIDCAppConfigRequest": {
        "project_id": 1, "app_id": 2, "redirect_uris": 3, "response_types": 4, "grant_types": 5,
        "app_type": 6, "auth_method_type": 7, "post_logout_redirect_uris": 8, "dev_mode": 9,
        "access_token_type": 10, "access_token_role_assertion": 11,
        "id_token_role_assertion": 12, "id_token_userinfo_assertion": 13, "clock_skew": 14,
        "additional_origins": 15, "skip_native_app_success_page": 16,
        "back_channel_logout_uri": 17, "login_version": 18,
    },
    "zitadel.management.v1.AddOIDCAppResponse": {
        "app_id": 1, "details": 2, "client_id": 3, "client_secret": 4, "none_compliant": 5,
        "compliance_problems": 6,
    },
    "zitadel.management.v1.CreateActionResponse": {"details": 1, "id": 2},
    "zitadel.management.v1.AddOrgJWTIDPResponse": {"details": 1, "idp_id": 2},
    "zitadel.management.v1.RegenerateOIDCClientSecretResponse": {
        "client_secret": 1, "details": 2,
    },
    "zitadel.org.v1.OrgQuery": {
        "name_query": 1, "domain_query": 2, "state_query": 3, "id_query": 4,
    },
    "zitadel.v1.ErrorDetail": {"id": 1, "message": 2},
    "google.rpc.Status": {"code": 1, "message": 2, "details": 3},
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_numbers_are_those_that_the_api_publishes(name: str) -> None:
    """A number is all that goes over the wire: a wrong one is another field, silently.

    Those of fields that a kind has gained since go on from the highest.
    """
    found, published = numbers(name), ODD[name]
    gained = sorted(found.keys() - published.keys(), key=found.__getitem__)
    following = enumerate(gained, max(published.values(), default=0) + 1)

    assert found == {**published, **{field: number for number, field in following}}
    assert {_json_name(name, field) for field in gained} <= FIELDS_OF_KINDS


FIELDS_OF_KINDS = {field.name for row in KINDS.values() for field in row.fields}


def _json_name(message: str, field: str) -> str:
    return str(POOL.FindMessageTypeByName(message).fields_by_name[field].json_name)


def _messages() -> list[Descriptor]:
    kinds = {kind for method in METHODS.values() for kind in (method.request, method.answer)}
    return sorted(
        (cast("Descriptor", kind.DESCRIPTOR) for kind in kinds),
        key=lambda found: str(found.full_name),
    )


@pytest.mark.parametrize("message", _messages(), ids=lambda found: found.full_name)
def test_every_other_message_counts_up_from_one(message: Descriptor) -> None:
    """What is not in the table of odd numbers has none."""
    if message.full_name not in ODD:
        found = [field.number for field in message.fields]
        assert found == list(range(1, len(found) + 1)), "give it a row, with the API's own numbers"


def test_names_of_ours_can_be_loaded_beside_those_of_others() -> None:
    """A program may hold generated code of the same names, with more in it."""
    from google.protobuf import descriptor_pool

    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("zitadel.v1.ErrorDetail")
