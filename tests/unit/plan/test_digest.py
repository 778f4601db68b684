"""The digest stands for what would be done: nothing else moves it, and nothing less."""

from __future__ import annotations

import re
from dataclasses import replace
from hashlib import sha256

import pytest

from reconciler.diagnostics import warning
from reconciler.plan.digest import declared_digest, essence, hash_of, plan_digest
from reconciler.plan.model import Adopt, Create, Delete, Plan, Scope, Unmanaged, Update
from reconciler.resources.ref import Shard
from reconciler.state import ObservedObject, Resource, completed
from tests.builders import (
    GREET,
    PARTNER,
    SHOP,
    WEB,
    FakeSource,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
)
from tests.rows import each_row

MOVED = FakeSource("elsewhere.yaml", {("metadata",): 99})
OLD = held(GREET, an_action(timeout="1s"), object_id="7", sequence=41)
NEW = declared(GREET, an_action())
OFF = replace(OLD, active=False)
GONE = held(PARTNER, object_id="8", sequence=42)
PLAN = a_plan(Create(declared(WEB)), Update(NEW, OLD), Delete(GONE))


def digest_of(plan: Plan) -> str:
    """Return the digest as it is made now: a plan keeps its digest, and a copy has none yet."""
    return plan_digest(replace(plan))


def with_change(change: Create | Update | Adopt | Delete) -> Plan:
    """Return the plan with another change in the place of the one of its kind."""
    places = {Create: 0, Update: 1, Adopt: 1, Delete: 2}
    changes = list(PLAN.changes)
    changes[places[type(change)]] = change
    return replace(PLAN, changes=tuple(changes))


@each_row(
    "plan",
    [
        pytest.param(with_change(Create(declared(WEB, source=MOVED))), id="positions"),
        pytest.param(
            with_change(Create(replace(declared(WEB), written=frozenset()))), id="what is unsaid"
        ),
        pytest.param(replace(PLAN, warnings=(warning("W", "s", "r"),)), id="warnings"),
        pytest.param(replace(PLAN, blocks=(warning("W", "s", "r"),)), id="guards"),
        pytest.param(replace(PLAN, in_step=()), id="what is in step"),
        pytest.param(replace(PLAN, unmanaged=(Unmanaged(PARTNER),)), id="what is unmanaged"),
        pytest.param(
            with_change(Update(NEW, replace(OLD, changed_at="2026-01-01T00:00:00Z"))), id="clocks"
        ),
        pytest.param(with_change(Update(NEW, replace(OLD, changed_by="ci"))), id="last writers"),
        pytest.param(
            replace(PLAN, organizations=("ACME",)),
            id="in which case an organization is referred to",
        ),
    ],
)
def test_what_changes_nothing_that_is_done_leaves_the_digest_alone(plan: Plan) -> None:
    """An approved plan is not refused because a comment moved a manifest by a line."""
    assert digest_of(plan) == digest_of(PLAN)


@each_row(
    "plan",
    [
        pytest.param(replace(PLAN, scope=Scope("other")), id="tree"),
        pytest.param(replace(PLAN, scope=Scope(prune=True)), id="--prune"),
        pytest.param(replace(PLAN, scope=Scope(prune_unmanaged=True)), id="--prune-unmanaged"),
        pytest.param(replace(PLAN, scope=Scope(shard=Shard(1, 1))), id="--shard"),
        pytest.param(replace(PLAN, scope=Scope(take_over=(GREET,))), id="--take-over"),
        pytest.param(replace(PLAN, scope=Scope(target=("Action/acme/x",))), id="--target"),
        pytest.param(replace(PLAN, scope=Scope(exclude=("Action/acme/x",))), id="--exclude"),
        pytest.param(replace(PLAN, scope=Scope(other_tree=("old",))), id="--other-tree"),
        pytest.param(replace(PLAN, scope=Scope(undo="r1")), id="undo"),
        pytest.param(replace(PLAN, scope=Scope(keep=(GREET,))), id="--keep"),
        pytest.param(replace(PLAN, instance="instance-2"), id="service"),
        pytest.param(replace(PLAN, organizations=("acme", "initech")), id="scope"),
        pytest.param(replace(PLAN, changes=PLAN.changes[:2]), id="one change less"),
        pytest.param(replace(PLAN, changes=PLAN.changes[::-1]), id="order"),
        pytest.param(with_change(Adopt(NEW, OLD)), id="kind of change"),
        pytest.param(with_change(Create(declared(a_ref(name="web")))), id="name"),
        pytest.param(with_change(Create(declared(a_ref(name="Storefront")))), id="case of a name"),
        pytest.param(with_change(Create(declared(a_ref(project="blog")))), id="owner"),
        pytest.param(with_change(Update(NEW, replace(OLD, id="9"))), id="id"),
        pytest.param(with_change(Update(NEW, replace(OLD, sequence=43))), id="sequence"),
        pytest.param(
            with_change(Update(NEW, replace(OLD, spec={**OLD.spec, "timeout": "2s"}))), id="before"
        ),
        pytest.param(
            with_change(Update(NEW, replace(OLD, ref=a_ref(NEW.ref.kind, "old")))),
            id="name before",
        ),
        pytest.param(
            with_change(Create(declared(WEB, an_application(devMode=True)))), id="after"
        ),
        pytest.param(
            with_change(Create(declared(WEB, prevent_delete=True))), id="protection after"
        ),
        pytest.param(with_change(Create(declared(WEB, critical=True))), id="critical after"),
        pytest.param(with_change(Delete(replace(GONE, id="9"))), id="id of a delete"),
        pytest.param(
            with_change(Delete(replace(GONE, spec={**GONE.spec, "issuer": "https://x"}))),
            id="what a delete destroys",
        ),
    ],
)  # fmt: skip
def test_what_changes_what_is_done_changes_the_digest(plan: Plan) -> None:
    """What was approved is exactly what is applied."""
    assert digest_of(plan) != digest_of(PLAN)


def test_each_shard_has_a_digest_of_its_own() -> None:
    """A plan without a change would otherwise be approved for all of them."""
    empty = [a_plan(scope=Scope(shard=Shard(index, 2))) for index in (1, 2)]

    assert len({plan_digest(plan) for plan in empty}) == 2


# Fields of an application that the release knows. One that is new is part of other digests.
OF_THE_RELEASE = (
    "redirectUris",
    "responseTypes",
    "grantTypes",
    "appType",
    "authMethodType",
    "postLogoutRedirectUris",
    "version",
    "devMode",
    "accessTokenType",
    "accessTokenRoleAssertion",
    "idTokenRoleAssertion",
    "idTokenUserinfoAssertion",
    "clockSkew",
    "additionalOrigins",
    "skipNativeAppSuccessPage",
)


def test_the_digest_is_the_same_on_every_machine() -> None:
    """A plan made in one CI job is applied in another; this value changes with the format only."""
    web = declared(WEB)
    plan = a_plan(Create(replace(web, spec={name: web.spec[name] for name in OF_THE_RELEASE})))

    assert re.fullmatch("sha256:[0-9a-f]{64}", plan_digest(plan))
    assert plan_digest(plan) == (
        "sha256:051a990ff6a5d0c53da4d0d4f5e3438eb954dda024559b2e4650ed1df0154cbd"
    ), "see releases.md"


@pytest.mark.parametrize(
    ("plan", "digest"),
    [
        pytest.param(a_plan(scope=Scope(take_over=(GREET,))), "1650b69590a59921", id="--take-over"),
        pytest.param(
            a_plan(scope=Scope(target=("Action/acme/*",))), "38911559178e1d10", id="--target"
        ),
        pytest.param(
            a_plan(scope=Scope(exclude=("Action/acme/*",))), "650ea1f8e2b69580", id="--exclude"
        ),
        pytest.param(
            a_plan(scope=Scope(other_tree=("old",))), "88943c52a326fde6", id="--other-tree"
        ),
        pytest.param(a_plan(scope=Scope(shard=Shard(2, 4))), "9ef0d16a612eaff6", id="--shard"),
        pytest.param(a_plan(scope=Scope(undo="run-1")), "b9f6be3b25f97e05", id="undo"),
        pytest.param(a_plan(scope=Scope(keep=(GREET,))), "8c991ce2938f0f0b", id="--keep"),
        pytest.param(a_plan(new_store="/srv/identity.db"), "a1c2357b0e3c62e3", id="a new store"),
        pytest.param(
            a_plan(Create(replace(NEW, ignored=frozenset({"timeout"})))),
            "b5ada89fc7d48c6f",
            id="an ignored field",
        ),
        pytest.param(
            a_plan(Create(replace(NEW, active=False))), "664a83bc786f243f", id="made inactive"
        ),
        pytest.param(
            a_plan(Update(replace(NEW, active=True), OFF)), "4a61b4db20c3088f", id="activated"
        ),
        pytest.param(a_plan(Update(NEW, OFF)), "93d011f773652f34", id="left inactive"),
        pytest.param(a_plan(Delete(OFF)), "0fdaef0686cda82d", id="deleted while inactive"),
    ],
)
def test_the_digest_of_every_option_and_state_is_the_same_in_every_version(
    plan: Plan, digest: str
) -> None:
    """A saved plan is still the approved one after an upgrade."""
    assert digest_of(plan).removeprefix("sha256:")[:16] == digest


def test_a_digest_is_made_once() -> None:
    """It is asked for by every report and guard, and large plans have many changes."""
    plan = a_plan(Create(declared(WEB)))

    assert plan_digest(plan) is plan_digest(plan)


def test_a_value_is_hashed_in_one_form() -> None:
    """In ASCII, without blanks, sorted by name: as any other program can do it."""
    written = rb'{"a":[1,true,null],"b":"\u00e4"}'

    assert hash_of({"b": "\u00e4", "a": [1, True, None]}) == sha256(written).hexdigest()


DECLARED = (declared(WEB), declared(GREET))


def test_the_digest_of_what_is_declared_is_that_of_its_meaning() -> None:
    """In whatever order and from whatever place it was read, and for whatever is left unsaid."""
    digest = declared_digest(desired(*DECLARED))
    web, greet = DECLARED
    unsaid = replace(web, written=frozenset(), source=MOVED)

    assert re.fullmatch(r"sha256:[0-9a-f]{64}", digest)
    assert declared_digest(desired(greet, web)) == digest
    assert declared_digest(desired(greet, unsaid)) == digest


@each_row(
    "other",
    [
        pytest.param([], id="nothing"),
        pytest.param([DECLARED[0]], id="one less"),
        pytest.param([declared(WEB, an_application(devMode=True)), DECLARED[1]], id="a field"),
        pytest.param([declared(WEB, prevent_delete=True), DECLARED[1]], id="its protection"),
        pytest.param([declared(WEB, critical=True), DECLARED[1]], id="that it is critical"),
        pytest.param([declared(WEB, pinned_id="7"), DECLARED[1]], id="its id"),
        pytest.param([declared(a_ref(name="STOREFRONT")), DECLARED[1]], id="the case of its name"),
        pytest.param([declared(a_ref(name="other")), DECLARED[1]], id="its name"),
    ],
)
def test_whatever_is_declared_otherwise_changes_it(other: list[Resource]) -> None:
    """A saved plan is of these manifests and no others."""
    assert declared_digest(desired(*other)) != declared_digest(desired(*DECLARED))


def test_flags_of_a_project_that_are_off_change_no_digest() -> None:
    """One of a plan that was made before projects had flags is still the digest of that plan."""
    made, found = declared(SHOP), held(SHOP)
    told = replace(declared(SHOP, critical=True), spec=found.spec)

    assert essence(Create(made)).after == hash_of([{}, False, False])
    assert essence(Update(told, found))[-2:] == (hash_of(["shop", {}]), hash_of([{}, False, True]))
    assert declared_digest(desired(made)) == declared_digest(desired(replace(made, spec={})))


def test_a_flag_of_a_project_changes_the_digest_where_it_is_on_or_changes() -> None:
    on, off = {"projectRoleCheck": True}, {"projectRoleCheck": False}
    plans = [
        Create(declared(SHOP)),
        Create(declared(SHOP, on)),
        Update(completed(declared(SHOP, off), held(SHOP, on)), held(SHOP, on)),
        Update(completed(declared(SHOP, critical=True), held(SHOP, on)), held(SHOP, on)),
    ]

    assert len({plan_digest(a_plan(change)) for change in plans}) == len(plans)
    # An explicit false takes back what another tool set, so it declares more than nothing.
    assert declared_digest(desired(declared(SHOP, off))) != declared_digest(desired(declared(SHOP)))


LEFT = frozenset({"additionalOrigins"})
SHARED = replace(declared(WEB, an_application(devMode=True)), ignored=LEFT)
ORIGINS = an_application(additionalOrigins=["https://theirs.example.com"])


def shared_digest(
    found: ObservedObject, resource: Resource = SHARED, *, new_secret: bool = False
) -> str:
    return plan_digest(a_plan(Update(completed(resource, found), found, new_secret)))


def test_the_digest_of_an_object_with_ignored_fields_covers_what_was_judged() -> None:
    """Not its sequence, nor the value of such a field, before or after."""
    before = shared_digest(held(WEB))

    assert shared_digest(held(WEB, ORIGINS, sequence=9)) == before
    for other in (
        held(WEB, an_application(clockSkew="1s")),
        held(WEB, critical=True),
        held(WEB, ignored=LEFT),
        held(WEB, owner="theirs"),
        held(WEB, has_secret=False),
        replace(held(WEB), ref=a_ref(name="STOREFRONT")),
        held(WEB, object_id="8"),
    ):
        assert shared_digest(other) != before, other
    for wanted in (
        replace(SHARED, ignored=LEFT | {"clockSkew"}),
        replace(declared(WEB), ignored=LEFT),
    ):
        assert shared_digest(held(WEB), wanted) != before, wanted


def test_a_secret_that_is_replaced_needs_the_sequence() -> None:
    """Nothing else tells whether it is still the one that the plan was about."""
    later = held(WEB, sequence=9)

    assert shared_digest(later, new_secret=True) != shared_digest(held(WEB), new_secret=True)


def test_ignored_fields_of_a_new_object_are_covered_with_their_values() -> None:
    """They are sent when it is made."""
    own = an_application(additionalOrigins=["https://ours.example.com"])
    digests = {
        plan_digest(a_plan(Create(replace(declared(WEB, said), ignored=ignored))))
        for said in (None, own)
        for ignored in (frozenset[str](), LEFT)
    }

    assert len(digests) == 4
    assert declared_digest(desired(SHARED)) != declared_digest(
        desired(replace(SHARED, ignored=frozenset()))
    )
