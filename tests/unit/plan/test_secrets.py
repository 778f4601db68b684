"""Client secrets in a plan: what is owed, what is lacking, what is to be replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.errors import UsageError
from reconciler.plan.diff import FieldChange, field_changes
from reconciler.plan.digest import plan_digest
from reconciler.plan.guards import Allowances
from reconciler.plan.model import (
    Adopt,
    Change,
    Create,
    Delete,
    Plan,
    Scope,
    Update,
    makes_secret,
)
from reconciler.plan.planner import build_plan
from reconciler.plan.risk import CREDENTIAL_REPLACED, risks_of
from reconciler.resources.ref import ResourceRef
from reconciler.resources.shard import Shard
from reconciler.state import ObservedObject, OwedSecret
from tests.builders import (
    GREET,
    HOUSE,
    OWNERS,
    WEB,
    a_plan,
    a_public_application,
    a_ref,
    an_application,
    an_owed_secret,
    declared,
    desired,
    held,
    observed,
    plan_of,
)

ROTATE = Scope(rotate_missing=(WEB.key,))
TO_POST = declared(WEB, an_application(authMethodType="OIDC_AUTH_METHOD_TYPE_POST"))
BASIC, PUBLIC = held(WEB), held(WEB, a_public_application())
LACKING = replace(BASIC, has_secret=False)


def plan_with(*owed: OwedSecret, scope: Scope | None = None) -> Plan:
    """Return the plan of a service in step that owes these secrets."""
    state = replace(observed(*HOUSE, held(WEB)), custody=True, owed=owed)
    return build_plan(desired(*OWNERS, declared(WEB)), state, scope)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(Create(declared(WEB)), True, id="create with a secret"),
        pytest.param(Create(declared(WEB, a_public_application())), False, id="create without"),
        pytest.param(Update(TO_POST, PUBLIC), True, id="update to a secret"),
        pytest.param(Adopt(TO_POST, PUBLIC), True, id="adoption that moves to a secret"),
        pytest.param(Update(TO_POST, BASIC), False, id="from one kind of secret to another"),
        pytest.param(Update(TO_POST, LACKING), True, id="no secret where one is declared"),
        pytest.param(Update(TO_POST, BASIC, new_secret=True), True, id="replaced"),
        pytest.param(Update(declared(WEB, a_public_application()), BASIC), False, id="away"),
        pytest.param(Delete(BASIC), False, id="delete"),
        pytest.param(Create(declared(GREET)), False, id="another kind"),
    ],
)
def test_a_change_that_makes_a_secret_is_known_before_it_is_made(
    change: Change, expected: object
) -> None:
    """It is said before the plan is approved, for it needs a sink."""
    assert makes_secret(change) is expected


def test_what_is_owed_to_the_tree_is_in_the_plan_and_not_in_its_digest() -> None:
    """Approving a plan also approves the delivery of what exists already."""
    mine, theirs = an_owed_secret(WEB), an_owed_secret(a_ref(name="admin"), tree="other")

    plan = plan_with(mine, theirs)

    assert (plan.changes, plan.owed, plan.owed_elsewhere) == ((), (mine,), 1)
    assert (plan.summary.owed, plan.summary.owed_elsewhere) == (1, 1)
    assert plan_digest(plan) == plan_digest(plan_with())


def test_a_secret_that_is_lost_is_listed_and_not_counted_as_deliverable() -> None:
    """An apply cannot deliver it; the warning says what can be done."""
    lost = an_owed_secret(WEB, lost=True)

    plan = plan_with(lost)

    assert (plan.owed, plan.deliverable, plan.summary.owed) == ((lost,), (), 0)
    (found,) = plan.warnings
    assert (found.code, found.ref) == ("SECRET-LOST", WEB)
    assert "--rotate-missing OidcApplication/acme/shop/storefront" in found.remedy


def test_a_shard_is_owed_what_is_in_its_organizations() -> None:
    """The other jobs deliver the rest."""
    mine = an_owed_secret(WEB)
    shards = [Shard(index, 2) for index in (1, 2)]

    owed = [plan_with(mine, scope=Scope(shard=shard)).owed for shard in shards]

    assert sorted(map(len, owed)) == [0, 1]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(LACKING, Update(declared(WEB), LACKING), id="none"),
        pytest.param(replace(BASIC, has_secret=True), None, id="held"),
        pytest.param(replace(BASIC, has_secret=None), None, id="the service cannot tell"),
        pytest.param(
            replace(LACKING, trees=frozenset()),
            Adopt(declared(WEB), replace(LACKING, trees=frozenset())),
            id="never applied by this tree",
        ),
    ],
)
def test_an_application_without_its_secret_is_not_in_step(
    found: ObservedObject, expected: Change | None
) -> None:
    """A run that was cut between the update and its secret left it so."""
    plan = plan_of([declared(WEB)], [found])

    assert plan.changes == ((expected,) if expected else ())
    if expected:
        assert field_changes(expected) == (FieldChange("clientSecret", before=False, after=True),)
        assert risks_of(expected) == ()


def test_an_application_that_signs_in_otherwise_lacks_no_secret() -> None:
    """Nor does an action."""
    public = replace(PUBLIC, has_secret=False)

    assert plan_of([declared(WEB, a_public_application())], [public]).changes == ()
    assert plan_of([declared(GREET)], [replace(held(GREET), has_secret=False)]).changes == ()


def test_a_secret_that_is_to_be_replaced_is_a_change_with_a_risk() -> None:
    """And another digest: it is approved as what it is."""
    plan = plan_of([declared(WEB)], [BASIC], ROTATE)

    (change,) = plan.changes
    assert change == Update(declared(WEB), BASIC, new_secret=True)
    assert field_changes(change) == (FieldChange("clientSecret", before=True, after=True),)
    assert [(risk.name, risk.field) for risk in risks_of(change)] == [
        (CREDENTIAL_REPLACED, "clientSecret")
    ]
    assert plan_digest(plan) != plan_digest(a_plan(Update(declared(WEB), BASIC)))


def test_a_critical_application_keeps_its_secret_unless_the_glass_is_broken() -> None:
    """What is deployed with the secret so far can no longer sign in."""
    resource, found = declared(WEB, critical=True), replace(BASIC, critical=True)

    blocked = plan_of([resource], [found], ROTATE)
    allowed = Allowances(glass={"oidcapplication/acme/shop/storefront": "x"})

    assert [block.code for block in blocked.blocks] == ["GUARD-CRITICAL"]
    assert plan_of([resource], [found], ROTATE, allowed).blocks == ()


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param(a_ref(name="nope"), id="not declared"),
        pytest.param(a_ref(name="spa"), id="without a secret"),
        pytest.param(a_ref(organization="initech"), id="of another organization"),
    ],
)
def test_only_a_declared_application_with_a_secret_can_be_given_a_new_one(ref: ResourceRef) -> None:
    """A wrong name must not pass for done."""
    spa = declared(a_ref(name="spa"), a_public_application())

    with pytest.raises(UsageError, match=f"--rotate-missing {ref.path} is not a declared"):
        plan_of([declared(WEB), spa], [BASIC], Scope(rotate_missing=(ref.key,)))


def test_a_secret_of_another_shard_is_left_to_that_shard() -> None:
    """All jobs get the same flags."""
    other = next(Shard(i, 2) for i in (1, 2) if not Shard(i, 2).holds("initech"))
    scope = Scope(shard=other, rotate_missing=(a_ref(organization="initech").key,))

    assert build_plan(desired(), observed(), scope).changes == ()


def test_an_application_that_is_created_or_moved_gets_one_secret_only() -> None:
    """There is nothing to replace."""
    assert plan_of([declared(WEB)], [], ROTATE).changes == (Create(declared(WEB)),)
    (lacking,) = plan_of([declared(WEB)], [LACKING], ROTATE).changes
    assert field_changes(lacking) == (FieldChange("clientSecret", before=False, after=True),)
