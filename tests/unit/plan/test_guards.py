"""What blocks a plan, lockouts among it, and what allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.plan.advice import unidentified
from reconciler.plan.guards import Allowances, blocks
from reconciler.plan.model import Adopt, Change, Create, Delete, Plan, Scope, Update
from reconciler.plan.planner import build_plan
from reconciler.resources.ref import Kind, fold, project_ref
from reconciler.state import LET_THROUGH, UPGRADE, Elsewhere, ObservedObject, Resource
from tests.builders import (
    GREET,
    HOUSE,
    NONE,
    OWNERS,
    PARTNER,
    SHOP,
    WEB,
    FakeSource,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
    held,
    observed,
    plan_of,
)
from tests.rows import each_row

APP, ACTION = Kind.OIDC_APPLICATION, Kind.ACTION


def named(count: int, kind: Kind = APP) -> list[Update]:
    """Return an update of each of so many objects."""
    refs = [a_ref(kind, f"n{at:02}") for at in range(count)]
    return [Update(declared(ref), held(ref)) for ref in refs]


def found(
    total: int, touched: Sequence[Change], allowed: Allowances | None = None, kind: Kind = APP
) -> list[str]:
    """Return the codes of what blocks changes where so many objects of a kind are held."""
    objects = [update.held for update in named(total, kind)]
    return [
        finding.code
        for finding in blocks(
            touched, desired(), observed(*HOUSE, *objects), Scope(), allowed or Allowances()
        )
    ]


@each_row(
    ("total", "updates", "allowed", "expected"),
    [
        pytest.param(10, 3, None, [], id="30 % of 10"),
        pytest.param(10, 4, None, ["GUARD-MANY-UPDATES"], id="more than 30 % of 10"),
        pytest.param(9, 9, None, [], id="all of 9: too few objects for a share to mean much"),
        pytest.param(11, 3, None, [], id="less than 30 % of 11"),
        pytest.param(11, 4, None, ["GUARD-MANY-UPDATES"], id="more than 30 % of 11"),
        pytest.param(100, 30, None, [], id="30 % of 100"),
        pytest.param(100, 31, None, ["GUARD-MANY-UPDATES"], id="31 % of 100"),
        pytest.param(10, 4, 4, [], id="allowed to the number"),
        pytest.param(10, 5, 4, ["GUARD-MANY-UPDATES"], id="one more than is allowed"),
        pytest.param(10, 4, 0, ["GUARD-MANY-UPDATES"], id="none allowed"),
        pytest.param(10, 3, 0, [], id="an allowance never lowers the guard's own limit"),
    ],
)
def test_many_updates_of_a_kind_block(
    total: int, updates: int, allowed: int | None, expected: list[str]
) -> None:
    """A wrong merge changes everything at once; a right one says so."""
    changes = named(updates)

    assert found(total, changes, Allowances(updates=allowed, deletes=99)) == expected
    adopted = [Adopt(change.resource, change.held) for change in changes]
    assert found(total, adopted, Allowances(updates=allowed)) == expected


@each_row(
    ("total", "deletes", "allowed", "expected"),
    [
        pytest.param(10, 3, None, [], id="30 % of 10"),
        pytest.param(10, 4, None, ["GUARD-MANY-DELETES"], id="more than 30 % of 10"),
        pytest.param(9, 8, None, [], id="most of 9"),
        pytest.param(9, 9, None, ["GUARD-MANY-DELETES"], id="all of 9"),
        pytest.param(1, 1, None, ["GUARD-MANY-DELETES"], id="the only one"),
        pytest.param(1, 1, 1, [], id="the only one, allowed"),
        pytest.param(10, 10, 10, [], id="all of 10, allowed to the number"),
        pytest.param(10, 10, 9, ["GUARD-MANY-DELETES"], id="one more than is allowed"),
    ],
)
def test_many_deletes_of_a_kind_block_and_so_does_the_last_one(
    total: int, deletes: int, allowed: int | None, expected: list[str]
) -> None:
    """An empty folder, read by mistake, must not empty the service."""
    changes = [Delete(update.held) for update in named(deletes)]

    assert found(total, changes, Allowances(updates=99, deletes=allowed)) == expected


def test_each_kind_is_counted_for_itself() -> None:
    """Many actions must not hide that half of the applications change."""
    objects = [*(u.held for u in named(100, ACTION)), *(u.held for u in named(10))]
    changes = [*named(4), *named(4, ACTION)]

    assert blocks(changes, desired(), observed(*objects), Scope(), Allowances()) == (
        error(
            "GUARD-MANY-UPDATES",
            "too many applications would be updated",
            "4 of 10 applications (40%) would be updated; the limit is 30% where there are 10 or "
            "more. If that is meant, allow just that: --allow-updates 4.",
        ),
    )


def test_the_delete_guard_says_what_to_allow() -> None:
    """The number is the one that would be deleted, so that the next plan is guarded again."""
    objects = [update.held for update in named(2)]

    assert blocks(
        [Delete(found) for found in objects], desired(), observed(*objects), Scope(), Allowances()
    ) == (
        error(
            "GUARD-MANY-DELETES",
            "too many applications would be deleted",
            "2 of 2 applications (100%) would be deleted; the limit is 30% where there are 10 or "
            "more, and never all. If that is meant, allow just that: --allow-deletes 2.",
        ),
    )


def test_creates_are_never_too_many() -> None:
    """They harm nothing that is there."""
    assert found(10, [Create(update.resource) for update in named(50)]) == []


PARTIAL = error(
    "GUARD-PARTIAL-TREE",
    "deletes are planned from a part of the tree",
    "1 object(s) would be deleted because no manifest that was read declares them. Give the "
    "folder of the whole tree, or leave --prune out.",
)
PROTECTED = error(
    "GUARD-PREVENT-DELETE",
    "the object was declared with preventDelete",
    "OidcApplication acme/shop/storefront is protected. Declare it again; to delete it, first "
    "apply it with metadata.preventDelete: false.",
    ref=WEB,
)
UNKNOWN = error(
    "GUARD-UNKNOWN-FIELD",
    "the update would erase fields this version does not know",
    "OidcApplication acme/shop/storefront holds alpha, beta, which can be neither declared nor "
    "carried. Use a version of the reconciler that knows them.",
    ref=WEB,
)
INCOMPLETE = error(
    "GUARD-INCOMPLETE-READ",
    "the service's listing is not complete",
    "The total says 12, the pages hold 11. Nothing is written from an incomplete listing: run "
    "the command again.",
)
OF_LATER = error(
    "GUARD-INCOMPLETE-READ",
    "the service's listing is not complete",
    f"acme holds a toaster: {UPGRADE} Nothing is written from an incomplete listing.",
)
ODD = held(WEB, uncarried=("beta", "alpha"))


@each_row(
    ("changes", "whole", "incomplete", "expected"),
    [
        pytest.param([Delete(held(WEB))], "part", (), [PARTIAL], id="prune a part of the tree"),
        pytest.param([Delete(held(WEB))], "whole", (), [], id="prune the whole tree"),
        pytest.param([Update(declared(), held())], "part", (), [], id="update a part of the tree"),
        pytest.param(
            [Delete(held(WEB, prevent_delete=True))], "whole", (), [PROTECTED], id="protected"
        ),
        pytest.param(
            [Delete(held(WEB, prevent_delete=None))],
            "whole",
            (),
            [],
            id="protection not remembered",
        ),
        pytest.param(
            [Update(declared(), held(prevent_delete=True))], "whole", (), [], id="update protected"
        ),
        pytest.param([Update(declared(), ODD)], "whole", (), [UNKNOWN], id="update unknown fields"),
        pytest.param([Adopt(declared(), ODD)], "whole", (), [UNKNOWN], id="adopt unknown fields"),
        pytest.param([Delete(ODD)], "whole", (), [], id="delete unknown fields"),
        pytest.param(
            [],
            "whole",
            ("The total says 12, the pages hold 11.",),
            [INCOMPLETE],
            id="half a listing",
        ),
        pytest.param(
            [],
            "whole",
            (f"acme holds a toaster: {UPGRADE}",),
            [OF_LATER],
            id="a kind of later",
        ),
        pytest.param(
            [Delete(held(WEB, prevent_delete=True))],
            "part",
            ("The total says 12, the pages hold 11.",),
            [INCOMPLETE, PARTIAL, PROTECTED],
            id="every reason at once",
        ),
    ],
)
def test_an_unsafe_plan_is_blocked_with_its_reason(
    changes: Sequence[Change], whole: str, incomplete: tuple[str, ...], expected: list[Diagnostic]
) -> None:
    """A blocked plan is shown in full, and each reason says how to get on."""
    objects = [*(update.held for update in named(8)), held(GREET), held(SHOP), held(WEB)]
    state = observed(*objects, incomplete=incomplete)

    assert (
        list(blocks(changes, desired(whole=whole == "whole"), state, Scope(), Allowances()))
        == expected
    )


PRUNE = Scope(prune=True)
WEAKER = an_application(authMethodType=NONE)
OTHER = an_application(redirectUris=["https://other.example.com/cb"], clockSkew="1s")
MANY = 99


def allowing(*refs: str, **more: Any) -> Allowances:
    """Return allowances under which only the guards of this file speak."""
    lockouts = {fold(ref): ref for ref in refs}
    return Allowances(**{"updates": MANY, "deletes": MANY, "lockouts": lockouts, **more})


def codes(plan: Plan) -> list[str]:
    return [block.code for block in plan.blocks]


@each_row(
    ("resources", "objects", "expected"),
    [
        pytest.param([declared(WEB, WEAKER)], [held(WEB)], [], id="weakened, and not critical"),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB, critical=True)],
            ["GUARD-CRITICAL"],
            id="weakened",
        ),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB)],
            ["GUARD-CRITICAL"],
            id="weakened by the change that makes it critical",
        ),
        pytest.param(
            [declared(WEB)],
            [held(WEB, critical=True)],
            ["GUARD-CRITICAL"],
            id="no longer declared as critical",
        ),
        pytest.param(
            [declared(WEB, critical=True)], [held(WEB)], [], id="declared as critical from now on"
        ),
        pytest.param(
            [declared(WEB, an_application(clockSkew="1s"), critical=True)],
            [held(WEB, critical=True)],
            [],
            id="changed without a risk",
        ),
        pytest.param(
            [declared(WEB, WEAKER, critical=True)],
            [held(WEB, critical=None)],
            ["GUARD-CRITICAL"],
            id="on a service that remembers nothing",
        ),
        pytest.param([], [held(GREET, critical=True)], ["GUARD-CRITICAL"], id="removed"),
        pytest.param([], [held(GREET)], [], id="removed, and not critical"),
        pytest.param(
            [declared(WEB, an_application(devMode=True), critical=True)], [], [], id="created"
        ),
        pytest.param(
            [declared(PARTNER, a_jwt_config(issuer="https://x.example"), critical=True)],
            [held(PARTNER, critical=True, trees=())],
            ["GUARD-CRITICAL"],
            id="adopted and weakened",
        ),
    ],
)
def test_a_critical_object_is_neither_removed_nor_weakened(
    resources: Sequence[Resource], objects: Sequence[ObservedObject], expected: list[str]
) -> None:
    """People are locked out when it breaks, and it is remembered when its manifest is gone."""
    assert codes(plan_of(resources, objects, PRUNE, allowing())) == expected


def test_the_guard_says_what_is_risky_and_how_to_allow_just_that() -> None:
    """Whoever reads it can copy the flag."""
    ref = a_ref(name="it's web")
    plan = plan_of(
        [declared(ref, WEAKER, critical=True)], [held(ref, critical=True)], PRUNE, allowing()
    )

    (block,) = plan.blocks
    assert (block.summary, block.ref) == ("a critical object would be weakened", ref)
    assert block.remedy == (
        "OidcApplication acme/shop/it's web was declared with metadata.critical; its risks here: "
        "credential-weaker. If that is meant, allow just that: --break-glass "
        "'OidcApplication/acme/shop/it'\"'\"'s web=REASON'."
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("OidcApplication/acme/shop/storefront", []),
        ("oidcapplication/ACME/Shop/STOREFRONT", []),
        ("OidcApplication/acme/shop/other", ["GUARD-CRITICAL"]),
        ("Action/acme/storefront", ["GUARD-CRITICAL"]),
        ("OidcApplication/acme/shop", ["GUARD-CRITICAL"]),
    ],
)
def test_breaking_the_glass_allows_the_object_that_is_named_and_no_other(
    given: str, expected: list[str]
) -> None:
    """There is no flag that allows everything."""
    plan = plan_of(
        [declared(WEB, WEAKER, critical=True)], [held(WEB, critical=True)], PRUNE, allowing(given)
    )

    assert codes(plan) == expected


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        pytest.param({}, "", id="none is given"),
        pytest.param({"portal": "a move"}, "a move", id="by the new name"),
        pytest.param({"storefront": "a move"}, "a move", id="by the old name"),
        pytest.param({"storefront": "old", "portal": "new"}, "new", id="by both"),
        pytest.param({"other": "a move"}, "", id="of another object"),
    ],
)
def test_the_reason_for_breaking_the_glass_is_kept_with_its_object(
    reasons: dict[str, str], told: str
) -> None:
    """The event that is written tells why; of no other object."""
    given = {fold(a_ref(name=name).address): why for name, why in reasons.items()}

    rename = Update(declared(a_ref(name="portal")), held(WEB))
    assert Allowances(reasons=given).reason_for(rename) == told


UNREAD = SourceLocation("other/greet.yaml", 3, 4)
WHOLE = Elsewhere(is_whole=True)


@pytest.mark.parametrize(
    ("elsewhere", "finding"),
    [
        pytest.param(WHOLE, None, id="all manifests were looked at"),
        pytest.param(
            replace(WHOLE, declared={"7": UNREAD}),
            error(
                "GUARD-PARTIAL-TREE",
                "an object would be deleted that another manifest declares",
                f"{GREET} is declared in other/greet.yaml:3:4, which this run did not read. Give "
                "that manifest to this run as well. If it belongs to another tree or service, "
                "leave it or its folder out: --other-tree other/greet.yaml.",
                UNREAD,
                GREET,
            ),
            id="another manifest declares it",
        ),
        pytest.param(
            replace(WHOLE, unreadable=((UNREAD, "is no YAML"),)),
            error(
                "GUARD-PARTIAL-TREE",
                "deletes are planned, and a file that may declare them cannot be read",
                "other/greet.yaml is no YAML. Correct it, or leave it out if it belongs to "
                "another tree or service: --other-tree other/greet.yaml.",
                UNREAD,
            ),
            id="a file cannot be read",
        ),
    ],
)
def test_nothing_is_deleted_that_a_manifest_may_declare_which_was_not_read(
    elsewhere: Elsewhere, finding: Diagnostic | None
) -> None:
    """The rest of the repository is searched, and deletes without it are blocked."""
    wanted = replace(desired(*OWNERS, whole=False), elsewhere=elsewhere)
    deletes = [Delete(held(GREET, object_id="7"))]

    state = observed(*HOUSE, held(GREET, object_id="7"), held(a_ref(ACTION, "stays")))
    assert blocks(deletes, wanted, state, Scope(), Allowances()) == ((finding,) if finding else ())


def test_taking_over_writes_no_field_and_is_not_counted_as_an_update() -> None:
    """It erases nothing that this version does not know. Any other update does."""
    unknown = replace(held(WEB), uncarried=("newField",))
    takes = Adopt(declared(WEB), unknown, new_owner="default")
    writes = Update(declared(WEB, an_application(devMode=True)), unknown)

    assert found(3, [takes]) == []
    assert found(3, [Create(declared(GREET)), takes, writes]) == ["GUARD-UNKNOWN-FIELD"]
    many = [replace(takes, held=held(update.held.ref)) for update in named(9)]
    assert found(10, [replace(each, resource=declared(each.held.ref)) for each in many]) == []


def test_the_glass_can_be_broken_by_the_old_name_of_an_object_that_is_renamed() -> None:
    """Its new name is nowhere yet when somebody reads what is held."""
    new = declared(a_ref(name="new"), WEAKER, critical=True, pinned_id="7")
    before = held(a_ref(name="old"), critical=True, object_id="7")

    blocked = plan_of([new], [before], PRUNE, allowing())
    for name in ("old", "new"):
        named = allowing(f"OidcApplication/acme/shop/{name}")
        assert codes(plan_of([new], [before], PRUNE, named)) == []
    assert codes(blocked) == ["GUARD-CRITICAL"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Delete(held(GREET, object_id="7")), ["GUARD-OWN-ACCESS"]),
        (Update(declared(GREET, an_action(script="x")), held(GREET, object_id="7")),
         ["GUARD-OWN-ACCESS"]),
        (Update(declared(GREET, an_action(timeout="1s")), held(GREET, object_id="7")), []),
        (Delete(held(GREET, object_id="8")), []),
    ],
)  # fmt: skip
def test_what_the_caller_signs_in_with_is_not_pulled_from_under_it(
    change: Delete | Update, expected: list[str]
) -> None:
    """Where the service tells what that is: the run could not be repeated, or undone."""
    resources = [] if isinstance(change, Delete) else [change.resource]
    state = replace(observed(*HOUSE, change.held), caller_objects=frozenset({"7"}))

    plan = build_plan(desired(*OWNERS, *resources), state, PRUNE, allowing())

    assert codes(plan) == expected
    broken = allowing("Action/acme/greet")
    assert codes(build_plan(desired(*OWNERS, *resources), state, PRUNE, broken)) == []


OLD, NEW = a_ref(name="old"), a_ref(name="new")


@each_row(
    ("gone", "made", "expected"),
    [
        pytest.param(held(OLD), declared(NEW), ["GUARD-MADE-ANEW"], id="renamed"),
        pytest.param(
            held(OLD, an_application(redirectUris=[])),
            declared(NEW, an_application(redirectUris=[])),
            ["GUARD-MADE-ANEW"],
            id="renamed, without any redirect URI",
        ),
        pytest.param(
            held(OLD),
            declared(NEW, an_application(devMode=True, clockSkew="1s")),
            ["GUARD-MADE-ANEW"],
            id="renamed and changed",
        ),
        pytest.param(
            held(OLD),
            declared(a_ref(name="Old", project="blog"), OTHER),
            ["GUARD-MADE-ANEW"],
            id="moved to another project",
        ),
        pytest.param(held(OLD), declared(NEW, OTHER), [], id="one goes, another comes"),
        pytest.param(
            held(OLD), declared(a_ref(name="new", project="blog")), [], id="alike in two projects"
        ),
    ],
)
def test_an_application_is_not_deleted_and_made_anew_unawares(
    gone: ObservedObject, made: Resource, expected: list[str]
) -> None:
    """Its client id would change, and whatever is deployed with the old one would stop."""
    blog = declared(project_ref("acme", "blog"))

    plan = plan_of([blog, made], [gone], PRUNE, allowing())

    assert codes(plan) == expected
    for ref in (gone.ref, made.ref):
        assert codes(plan_of([blog, made], [gone], PRUNE, allowing(ref.address))) == []


def test_the_guard_says_how_to_rename_instead() -> None:
    """The id is what makes a rename of it."""
    source = FakeSource("new.yaml", {("metadata", "name"): 7})
    gone = held(OLD, object_id="42", client_id="42@shop")
    (block,) = plan_of([declared(NEW, source=source)], [gone], PRUNE, allowing()).blocks

    assert block.remedy == (
        "OidcApplication acme/shop/old would be deleted and OidcApplication acme/shop/new created "
        "in its place: its client id 42@shop and its secret would end, and whatever is deployed "
        "with them could no longer sign in. To rename it and keep both, write metadata.id: '42' "
        "in the manifest. If that is meant, allow just that: --break-glass "
        "OidcApplication/acme/shop/old=REASON."
    )
    assert (str(block.location), block.ref) == ("new.yaml:7:3", OLD)


def test_the_guards_send_an_id_to_the_overlay_of_the_environment() -> None:
    """In the manifest it would break every other environment."""
    scope = Scope(prune=True, environment="staging")
    clash = held(WEB, object_id="3")
    state = replace(observed(*HOUSE, held(WEB), held(OLD)), name_clashes=(clash,))

    plan = build_plan(desired(*OWNERS, declared(NEW), declared(WEB)), state, scope, allowing())

    assert {*codes(plan)} == {"GUARD-SAME-NAME", "GUARD-MADE-ANEW"}
    for block in plan.blocks:
        assert (
            "in the overlay of environment staging, because each environment has ids of its own."
        ) in block.remedy


def test_nothing_but_applications_is_missed_by_its_id() -> None:
    """An action that is renamed by its name alone is made anew, and that is all there is to it."""
    plan = plan_of([declared(a_ref(GREET.kind, "new"))], [held(GREET)], PRUNE, allowing())

    assert codes(plan) == []


def test_no_adopt_leaves_what_others_made_as_it_is() -> None:
    """One finding for each object, at the place of its manifest."""
    objects = [held(WEB, trees=()), held(GREET, trees=("other",)), held(PARTNER, trees=())]
    resources = [
        declared(WEB, OTHER),
        declared(GREET, an_action(timeout="1s"), source=FakeSource("greet.yaml")),
        declared(PARTNER),
    ]

    plan = plan_of(resources, objects, PRUNE, allowing(adopt=False))

    assert codes(plan) == ["GUARD-ADOPT", "GUARD-ADOPT"]
    assert plan.summary.adopt == 2
    assert plan.blocks[0] == Diagnostic(
        plan.blocks[0].severity,
        "GUARD-ADOPT",
        "an object would be adopted",
        "Action acme/greet (id act--greet) was never applied by this tree, and --no-adopt says to "
        "leave such objects as they are. To adopt it, leave --no-adopt out; otherwise take its "
        "manifest out.",
        FakeSource("greet.yaml").place("metadata", "name"),
        GREET,
    )
    assert codes(plan_of(resources, objects, PRUNE, allowing())) == []


FIRST, SECOND = held(WEB, object_id="1"), held(a_ref(name="STOREFRONT"), OTHER, object_id="2")


def plan_with_doubles(*resources: Resource, scope: Scope = PRUNE) -> Plan:
    state = replace(observed(*HOUSE, FIRST), name_clashes=(SECOND,))
    return build_plan(desired(*OWNERS, *resources), state, scope, allowing())


def test_two_objects_of_one_name_stop_with_both_ids() -> None:
    """Nobody can say which of them the manifest means."""
    (block,) = plan_with_doubles(declared(WEB), scope=Scope()).blocks

    assert (block.code, block.ref) == ("GUARD-SAME-NAME", WEB)
    assert block.remedy == (
        "OidcApplication acme/shop/storefront could be id 1 or id 2. Write the one that is meant "
        "as metadata.id in the manifest."
    )


@pytest.mark.parametrize("pinned", ["1", "2"])
def test_an_id_says_which_of_two_objects_is_meant(pinned: str) -> None:
    """The other is declared nowhere, and left alone."""
    name = "storefront" if pinned == "1" else "STOREFRONT"
    said = None if pinned == "1" else OTHER
    plan = plan_with_doubles(declared(a_ref(name=name), said, pinned_id=pinned), scope=Scope())

    assert (plan.blocks, plan.changes) == ((), ())
    assert [found.ref.name for found in plan.unmanaged] == [
        "STOREFRONT" if pinned == "1" else "storefront"
    ]


def test_two_objects_of_one_name_that_nobody_declares_stop_nothing() -> None:
    """They are listed as what they are."""
    plan = plan_with_doubles(scope=Scope())

    assert (plan.blocks, len(plan.unmanaged)) == ((), 2)


def test_both_of_one_name_are_deleted_each_by_its_own_id() -> None:
    """What is to go goes, whatever it is called."""
    plan = plan_with_doubles()

    assert {change.held.id for change in plan.changes if isinstance(change, Delete)} == {"1", "2"}


ALL = Scope(prune=True, prune_unmanaged=True)
CONSOLE = replace(held(WEB, an_application()), project_id="own")
OWN = replace(observed(held(SHOP, object_id="own"), CONSOLE, *HOUSE[:1]), own_project="own")


@pytest.mark.parametrize("scope", [Scope(), ALL])
def test_it_is_neither_deleted_nor_unmanaged(scope: Scope) -> None:
    """Whatever flag deletes."""
    plan = build_plan(desired(*OWNERS[:1]), OWN, scope)

    assert (plan.changes, plan.unmanaged, plan.blocks) == ((), (), ())


def test_what_a_manifest_declares_of_it_is_updated() -> None:
    """It was asked for by name."""
    plan = build_plan(desired(*OWNERS, declared(WEB, an_application(devMode=True))), OWN)

    assert len(plan.changes) == 1


def test_another_object_cannot_take_a_name_of_it() -> None:
    """It stays, and so does its name."""
    assert OWN.is_own(OWN.objects[WEB.key])
    assert not OWN.is_own(held(a_ref(Kind.ACTION, "greet")))
    assert not observed(CONSOLE).is_own(CONSOLE)


def test_while_it_is_not_known_no_application_is_deleted() -> None:
    """The warning says why, and other deletes go on."""
    action = held(a_ref(Kind.ACTION, "old"))
    some = replace(observed(*HOUSE, held(WEB), action), unidentified="It refused: no.")
    others = replace(some, objects=observed(*HOUSE, action).objects)

    (told,) = unidentified(some)
    assert told.code == "SERVICE-NOT-IDENTIFIED"
    assert list(unidentified(OWN)) == []
    blocking = [
        [each for each in build_plan(desired(*OWNERS), state, ALL).blocks if "OWN" in each.code]
        for state in (some, others)
    ]
    assert blocking == [
        [
            error(
                "GUARD-OWN-PROJECT",
                "applications would be deleted, and one may be that of the service's own console",
                f"The service does not report which project is its own, so {WEB} may be of it. "
                f"{LET_THROUGH}, or leave out the flag that deletes.",
                ref=WEB,
            )
        ],
        [],
    ]
