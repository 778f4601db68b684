"""The table of operations: whole, and in step with what it names."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from reconciler.resources.call import ADDRESSES
from reconciler.service.operations.callers import PERMISSIONS, Role
from reconciler.service.operations.operation import Operation, handler_of, reader_of
from reconciler.service.operations.table import OPERATIONS

ROWS = list(OPERATIONS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_leads_to_a_handler_and_a_request(row: Operation) -> None:
    """Modules are loaded late; a misspelt name must not wait for its first caller."""
    assert callable(handler_of(row))
    assert callable(reader_of(row))
    assert handler_of(row).__doc__


def test_the_three_operations_of_the_source_are_marked() -> None:
    """Everything else supports them."""
    assert {row.name for row in ROWS if row.source} == {
        "UpdateOrgIDPJWTConfig", "AddOIDCApp", "CreateAction",
    }  # fmt: skip


def test_every_address_is_of_an_operation() -> None:
    """Clients and service share one table; a ZITADEL has one operation more."""
    assert ADDRESSES.keys() - OPERATIONS.keys() == {"GetIAM"}
    assert OPERATIONS.keys() <= ADDRESSES.keys()


def test_the_operations_of_the_source_have_their_addresses() -> None:
    """Design 5.1: also the administrative address that the source document is about."""
    assert OPERATIONS["UpdateOrgIDPJWTConfig"].http == (
        "PUT /management/v1/idps/{idpId}/jwt_config",
        "PUT /admin/v1/idps/{idpId}/jwt_config",
    )
    assert OPERATIONS["UpdateOrgIDPJWTConfig"].grpc == (
        "zitadel.management.v1.ManagementService/UpdateOrgIDPJWTConfig",
        "zitadel.admin.v1.AdminService/UpdateIDPJWTConfig",
    )
    assert OPERATIONS["AddOIDCApp"].http == ("POST /management/v1/projects/{projectId}/apps/oidc",)
    assert OPERATIONS["CreateAction"].http == ("POST /management/v1/actions",)


def test_no_address_is_given_twice() -> None:
    """An address leads to one operation."""
    anonymous = [re.sub(r"{\w+}", "{}", address) for row in ROWS for address in row.http]
    methods = [method for row in ROWS for method in row.grpc]

    assert [found for found, count in Counter(anonymous + methods).items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_reads_are_for_viewers_and_writes_are_not(row: Operation) -> None:
    """A read-only token stays one."""
    if row.permission:
        assert (row.permission in PERMISSIONS[Role.VIEWER]) is not row.writes
        assert row.permission in PERMISSIONS[Role.ADMIN]
    else:
        assert not row.writes


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_path_parameter_is_a_field_by_its_json_name(row: Operation) -> None:
    """Transports put it among the fields as it stands."""
    for address in row.http:
        verb, path = address.split(" ")
        assert verb in {"GET", "POST", "PUT", "DELETE"}
        assert re.fullmatch(r"(/(_?[a-z_0-9-]+|{[a-z]+[A-Za-z]*}))+", path)
        assert verb != "GET" or not row.writes
