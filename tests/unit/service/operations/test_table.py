"""The table of operations: whole, and in step with what it names."""

from __future__ import annotations

import re
from collections import Counter
from types import FunctionType

import pytest

from reconciler.kinds.addresses import ADDRESSES
from reconciler.kinds.fields import KINDS
from reconciler.kinds.operations import OPERATIONS
from reconciler.resources.call import WRITE_BATCH
from reconciler.resources.ref import Kind
from reconciler.service.operations import (
    custody,
    history,
    inventory,
    leases,
    trees,
    trust,
)
from reconciler.service.operations.callers import Caller, Role
from reconciler.service.operations.form import Form
from reconciler.service.operations.operation import MANAGEMENT, Effect, Operation
from reconciler.service.operations.request import Fields
from reconciler.service.operations.table import needs_token, operation_of, operations
from tests.rows import each_row

ROWS = list(operations().values())


@each_row("row", ROWS)
def test_every_operation_is_found_by_its_name_and_described(row: Operation) -> None:
    """Its summary stands in the description of the API."""
    assert operation_of(row.name) is row
    assert row.summary


@each_row("row", [row for row in ROWS if row.request is not Fields])
def test_an_operation_with_a_model_has_a_method_of_its_name_and_a_permission(
    row: Operation,
) -> None:
    assert f"{MANAGEMENT}/{row.name}" in row.grpc
    assert row.permission


@each_row("row", [row for row in ROWS if row.effect is Effect.CREATES])
def test_what_makes_an_object_has_its_name_where_its_kind_says(row: Operation) -> None:
    """Where a create is repeated, the name tells whether the object was renamed since."""
    assert isinstance(row.request, Form)
    field = KINDS[row.request.kind or Kind.ORGANIZATION].name_field

    assert field in row.request.names, "set name_field in fields.py of the kind's room"


@each_row("row", ROWS)
def test_the_effect_of_an_operation_is_that_of_its_name(row: Operation) -> None:
    """Batches and the description of the API tell by it what an operation may do."""
    effects = {
        r"Get|List|Healthz": Effect.READS,
        r"Add|Create": Effect.CREATES,
        r"Update|Regenerate|Deactivate|Reactivate|Set|Clear|RecordContext": Effect.CHANGES,
        r"Remove|Delete": Effect.REMOVES,
        r"Pause|Resume|RecordCommit": Effect.COORDINATES,
        r"Acquire|Renew|Release|Claim|Acknowledge|WriteBatch|Grant|Revoke": Effect.COORDINATES,
    }
    found = [effect for names, effect in effects.items() if re.match(names, row.name)]

    assert found == [row.effect], "a first word that is new needs its effect in this table"


@pytest.mark.parametrize(("name", "expected"), [("Healthz", False), ("AddOrg", True), ("", True)])
def test_only_health_needs_no_token(name: str, *, expected: bool) -> None:
    """An operation that does not exist is no way around the token either."""
    assert needs_token(name) is expected
    assert [row.name for row in ROWS if not row.needs_token] == ["Healthz"]


def test_every_address_is_of_an_operation() -> None:
    """Clients and service share one table; a ZITADEL has some operations more."""
    of_zitadel = {"ListExecutionFunctions", "ListOrganizations", "ListMyMemberships"}
    assert ADDRESSES.keys() - operations().keys() == of_zitadel
    assert operations().keys() <= ADDRESSES.keys()


def test_the_operations_of_the_source_have_their_addresses() -> None:
    """Design 5.1: also the administrative address that the source document is about."""
    assert operations()["UpdateOrgIDPJWTConfig"].http == (
        "PUT /management/v1/idps/{idpId}/jwt_config",
        "PUT /admin/v1/idps/{idpId}/jwt_config",
    )
    assert operations()["UpdateOrgIDPJWTConfig"].grpc == (
        "zitadel.management.v1.ManagementService/UpdateOrgIDPJWTConfig",
        "zitadel.admin.v1.AdminService/UpdateIDPJWTConfig",
    )
    assert operations()["AddOIDCApp"].http == (
        "POST /management/v1/projects/{projectId}/apps/oidc",
    )
    assert operations()["CreateAction"].http == ("POST /management/v1/actions",)


@each_row("row", [row for row in ROWS if row.name != WRITE_BATCH])
def test_the_handler_of_a_read_cannot_write(row: Operation) -> None:
    """A read is answered from a snapshot, without a commit, so its handler takes no ``Writing``."""
    function = row.handler if isinstance(row.handler, FunctionType) else type(row.handler).__call__
    call = next(iter(function.__annotations__.values()))

    assert call == ("Writing" if row.writes else "Reading")


def test_no_operation_is_lost_to_another_of_its_name() -> None:
    """The rows of all modules, and that of batches, have names of their own."""
    modules = (custody, history, inventory, leases, trees, trust)
    names = [row.name for rows in OPERATIONS.values() for row in rows]
    names += [row.name for module in modules for row in module.ROWS]

    assert Counter([*names, WRITE_BATCH]) == Counter(operations().keys())


def test_no_address_is_given_twice() -> None:
    """An address leads to one operation."""
    anonymous = [re.sub(r"{\w+}", "{}", address) for row in ROWS for address in row.http]
    methods = [method for row in ROWS for method in row.grpc]

    assert [found for found, count in Counter(anonymous + methods).items() if count > 1] == []


@each_row("row", ROWS)
def test_reads_are_for_viewers_and_writes_are_not(row: Operation) -> None:
    """A read-only token stays one. Tokens, and who trusts whom, are for admins alone to know."""
    if row.permission == "trust.manage" or row.name == "ListTokens":
        assert not Caller("x", Role.EDITOR).may(row.permission)
    elif row.permission:
        assert Caller("x", Role.VIEWER).may(row.permission) is not row.writes
        assert Caller("x", Role.ADMIN).may(row.permission)
    else:
        assert not row.writes


@each_row("row", ROWS)
def test_a_path_parameter_is_a_field_by_its_json_name(row: Operation) -> None:
    """Transports put it among the fields as it stands."""
    for address in row.http:
        verb, path = address.split(" ")
        assert verb in {"GET", "POST", "PUT", "DELETE"}
        assert re.fullmatch(r"(/(_?[a-z_0-9-]+|{[a-z]+[A-Za-z]*}))+", path)
        assert verb != "GET" or not row.writes
