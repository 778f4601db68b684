"""What our service and a ZITADEL both can do.

One suite over ours, embedded and over HTTP, and over stand-ins of both generations of the other.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
)
from reconciler.kinds.calls import CALLS
from reconciler.kinds.fields import KINDS
from reconciler.plan.model import Adopt, Delete, Scope, Update
from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind
from reconciler.service.operations.table import operations
from reconciler.service_client.port import DeleteOrder, SecretOrder, UpdateOrder, Written
from reconciler.state import DesiredState, Resource, completed, holds
from tests.builders import (
    a_jwt_config,
    a_public_application,
    a_ref,
    a_role,
    an_action,
    an_application,
    declared,
    desired,
)
from tests.contract.houses import CONTEXT, IN_PROCESS, OVER_HTTP, House, held_specs
from tests.http_clients import apply_with, plan_with
from tests.zitadel.protos import pool
from tests.zitadel.stand_in import GENERATIONS

RENAMABLE = [kind for kind, row in KINDS.items() if row.renamable]
WRITABLE = [kind for kind, row in CALLS.items() if row.create and row.remove]
# What a manifest says of an object that it changes.
CHANGED = {
    Kind.OIDC_APPLICATION: an_application(devMode=True),
    Kind.ACTION: an_action(timeout="1s"),
    Kind.IDP_JWT_CONFIG: a_jwt_config(issuer="https://new.example.com"),
    Kind.PROJECT_ROLE: a_role(group="Orders"),
}
ODD_KEYS = ("a/b", "a%2Fb", "a=b c", "Käufer", ".hidden", "..", "_search", "/", "ü" * 200)


@pytest.fixture(params=[IN_PROCESS, OVER_HTTP, *GENERATIONS])
def service_kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of service to open."""
    return str(request.param)


def test_a_field_that_is_false_or_empty_may_be_left_out_on_a_zitadel() -> None:
    """In no message that writes it does protobuf know the difference."""
    fields = {field.name for row in KINDS.values() for field in row.fields}
    messages = [
        method.input_type
        for method in pool().FindServiceByName("zitadel.management.v1.ManagementService").methods
        if operations().keys() & {method.name}
    ]
    told = [
        (message.name, field.name)
        for message in messages
        for field in message.fields
        if field.json_name in fields and field.has_presence and field.message_type is None
    ]

    assert len(messages) > 20
    assert told == []


def resources(house: House, **said: dict[str, Any]) -> list[Resource]:
    """Return an organization, a project, and one declared resource of each kind in them."""
    return [
        declared(a_ref(Kind.ORGANIZATION, organization=house.organization)),
        declared(house.ref(Kind.PROJECT, "shop")),
        declared(house.ref(Kind.OIDC_APPLICATION, "web"), said.get("web")),
        declared(house.ref(Kind.ACTION, "greet"), said.get("greet")),
        declared(house.ref(Kind.IDP_JWT_CONFIG, "partner"), said.get("partner")),
    ]


def tree(house: House, **said: dict[str, Any]) -> DesiredState:
    return desired(*resources(house, **said))


def test_what_was_written_is_observed_as_it_was_written(house: House) -> None:
    """Otherwise a plan right after an apply would not be empty."""
    orders = [
        house.create(Kind.OIDC_APPLICATION, "web", an_application(clockSkew="1.5s")),
        house.create(Kind.ACTION, "greet", an_action(timeout="3s")),
        house.create(Kind.IDP_JWT_CONFIG, "partner", a_jwt_config()),
        *(house.create(Kind.PROJECT_ROLE, key, a_role(group="Ä/b")) for key in ODD_KEYS),
    ]

    results = house.write(*orders)

    for order, result in zip(orders, results, strict=True):
        held = house.held(order.ref)
        assert isinstance(result, Written)
        assert (held.ref, held.id) == (order.ref, result.id)
        assert holds(held, order.resource.spec)
        assert held.client_id == result.client_id
        assert held.sequence >= result.sequence
        assert held.trees == (frozenset({"default"}) if house.remembers else frozenset())
        assert held.uncarried == ()
    assert isinstance(results[0], Written)
    assert results[0].client_secret is not None


def test_only_what_was_asked_for_is_observed(house: House) -> None:
    """A run reads the organizations its manifests name."""
    state = house.client.observe([house.organization.upper(), "nobody"])

    assert {held.ref.organization for held in state.objects.values()} == {house.organization}
    assert state.incomplete == ()
    assert state.keeps_history is house.remembers
    assert house.client.observe([]).objects == {}


def test_one_apply_is_enough(house: House, tmp_path: Path) -> None:
    """The next plan is empty, and one of a changed tree is exactly the change."""
    first = apply_with(house.client, tree(house), tmp_path)
    assert (first.remaining, plan_with(house.client, tree(house)).changes) == (0, ())
    before = held_specs(house)

    moved = a_jwt_config(issuer="https://new.example.com")
    changed = tree(house, greet=an_action(timeout="2s"), partner=moved)
    plan = plan_with(house.client, changed)
    report = apply_with(house.client, changed, tmp_path)

    assert {type(change) for change in plan.changes} == {Update if house.remembers else Adopt}
    assert report.remaining == 0
    after = held_specs(house)
    assert {key for key in before if before[key] != after[key]} == {
        house.ref(Kind.ACTION, "greet").key, house.ref(Kind.IDP_JWT_CONFIG, "partner").key,
    }  # fmt: skip


def test_a_flow_is_owned_whole(house: House, tmp_path: Path) -> None:
    """It is made with its actions, changed trigger by trigger, emptied, and each time in step."""
    ref = house.ref(Kind.ACTION_FLOW, "COMPLEMENT_TOKEN")
    log = declared(house.ref(Kind.ACTION, "log"), an_action())
    rest = [*tree(house).resources.values(), log]
    said: list[dict[str, list[str]]] = [
        {"PRE_USERINFO_CREATION": ["log", "greet"], "PRE_ACCESS_TOKEN_CREATION": ["greet"]},
        {"PRE_USERINFO_CREATION": ["greet", "log"]},
        {},
    ]
    for spec in said:
        wanted = desired(*rest, declared(ref, spec))

        report = apply_with(house.client, wanted, tmp_path)

        assert (report.remaining, plan_with(house.client, wanted).changes) == (0, ())
        assert held_specs(house).get(ref.key) == (declared(ref, spec).spec if spec else None)


@pytest.mark.parametrize("kind", RENAMABLE)
def test_a_rename_keeps_the_object(house: House, tmp_path: Path, kind: Kind) -> None:
    """It is pinned by its id, and its fields stay."""
    # A secret that is made outside of a run would be owed.
    said = a_public_application() if kind is Kind.OIDC_APPLICATION else None
    before = house.made(house.create(kind, "greet", said))
    wanted = declared(house.ref(kind, "welcome"), said, pinned_id=before.id)

    report = apply_with(house.client, desired(wanted), tmp_path)

    held = house.held(wanted.ref)
    assert report.remaining == 0
    assert (held.id, held.client_id) == (before.id, before.client_id)
    assert holds(held, wanted.spec)
    assert before.ref.key not in held_specs(house)


@pytest.mark.parametrize("kind", WRITABLE)
def test_an_object_that_moved_on_is_not_written_over(house: House, kind: Kind) -> None:
    """What somebody else changed meanwhile would be lost without a word."""
    before = house.made(house.create(kind, "greet"))
    mine = UpdateOrder(declared(before.ref, CHANGED[kind]), before)
    (first,) = house.write(mine)

    (second,) = house.write(mine)
    (gone,) = house.write(DeleteOrder(before))

    assert isinstance(first, Written)
    assert isinstance(second, PreconditionFailedError)
    assert isinstance(gone, PreconditionFailedError)
    assert holds(house.held(before.ref), mine.resource.spec)


IGNORED = {
    Kind.OIDC_APPLICATION: ("additionalOrigins", ["https://theirs.example.com"]),
    Kind.ACTION: ("allowedToFail", True),
    Kind.IDP_JWT_CONFIG: ("keysEndpoint", "https://theirs.example.com/keys"),
    Kind.PROJECT_ROLE: ("displayName", "Theirs"),
}


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_field_that_is_left_to_others_is_sent_back_as_they_wrote_it(
    house: House, kind: Kind
) -> None:
    """The object has moved on since it was read, and nothing that was decided has."""
    before = house.made(house.create(kind, "greet"))
    name, value = IGNORED[kind]
    theirs = declared(before.ref, {**before.spec, name: value})
    mine = replace(declared(before.ref, CHANGED[kind]), ignored=frozenset({name}))
    (other,) = house.write(UpdateOrder(theirs, before))

    (written,) = house.write(UpdateOrder(completed(mine, before), before))

    assert isinstance(other, Written)
    assert isinstance(written, Written), written
    assert holds(house.held(before.ref), {**mine.spec, name: value})


def test_a_refused_order_keeps_no_other_from_being_carried_out(house: House) -> None:
    """A name that is taken is no reason to leave the rest undone, nor is a wrong value."""
    house.made(house.create(Kind.ACTION, "Greet", an_action(timeout="1s")))
    order = house.create(Kind.ACTION, "b", an_action(timeout="21s"))

    taken, wrong, fine = house.write(
        house.create(Kind.ACTION, "greet"), order, house.create(Kind.ACTION, "c")
    )

    assert isinstance(taken, AlreadyExistsError)
    assert isinstance(wrong, InvalidArgumentError)
    assert "timeout" in wrong.problem.lower()
    assert isinstance(fine, Written)


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_deleted_object_is_gone(house: House, kind: Kind) -> None:
    """Deleting it once more says so, and so does an update."""
    held = house.made(house.create(kind, "partner"))

    (first,) = house.write(DeleteOrder(held))
    (second,) = house.write(DeleteOrder(held))
    other = declared(house.ref(kind, "other"))
    if kind not in RENAMABLE:
        other = declared(held.ref, CHANGED[kind])
    (third,) = house.write(UpdateOrder(other, held))

    assert isinstance(first, Written)
    assert isinstance(second, ObjectNotFoundError)
    assert isinstance(third, ObjectNotFoundError)
    assert held.ref.key not in held_specs(house)


def test_what_is_declared_nowhere_goes_only_when_that_is_said(house: House, tmp_path: Path) -> None:
    """With the flag for all of it; applications, actions and providers are deleted."""
    apply_with(house.client, tree(house), tmp_path)
    nothing = desired(*resources(house)[:2])

    assert plan_with(house.client, nothing).changes == ()
    report = apply_with(house.client, nothing, tmp_path, Scope(prune_unmanaged=True))

    assert report.remaining == 0
    assert {type(outcome.change) for outcome in report.outcomes} == {Delete}
    assert {key.kind for key in held_specs(house)} == {Kind.ORGANIZATION, Kind.PROJECT}


def test_a_new_secret_is_another_one(house: House) -> None:
    """It is answered with the client id it belongs to."""
    order = house.create(Kind.OIDC_APPLICATION, "web")
    (made,) = house.write(order)
    assert isinstance(made, Written)

    (again,) = house.write(SecretOrder(house.held(order.ref)))

    assert isinstance(again, Written)
    assert again.client_secret not in {None, made.client_secret}
    assert again.client_id == made.client_id


def test_an_application_that_moves_to_a_secret_gets_one(house: House, tmp_path: Path) -> None:
    """The update is followed by a new secret, which is delivered."""
    apply_with(house.client, tree(house, web=a_public_application()), tmp_path)
    assert not list((tmp_path / "secrets").glob("*.json"))

    report = apply_with(house.client, tree(house), tmp_path)

    assert report.remaining == 0
    assert len(list((tmp_path / "secrets").glob("*.json"))) == 1


def test_one_writer_at_a_time(house: House) -> None:
    """And who has let go can write again."""
    house.client.acquire([house.organization])
    (made,) = house.client.write([house.create(Kind.ACTION, "greet")], CONTEXT)
    house.client.release()

    assert isinstance(made, Written)


def test_a_missing_owner_is_refused(house: House) -> None:
    """Nothing is made in a project that is not there."""
    order = house.create(Kind.OIDC_APPLICATION, "web")
    house.project_id = "12345"
    stray = house.create(Kind.OIDC_APPLICATION, "stray")

    refused, fine = house.write(stray, order)

    assert isinstance(refused, ServiceError)
    assert isinstance(fine, Written)


def test_flags_of_a_project_change_as_declared_and_others_stay(
    house: House, tmp_path: Path
) -> None:
    """Another tool may have set those that no manifest says."""
    ref = house.ref(Kind.PROJECT, "shop")

    def applied(**flags: Any) -> dict[str, Any]:
        wanted = desired(declared(ref, flags))
        assert apply_with(house.client, wanted, tmp_path).remaining == 0
        assert plan_with(house.client, wanted).changes == ()
        return dict(house.held(ref).spec)

    labelled = "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY"
    assert applied() == LEFT_AS_HELD[Kind.PROJECT]
    first = applied(projectRoleCheck=True, privateLabelingSetting=labelled)
    second = applied(hasProjectCheck=True, projectRoleCheck=False)

    assert first == {
        **LEFT_AS_HELD[Kind.PROJECT], "projectRoleCheck": True, "privateLabelingSetting": labelled,
    }  # fmt: skip
    assert second == {**first, "projectRoleCheck": False, "hasProjectCheck": True}
    assert applied() == second


def test_a_project_is_made_with_its_flags(house: House) -> None:
    said = {"projectRoleAssertion": True, "hasProjectCheck": True}

    made = house.made(house.create(Kind.PROJECT, "blog", said))

    assert made.spec == {**LEFT_AS_HELD[Kind.PROJECT], **said}


def test_a_project_that_moved_on_is_not_written_over(house: House) -> None:
    before = house.held(house.ref(Kind.PROJECT, "shop"))
    mine = declared(before.ref, {**before.spec, "projectRoleCheck": True})
    (first,) = house.write(UpdateOrder(mine, before))

    other = declared(before.ref, {**before.spec, "hasProjectCheck": True})
    (second,) = house.write(UpdateOrder(other, before))

    assert isinstance(first, Written)
    assert isinstance(second, PreconditionFailedError)
    assert house.held(before.ref).spec == mine.spec
