"""Creates on a ZITADEL: what may have been made already is looked for before it is made again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotListedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.kinds.zitadel import ZITADEL
from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Kind, organization_ref
from reconciler.service_client.port import CreateOrder, Written
from reconciler.service_client.wire import Answer, Reply, WireRefusal, lost
from reconciler.service_client.zitadel.steps import CATCH_UP, ONCE_MORE, TRIES
from reconciler.service_client.zitadel.writes import LOOKS, create
from tests.builders import GREET, PARTNER, an_action, declared
from tests.rows import each_row
from tests.unit.service_client.zitadel.driven import driven, operations

ORDER = CreateOrder(declared(GREET), "1")
DETAILS = {"sequence": "9", "resourceOwner": "1"}
MADE = Answer({"id": "7", "details": DETAILS})
ITEM: JsonObject = {"id": "7", "name": "greet", "details": DETAILS, **declared(GREET).spec}
OTHER: JsonObject = {**ITEM, **declared(GREET, an_action(timeout="1s")).spec}
LOST, TAKEN = lost("no answer"), WireRefusal(6, "exists")


def listed(*items: JsonObject) -> Answer:
    return Answer({"result": list(items), "details": {"totalResult": str(len(items))}})


LOOK = [CATCH_UP, "ListActions", ONCE_MORE, "ListActions"]


@each_row(
    ("replies", "result", "steps"),
    [
        ([MADE], Written("7", 9), []),
        ([LOST, listed(ITEM), listed(ITEM)], Written("7", 9), LOOK),
        ([LOST, listed(), listed(), MADE], Written("7", 9), [*LOOK, "CreateAction"]),
        ([WireRefusal(3, "no")], InvalidArgumentError, []),
        ([TAKEN, listed(), listed()], NotListedError, LOOK),
        ([LOST, listed(OTHER), listed(OTHER)], AlreadyExistsError, LOOK),
        ([LOST, WireRefusal(3, "no")], ServiceUnavailableError, LOOK[:2]),
    ],
)
def test_a_create_is_made_once(
    replies: list[Reply], result: Written | type[ServiceError], steps: list[object]
) -> None:
    """Its lost answer may have made it; another one of its name is never taken for it."""
    made, taken = driven(create(ORDER, ZITADEL[Kind.ACTION]), *replies)

    assert (made if isinstance(made, Written) else type(made)) == result
    assert operations(taken) == ["CreateAction", *steps]


@pytest.mark.parametrize(
    ("details", "sequence"), [({"details": DETAILS}, 9), ({}, 0)], ids=["details", "no details"]
)
def test_an_organization_is_found_by_its_name_and_id_alone(
    details: JsonObject, sequence: int
) -> None:
    acme = organization_ref("acme")
    found = listed({"id": "7", "name": "ACME", **details})

    made, _ = driven(
        create(CreateOrder(declared(acme)), ZITADEL[Kind.ORGANIZATION]), LOST, found, found
    )

    assert made == Written("7", sequence)


def test_objects_of_the_same_name_are_not_chosen_from() -> None:
    twins = listed(ITEM, {**ITEM, "id": "8"})

    result, _ = driven(create(ORDER, ZITADEL[Kind.ACTION]), LOST, twins, twins)

    assert isinstance(result, ServiceError)
    assert "ids 7 and 8" in result.problem


def test_lists_that_contradict_each_other_prove_nothing() -> None:
    looks = [listed(*[ITEM] * (number % 2)) for number in range(LOOKS)]

    result, _ = driven(create(ORDER, ZITADEL[Kind.ACTION]), LOST, *looks)

    assert isinstance(result, ServiceUnavailableError)
    assert "contradict" in result.problem


def test_a_service_that_never_answers_is_left() -> None:
    replies: list[Reply] = [LOST, listed(), listed()] * TRIES

    result, _ = driven(create(ORDER, ZITADEL[Kind.ACTION]), *replies)

    assert isinstance(result, ServiceUnavailableError)
    assert result.problem.endswith("no answer came")


PROVIDER = CreateOrder(declared(PARTNER), "1")
JWT: JsonObject = {
    "id": "7", "name": "Partner", "type": "PROVIDER_TYPE_JWT", "details": DETAILS,
    "config": {"jwt": declared(PARTNER).spec},
}  # fmt: skip
NOT_THERE = WireRefusal(5, "Not Found", is_code_told=True)


def test_a_provider_of_the_name_is_not_made_twice() -> None:
    """The server would make a second one. A list may show a name that a rename has freed."""
    calls = replace(ZITADEL[Kind.IDP_JWT_CONFIG], is_old=False)
    gone = WireRefusal(5, "no", {"id": "QUERY-1"})

    taken, _ = driven(create(PROVIDER, calls), gone, listed(JWT), Answer({"idp": JWT}))
    made, steps = driven(create(PROVIDER, calls), gone, listed(JWT), gone, MADE)

    assert isinstance(taken, AlreadyExistsError), "its name differs in case"
    assert made == Written("7", 9)
    assert operations(steps) == [
        "GetProviderByID", "ListProviders", "GetProviderByID", "AddJWTProvider",
    ]  # fmt: skip


def test_a_server_without_template_calls_is_asked_with_the_old_ones() -> None:
    calls = replace(ZITADEL[Kind.IDP_JWT_CONFIG])

    made, steps = driven(create(PROVIDER, calls), NOT_THERE, NOT_THERE, MADE)

    assert made == Written("7", 9)
    assert operations(steps) == ["ListProviders", "ListProviders", "AddOrgJWTIDP"]
    assert calls.is_old
