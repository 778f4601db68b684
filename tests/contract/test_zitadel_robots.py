"""Robots of a ZITADEL: a run works for the user of a token, or names the role that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from reconciler.errors import AccessDeniedError, ServiceError
from reconciler.plan.model import Create
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, Written
from reconciler.service_client.zitadel.client import ZitadelClient
from tests.builders import a_ref, an_action, an_application, declared, desired
from tests.fault_proxy import fault_proxy
from tests.http_clients import plan_with, zitadel_client
from tests.listening import listening
from tests.zitadel.roles import Membership, User
from tests.zitadel.stand_in import IAM, NEWEST, OLDER, OLDEST, STRANGER, FakeZitadel

GENERATIONS = (NEWEST, OLDER)
ROBOT = "token-robot"
READERS = (
    ("ORG_OWNER", "acme"),
    ("ORG_OWNER", "elsewhere"),
    ("ORG_OWNER_VIEWER", "elsewhere"),
    ("IAM_OWNER", "elsewhere"),
    ("IAM_ORG_MANAGER", "elsewhere"),
)
GREET = a_ref(Kind.ACTION, "greet")
NEW = a_ref(Kind.ORGANIZATION, organization="initech")


@pytest.fixture(params=GENERATIONS)
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a server of each generation, with the organization acme and its project shop."""
    return house(request.param)


def house(version: str) -> FakeZitadel:
    fake = FakeZitadel(version=version)
    fake.put("projects", name="shop")
    fake.put("actions", name="greet", **an_action())
    return fake


def give(fake: FakeZitadel, role: str, place: str = "", *, home: str = "elsewhere") -> None:
    """Make the robot a user with one role: of the instance, or at a place."""
    (lives,) = fake.named("orgs", home)
    fake.users[ROBOT] = User(lives["id"], (Membership(role, place),))


@contextmanager
def opened(fake: FakeZitadel, folder: Path, token: str = ROBOT) -> Iterator[ZitadelClient]:
    with listening(fake.app()) as address, zitadel_client(address, token, folder) as client:
        yield client


def test_who_may_read_an_organization_sees_it_wherever_it_lives(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """One request finds it, and a plan of what is there is empty."""
    declares = desired(
        declared(a_ref(Kind.ORGANIZATION, organization="acme")), declared(GREET, an_action())
    )
    seen: dict[tuple[str, str], object] = {}
    with listening(fake.app()) as address:
        for role, home in READERS:
            give(fake, role, fake.organization if role.startswith("ORG_") else "", home=home)
            with zitadel_client(address, ROBOT, tmp_path) as client:
                plan = plan_with(client, declares)
                seen[role, home] = (plan.changes, plan.blocks, client.organizations())

    all_of_them = ["acme", "elsewhere"]
    assert seen == {
        (role, home): ((), (), ["acme"] if role.startswith("ORG_") else all_of_them)
        for role, home in READERS
    }
    assert fake.calls["ListOrganizations"] == 2 * len(READERS)
    assert not {"ListOrgs", "GetMyOrg", "ListMyMemberships"} & fake.calls.keys()


def test_who_manages_the_instance_creates_what_is_absent(fake: FakeZitadel, tmp_path: Path) -> None:
    """A role of the instance sees every organization, so an absent one does not exist."""
    give(fake, "IAM_ORG_MANAGER")
    with opened(fake, tmp_path) as client:
        plans = [plan_with(client, desired(declared(NEW))) for _ in range(2)]

    assert [[type(change) for change in plan.changes] for plan in plans] == [[Create]] * 2
    assert fake.calls["ListMyMemberships"] == 1


@pytest.mark.parametrize("place", ["organization", "acts for users"])
def test_an_absent_organization_is_not_planned_where_it_may_be_hidden(
    fake: FakeZitadel, tmp_path: Path, place: str
) -> None:
    """To see it takes a role there; to make it, one of the instance."""
    if place == "organization":
        give(fake, "ORG_OWNER", fake.organization)
    else:
        give(fake, "IAM_END_USER_IMPERSONATOR")
    with opened(fake, tmp_path) as client, pytest.raises(AccessDeniedError) as told:
        plan_with(client, desired(declared(NEW)))

    assert told.value.problem == "cannot say whether initech exists with this token"
    assert "ORG_OWNER of the organization initech" in told.value.remedy
    assert "IAM_ORG_MANAGER or IAM_OWNER of the instance" in told.value.remedy


def test_an_owner_of_a_project_is_told_which_role_is_missing(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """The total of the list counts the organization that it leaves out."""
    give(fake, "PROJECT_OWNER", fake.named("projects", "shop")[0]["id"], home="acme")
    with opened(fake, tmp_path) as client:
        with pytest.raises(AccessDeniedError) as named:
            client.observe(["acme"])
        with pytest.raises(AccessDeniedError) as any_other:
            client.organizations()

    assert named.value.problem == "the organization acme exists, and this token may not read it"
    for told in (named.value, any_other.value):
        assert "PROJECT_OWNER of the project shop" in told.remedy
        assert "Give the user of this token ORG_OWNER of the organization" in told.remedy
        assert "Managers" in told.remedy


def test_who_has_no_role_is_told_so(fake: FakeZitadel, tmp_path: Path) -> None:
    """A token that is valid and may do nothing."""
    with opened(fake, tmp_path, STRANGER) as client, pytest.raises(AccessDeniedError) as told:
        client.observe(["acme"])

    assert "Its user has no role." in told.value.remedy


def test_a_list_that_a_role_does_not_read_names_the_one_that_does(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """A role may see the organization, and not all that it holds."""
    give(fake, "ORG_SETTINGS_MANAGER", fake.organization)
    with opened(fake, tmp_path) as client, pytest.raises(AccessDeniedError) as told:
        client.observe(["acme"])

    assert "ORG_OWNER of the organization acme" in told.value.remedy


def test_a_refused_write_names_the_role_that_may(fake: FakeZitadel, tmp_path: Path) -> None:
    """An owner of an organization may create applications, and not delete them."""
    project = fake.named("projects", "shop")[0]["id"]
    fake.put("apps", name="web", project=project, oidcConfig={"clientId": "7", **an_application()})
    give(fake, "ORG_OWNER", fake.organization)
    with opened(fake, tmp_path) as client:
        web = client.observe(["acme"]).objects[a_ref(name="web").key]
        orders: list[Order] = [DeleteOrder(web), CreateOrder(declared(NEW))]
        refusals = client.write(orders, {})
    give(fake, "ORG_OWNER_VIEWER", fake.organization)
    with opened(fake, tmp_path) as client:
        later = CreateOrder(declared(a_ref(Kind.ACTION, "b"), an_action()), fake.organization)
        refusals = [*refusals, *client.write([later], {})]

    remedies = [each.remedy for each in refusals if isinstance(each, AccessDeniedError)]
    assert "PROJECT_OWNER of the project shop" in remedies[0]
    assert "IAM_ORG_MANAGER or IAM_OWNER of the instance" in remedies[1]
    assert "ORG_OWNER of the organization acme" in remedies[2]


def test_pages_are_counted_by_their_places(fake: FakeZitadel, tmp_path: Path) -> None:
    """A page may be empty although more come: rights are looked at after it was cut."""
    for name in "bcd":
        last = fake.put("orgs", name=name)["id"]
    if fake.refuses_large_pages:
        fake.page_limit = 2
    give(fake, "ORG_OWNER", last)
    with opened(fake, tmp_path) as client:
        assert client.organizations() == ["d"]


def test_a_removed_organization_is_absent(fake: FakeZitadel, tmp_path: Path) -> None:
    """The list may go on showing it."""
    fake.put("orgs", name="initech", state="ORG_STATE_REMOVED")
    with opened(fake, tmp_path, IAM) as client:
        plan = plan_with(client, desired(declared(NEW)))
        names = client.organizations()

    assert [type(change) for change in plan.changes] == [Create]
    assert "initech" not in names


def test_where_roles_cannot_be_asked_for_the_list_of_the_instance_tells(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """Whoever may read that one sees everything."""
    fake.strays["ListMyMemberships"] = [JSONResponse({}, 404)]
    with opened(fake, tmp_path, IAM) as client:
        plan = plan_with(client, desired(declared(NEW)))

    assert [type(change) for change in plan.changes] == [Create]


@pytest.mark.parametrize(
    "refusal",
    [
        JSONResponse({"code": 7, "message": "No matching permissions found (AUTH-5mWD2)"}, 403),
        PlainTextResponse("default backend - 404", 404),
    ],
    ids=["needs a role of the instance", "not let through"],
)
def test_a_list_that_is_refused_is_replaced_by_the_old_ways(
    fake: FakeZitadel, tmp_path: Path, refusal: Response
) -> None:
    """The old list says the same; whoever may not read it gets no further than today."""
    fake.strays["ListOrganizations"] = [refusal]
    with opened(fake, tmp_path, IAM) as client:
        for _ in range(2):
            assert GREET.key in client.observe(["acme"]).objects

    assert (fake.calls["ListOrgs"], fake.calls.get("ListOrganizations")) == (2, None)


@pytest.mark.parametrize(("version", "role"), [(NEWEST, "IAM_ORG_MANAGER"), (OLDEST, "IAM_OWNER")])
def test_an_organization_whose_answer_is_lost_is_made_once(
    tmp_path: Path, version: str, role: str
) -> None:
    """It is looked for with the list that the user may read."""
    fake = house(version)
    give(fake, role)
    left = iter(["reset after"])

    def choose(first: bytes) -> str:
        return next(left, "") if first.startswith(b"POST /management/v1/orgs ") else ""

    with (
        listening(fake.app()) as address,
        fault_proxy(address, choose) as proxy,
        zitadel_client(proxy.address, ROBOT, tmp_path) as client,
    ):
        (made,) = client.write([CreateOrder(declared(NEW))], {})

    assert isinstance(made, Written), made
    assert [item["id"] for item in fake.named("orgs", "initech")] == [made.id]


def test_a_list_that_was_answered_does_not_become_an_old_way(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """A stray refusal is an error of the run."""
    with opened(fake, tmp_path, IAM) as client:
        client.observe(["acme"])
        fake.strays["ListOrganizations"] = [JSONResponse({}, 404)]
        with pytest.raises(ServiceError):
            client.observe(["acme"])

    assert "ListOrgs" not in fake.calls


@pytest.mark.parametrize(
    ("role", "calls"), [("IAM_OWNER", {"ListOrgs": 2}), ("ORG_OWNER", {"GetMyOrg": 2})]
)
def test_an_old_server_is_asked_in_the_old_ways(
    tmp_path: Path, role: str, calls: dict[str, int]
) -> None:
    """What it does not have is found out once."""
    fake = house(OLDEST)
    give(fake, role, "" if role == "IAM_OWNER" else fake.organization, home="acme")
    with opened(fake, tmp_path) as client:
        for _ in range(2):
            assert GREET.key in client.observe(["acme"]).objects

    assert {name: fake.calls.get(name) for name in calls} == calls
    templates = 2
    assert fake.unknown == 1 + templates


def test_a_robot_that_lives_elsewhere_is_found_a_home_on_an_old_server(tmp_path: Path) -> None:
    """Its roles name the organizations that it may read."""
    fake = house(OLDEST)
    give(fake, "ORG_OWNER", fake.organization)
    with opened(fake, tmp_path) as client:
        state = client.observe(["acme", "initech"])
        names = client.organizations()

    assert GREET.key in state.objects
    assert state.unseen == ("initech",)
    assert "ORG_OWNER of the organization initech" in state.missing_role
    assert names == ["acme"]


@pytest.mark.parametrize("role", ["", "PROJECT_OWNER"])
def test_who_reads_nothing_is_told_on_an_old_server(tmp_path: Path, role: str) -> None:
    """That server counts nothing for it."""
    fake = house(OLDEST)
    give(fake, "PROJECT_OWNER", fake.named("projects", "shop")[0]["id"], home="acme")
    with opened(fake, tmp_path, ROBOT if role else STRANGER) as client:
        for ask in (lambda: client.observe(["acme"]), client.organizations):
            with pytest.raises(AccessDeniedError, match="may read no organization"):
                ask()
