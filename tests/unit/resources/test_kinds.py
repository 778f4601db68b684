"""The declarations of the kinds, against the messages of gRPC, which state them independently."""

from __future__ import annotations

from google.protobuf.descriptor import FieldDescriptor

from reconciler.kinds.fields import KINDS
from reconciler.resources import ref
from reconciler.resources.fields import Field, Form
from reconciler.resources.kinds import IN_PROJECT
from reconciler.resources.normal import normal_form
from reconciler.resources.ref import Kind
from reconciler.service.transport.protobuf import POOL
from tests.rows import each_row

REQUESTS = {
    Kind.ORGANIZATION: "AddOrgRequest",
    Kind.PROJECT: "AddProjectRequest",
    Kind.IDP_JWT_CONFIG: "AddJWTProviderRequest",
    Kind.OIDC_APPLICATION: "AddOIDCAppRequest",
    Kind.ACTION: "CreateActionRequest",
}
FORMS = {
    Form.TEXT: (FieldDescriptor.TYPE_STRING, False),
    Form.TEXTS: (FieldDescriptor.TYPE_STRING, True),
    Form.FLAG: (FieldDescriptor.TYPE_BOOL, False),
    Form.CHOICE: (FieldDescriptor.TYPE_ENUM, False),
    Form.SET: (FieldDescriptor.TYPE_ENUM, True),
    Form.DURATION: (FieldDescriptor.TYPE_MESSAGE, False),
    Form.VARIANT: (FieldDescriptor.TYPE_MESSAGE, False),
}
# The triggers of a flow are values on the wire, not fields.
FIELDS = [(kind, field) for kind in REQUESTS for field in KINDS[kind].fields]


@each_row(("kind", "field"), FIELDS)
def test_a_field_is_on_the_wire_in_the_form_it_is_declared_in(kind: Kind, field: Field) -> None:
    message = POOL.FindMessageTypeByName(f"zitadel.management.v1.{REQUESTS[kind]}")
    (found,) = [each for each in message.fields if each.json_name == field.name]

    assert (found.type, found.is_repeated) == FORMS[field.form]
    assert bool(field.words) == bool(found.enum_type)
    assert not found.enum_type or set(field.words) <= {*found.enum_type.values_by_name}


OFF = {
    "projectRoleAssertion": False,
    "projectRoleCheck": False,
    "hasProjectCheck": False,
    "privateLabelingSetting": "PRIVATE_LABELING_SETTING_UNSPECIFIED",
}


def test_every_flag_is_kept_and_off_by_default() -> None:
    assert {each.name: each.default for each in KINDS[Kind.PROJECT].fields} == OFF
    assert all(each.left_as_held for each in KINDS[Kind.PROJECT].fields)


def test_the_normal_form_has_what_is_said_and_the_store_what_is_not_off() -> None:
    said = {"projectRoleCheck": False, "privateLabelingSetting": "UNSPECIFIED"}

    assert normal_form(Kind.PROJECT, {}) == {}
    assert normal_form(Kind.PROJECT, said) == {name: OFF[name] for name in said}


def test_what_a_project_owns_names_it_in_manifests_and_in_addresses() -> None:
    assert {kind for kind in Kind if KINDS[kind].owner == IN_PROJECT} == ref.IN_PROJECT
