"""A part of a plan: what is named, what that needs, and what is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.diagnostics import error, warning
from reconciler.errors import UsageError
from reconciler.plan.digest import plan_digest
from reconciler.plan.model import Create, Plan, Scope, Summary, Unmanaged, Update, ref_of
from reconciler.plan.planfile import PlanFile, plan_file_content, read_plan_file
from reconciler.plan.selection import narrowed
from reconciler.resources.ref import Kind, ResourceRef, Shard, parse_pattern, shard_of
from reconciler.state import Resource
from tests.builders import (
    ACME,
    GREET,
    PARTNER,
    SHOP,
    TOKEN,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_action_flow,
    an_owed_secret,
    declared,
    held,
)

SPA = a_ref(name="spa")
FLOW = declared(TOKEN, an_action_flow(PRE_USERINFO_CREATION=["greet"]))
NEW = (declared(ACME), declared(SHOP), declared(WEB), declared(SPA), declared(GREET), FLOW)


def making(resources: Sequence[Resource], **more: object) -> Plan:
    """Return the plan that makes all of these, for a service that holds nothing."""
    return a_plan(*map(Create, resources), in_step=(), **more)


def part_of(
    plan: Plan,
    *target: str,
    exclude: Sequence[str] = (),
    shard: Shard | None = None,
) -> Plan:
    scope = Scope(
        target=tuple(map(parse_pattern, target)),
        exclude=tuple(map(parse_pattern, exclude)),
        shard=shard,
    )
    return narrowed(replace(plan, scope=scope))


def refs(plan: Plan) -> list[ResourceRef]:
    return [ref_of(change) for change in plan.changes]


def test_the_whole_is_the_plan_itself() -> None:
    """A scope without a part costs nothing and changes nothing."""
    plan = making(NEW)

    assert narrowed(plan) is plan


def test_what_is_selected_brings_its_owners() -> None:
    """In the order of the plan, and counted apart."""
    part = part_of(making(NEW), WEB.address)

    assert refs(part) == [ACME, SHOP, WEB]
    assert part.needed == (ACME, SHOP)
    assert part.left_out == Summary(3, 0, 0, 0, 0, 0, 0)


def test_what_is_named_is_not_among_what_is_needed() -> None:
    """The count says what comes without having been asked for."""
    part = part_of(making(NEW), WEB.address, SHOP.address, TOKEN.address)

    assert refs(part) == [ACME, SHOP, WEB, GREET, TOKEN]
    assert part.needed == (ACME, GREET)


def test_an_update_of_what_is_needed_stays() -> None:
    """It is held: what needs it can be made without."""
    project = Update(declared(SHOP, {"projectRoleCheck": True}), held(SHOP))
    action = Update(declared(GREET, an_action(timeout="2s")), held(GREET))
    plan = a_plan(project, Create(declared(WEB)), action, Create(FLOW), in_step=(ACME,))

    part = part_of(plan, WEB.address, TOKEN.address)

    assert refs(part) == [WEB, TOKEN]
    assert part.needed == ()
    assert part.left_out == Summary(0, 2, 0, 0, 1, 0, 0)


def test_who_takes_a_name_needs_who_gives_it_up() -> None:
    """And so does a flow that knows an action by the name that it has afterwards."""
    second = a_ref(Kind.ACTION, "second")
    renamed = Update(declared(second, an_action()), held(GREET, object_id="7"))
    taking = Create(declared(GREET))
    flow = declared(TOKEN, an_action_flow(PRE_USERINFO_CREATION=["second"]))
    plan = a_plan(renamed, taking, Create(flow))

    assert refs(part_of(plan, TOKEN.address)) == [second, TOKEN]
    taken = part_of(plan, GREET.address, exclude=[TOKEN.address])
    assert refs(taken) == [second, GREET]
    alone = part_of(plan, second.address)
    assert (refs(alone), alone.needed) == ([second], ())
    blocked = part_of(plan, exclude=[second.address])
    assert refs(blocked) == [GREET, TOKEN]
    assert [block.code for block in blocked.blocks] == ["GUARD-EXCLUDED"] * 2
    assert "which has another name on the service yet" in blocked.blocks[0].remedy


@pytest.mark.parametrize("target", [(), (WEB.address,)])
def test_what_is_needed_and_excluded_blocks(target: Sequence[str]) -> None:
    """Both are named, at the place of the one that needs the other."""
    part = part_of(making(NEW), *target, exclude=[SHOP.address, SPA.address])

    (block,) = part.blocks
    assert (block.code, block.ref) == ("GUARD-EXCLUDED", WEB)
    assert f"{WEB} needs {SHOP}, which is not held yet." in block.remedy
    assert f"--exclude {WEB.address}." in block.remedy
    assert str(block.location).startswith("shop.yaml")


def test_every_block_of_the_whole_stays() -> None:
    """Also one of what is left out: two halves of a dangerous plan are not harmless."""
    blocks = (error("GUARD-CRITICAL", "s", "r", ref=SPA), error("GUARD-MANY-UPDATES", "s", "r"))

    assert part_of(making(NEW, blocks=blocks), WEB.address).blocks == blocks


def test_the_rest_is_left_out_and_counted() -> None:
    """In step, undeclared, inactive, owed: only the changes of the part are shown."""
    web, spa = (Update(declared(ref), held(ref, object_id=name)) for ref, name in
                ((WEB, "1"), (SPA, "2")))  # fmt: skip
    plan = a_plan(
        web,
        spa,
        unmanaged=(Unmanaged(PARTNER), Unmanaged(a_ref(name="other"))),
        warnings=tuple(
            warning(code, "s", "r", ref=ref) for code, ref in (("A", None), ("B", SPA), ("C", WEB))
        ),
        owed=tuple(
            an_owed_secret(ref, id=number)
            for ref, number in ((WEB, "1"), (SPA, "2"), (a_ref(name="old"), "3"))
        ),
        owed_left=4,
        owed_elsewhere=5,
        inactive=(SPA, WEB),
    )

    part = part_of(plan, WEB.address, "OidcApplication/acme/shop/o*")

    assert refs(part) == [WEB]
    assert part.in_step == ()
    assert [found.ref.name for found in part.unmanaged] == ["other"]
    assert [each.code for each in part.warnings] == ["A", "C"]
    assert [secret.id for secret in part.owed] == ["1", "3"]
    assert part.inactive == (WEB,)
    assert part.summary.owed_elsewhere == 5
    assert part.left_out == Summary(0, 1, 0, 0, 2, 1, 0, owed=1, owed_left=4)


def test_the_secret_of_a_renamed_application_goes_with_its_change() -> None:
    """The service keeps it under the old name, which a new application may have by now."""
    renamed = Update(declared(SPA), held(WEB, object_id="1"))
    plan = a_plan(renamed, Create(declared(WEB)), owed=(an_owed_secret(WEB, id="1"),))

    assert part_of(plan, SPA.address).owed == plan.owed
    assert part_of(plan, exclude=[SPA.address]).owed == ()
    assert part_of(plan, exclude=[WEB.address]).owed == ()


def test_what_an_approved_plan_has_renamed_stays_in_its_part() -> None:
    """With the secret that is still owed for it, and whatever else is planned of it by now."""
    scope = Scope(target=(parse_pattern(WEB.address),))
    renamed = Update(declared(SPA), held(WEB, object_id="1"))
    approved = narrowed(a_plan(renamed, scope=scope))
    owed = (an_owed_secret(SPA, id="1"),)

    done = narrowed(a_plan(scope=scope, in_step=(ACME, SPA), owed=owed), approved)
    moved = Update(declared(SPA), held(SPA, object_id="1"))
    rest = narrowed(a_plan(moved, scope=scope, owed=owed), approved)

    assert (done.in_step, done.owed) == ((SPA,), owed)
    assert (refs(rest), rest.owed) == ([SPA], owed)


@pytest.mark.parametrize("flag", ["--target", "--exclude"])
def test_what_names_nothing_is_refused(flag: str) -> None:
    """Several are named, and the rest is counted."""
    wrong = [f"Action/acme/no{number}" for number in range(7)]
    right = [GREET.address, *wrong]

    target, exclude = (right, ()) if flag == "--target" else ((), right)

    with pytest.raises(UsageError) as caught:
        part_of(making(NEW), *target, exclude=exclude)

    listed = ", ".join(wrong[:5])
    assert caught.value.problem == (
        f"{flag} names nothing that is declared or held: {listed} and 2 more"
    )


def test_a_name_of_another_shard_is_left_to_that_shard() -> None:
    """Every job of a matrix has the same flags."""
    own = Shard(shard_of("acme", 2), 2)
    other = next(name for name in "abcdef" if not own.holds(name))
    plan = making(NEW)

    assert refs(part_of(plan, f"Action/{other}/x", "*/*/x", shard=own)) == []
    assert refs(part_of(plan, f"Action/{other}/x", GREET.address, shard=own)) == [ACME, GREET]
    with pytest.raises(UsageError, match="Action/acme/x"):
        part_of(plan, "Action/acme/x", shard=own)


def test_a_part_is_in_the_digest_and_in_the_plan_file() -> None:
    """What is left out is in the file for a reader, and not in the digest."""
    one = part_of(making(NEW), WEB.address)
    same = part_of(making(NEW), "OidcApplication/acme/*/storefront")
    other = replace(one, left_out=Summary(9, 0, 0, 0, 0, 0, 0))
    file = PlanFile(
        plan=one, tool_version="0", service="s", paths=(), declared="d", made_at=1, expires_at=2
    )

    read = read_plan_file(plan_file_content(file)).plan

    assert plan_digest(one) != plan_digest(same)
    assert plan_digest(one) == plan_digest(other)
    assert (read.scope, read.needed, read.left_out) == (one.scope, one.needed, one.left_out)
