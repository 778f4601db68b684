"""The client for a ZITADEL, held to the facts about one: its surprises, and what it has not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.apply.changes import Status
from reconciler.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    LockHeldError,
    PreconditionFailedError,
    ServiceError,
)
from reconciler.kinds.zitadel import ZITADEL
from reconciler.plan.model import Adopt, Scope
from reconciler.resources.ref import Kind
from reconciler.service_client.port import (
    CreateOrder,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from tests.builders import (
    BASIC,
    a_jwt_config,
    a_public_application,
    a_ref,
    an_action,
    an_application,
    declared,
    desired,
)
from tests.builders import held as held_object
from tests.fault_proxy import at_random, fault_proxy
from tests.http_clients import apply_with, http_client, plan_with, zitadel_client
from tests.listening import listening
from tests.zitadel.stand_in import GENERATIONS, IAM, MEMBER, FakeZitadel

WEB, GREET = a_ref(), a_ref(Kind.ACTION, "greet")
PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")
HOUSE = desired(
    declared(WEB, an_application(clockSkew="1.5s", devMode=True)),
    declared(GREET, an_action(timeout="3s")),
    declared(PARTNER),
)


@pytest.fixture(params=GENERATIONS)
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a service of each generation, with the organization acme and its project shop."""
    fake = FakeZitadel(version=request.param)
    fake.put("projects", name="shop")
    return fake


@pytest.fixture
def address(fake: FakeZitadel) -> Iterator[str]:
    """Serve the fake."""
    with listening(fake.app()) as address:
        yield address


@pytest.fixture
def client(address: str, tmp_path: Path) -> Iterator[ZitadelClient]:
    """Open a client that may do everything."""
    with zitadel_client(address, IAM, tmp_path) as client:
        yield client


def project_of(fake: FakeZitadel) -> str:
    return str(fake.named("projects", "shop")[0]["id"])


def an_app(fake: FakeZitadel, name: str = "storefront", **config: Any) -> dict[str, Any]:
    """Hold an application as somebody made it by hand."""
    config = {"clientId": "77", **an_application(), **config}
    return fake.put("apps", name=name, project=project_of(fake), oidcConfig=config)


def test_a_service_without_our_addresses_is_known_for_one(address: str) -> None:
    """Nobody has to say which kind it is."""
    with http_client(address, IAM, kind="auto") as client:
        assert isinstance(client, ZitadelClient)
        assert client.observe(["acme"]).instance == "zitadel-277"


def test_only_lists_are_read_and_each_once_a_page(client: ZitadelClient, fake: FakeZitadel) -> None:
    """A thousand objects are not a thousand requests."""
    for index in range(1, 1203):
        fake.put("actions", name=f"a{index}", script="s", timeout="20s")

    state = client.observe(["acme"], flows=False)

    assert len(state.objects) == 1 + 1 + 1202
    lists = {row.lists: 1 for row in ZITADEL.values() if row.lists}
    assert fake.calls == {**lists, "GetIAM": 1, "ListActions": 3}


def test_what_belongs_to_the_whole_instance_is_not_observed(client: ZitadelClient) -> None:
    """Its lists show identity providers of the instance as well."""
    assert {held.ref.name for held in client.observe(["acme"]).objects.values()} == {"acme", "shop"}


@pytest.mark.parametrize("has_slugs", [False, True], ids=["ids", "slugs"])
def test_an_update_that_changes_nothing_is_a_success(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path, *, has_slugs: bool
) -> None:
    """There it is an error with an id of its own; other refused preconditions stay errors."""
    apply_with(client, HOUSE, tmp_path)
    held = client.observe(["acme"]).objects
    fake.has_slugs = has_slugs
    orders = [
        UpdateOrder(HOUSE.resources[ref.key], replace(held[ref.key], spec={}))
        for ref in (WEB, GREET, PARTNER)
    ]

    results = client.write(orders, {})

    assert all(isinstance(result, Written) for result in results), results
    created = client.write([CreateOrder(declared(WEB), fake.organization, "12345")], {})
    assert isinstance(created[0], PreconditionFailedError), "the project is missing"


def test_fields_that_are_not_known_here_survive_an_update(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """An update is full: what is not sent back would be reset."""
    carried: dict[str, Any] = {
        "backChannelLogoutUri": "https://shop.example.com/out",
        "loginVersion": {"loginV2": {"baseUri": "https://login.example.com"}},
    }
    app = an_app(fake, **carried)
    idp = fake.put_old_provider(
        "partner", stylingType="STYLING_TYPE_GOOGLE", autoRegister=True,
        **a_jwt_config(issuer="https://old.example.com"),
    )  # fmt: skip
    renamed = replace(declared(a_ref(Kind.IDP_JWT_CONFIG, "ally")), pinned_id=idp["id"])

    report = apply_with(
        client, desired(declared(WEB, an_application(devMode=True)), renamed), tmp_path
    )

    assert report.remaining == 0
    held = fake.held["apps"][app["id"]]["oidcConfig"]
    assert held["devMode"] is True
    assert {name: held[name] for name in carried} == carried
    ally = fake.held["idps"][idp["id"]]
    assert (ally["name"], ally["config"]["options"]) == (
        "ally", {"isLinkingAllowed": True, "isCreationAllowed": True, "isAutoCreation": True},
    )  # fmt: skip
    assert a_jwt_config().items() <= ally["config"]["jwt"].items()


@pytest.mark.parametrize(
    ("strange", "named"),
    [
        ({"apiConfig": {"clientId": "7"}}, "holds the configuration of an API application"),
        ({"samlConfig": {"metadataUrl": "https://sp.example.com"}}, "a SAML application"),
    ],
    ids=["of an API", "of SAML"],
)  # fmt: skip
def test_an_application_that_no_manifest_can_say_is_never_touched(
    client: ZitadelClient, fake: FakeZitadel, strange: dict[str, Any], named: str
) -> None:
    """Not by pruning, and not by a manifest of the same name."""
    fake.put("apps", name="storefront", project=project_of(fake), **strange)

    unmanaged = plan_with(client, desired(organizations=["acme"]), Scope(prune_unmanaged=True))
    same_name = plan_with(client, desired(declared(WEB)))

    assert unmanaged.changes == ()
    assert WEB in [found.ref for found in unmanaged.unmanaged]
    assert [type(change) for change in same_name.changes] == [Adopt]
    (block,) = same_name.blocks
    assert block.code == "GUARD-UNKNOWN-FIELD"
    assert named in block.remedy


def test_a_run_waits_until_lists_show_what_it_wrote(
    fake: FakeZitadel, address: str, tmp_path: Path
) -> None:
    """Otherwise it would report its own work as missing."""
    fake.lag = 0.3
    with zitadel_client(address, IAM, tmp_path) as client:
        report = apply_with(client, HOUSE, tmp_path)
        assert report.remaining == 0
        changed = desired(declared(WEB, an_application(devMode=False)))
        assert apply_with(client, changed, tmp_path).remaining == 0
        pruned = apply_with(
            client, desired(organizations=["acme"]), tmp_path, Scope(prune_unmanaged=True)
        )
        assert pruned.remaining == 0


def test_lists_that_never_show_it_block_the_next_plan(
    fake: FakeZitadel, address: str, tmp_path: Path
) -> None:
    """Nobody knows what such a list would leave out next."""
    fake.lag = 1000
    patience = ListDelays(settling=0.01, step=0.01, longest=0.05)
    with zitadel_client(address, IAM, tmp_path, patience) as client:
        order = CreateOrder(declared(GREET), fake.organization)
        client.write([order], {})
        (block,) = plan_with(client, desired(declared(GREET))).blocks

    assert block.code == "GUARD-INCOMPLETE-READ"


@pytest.mark.parametrize("is_unique", [True, False], ids=["unique names", "any names"])
def test_answers_that_are_lost_make_no_duplicates_and_replace_no_secret(
    tmp_path: Path, *, is_unique: bool
) -> None:
    """Many creates, two of five of them with an answer that is lost or garbled."""
    fake = FakeZitadel(lag=0.02, is_unique=is_unique)
    project = fake.put("projects", name="shop")["id"]
    refs = [a_ref(name=f"app{i}") for i in range(75)]
    refs += [a_ref(Kind.ACTION, f"action{i}") for i in range(175)]
    fake.things.catch_up(float("inf"))
    choose = at_random(7, 0.4, once_only=True)
    patience = ListDelays(settling=0.15, step=0.05, longest=3)
    with (
        listening(fake.app()) as address,
        fault_proxy(address, choose) as proxy,
        zitadel_client(proxy.address, IAM, tmp_path, patience) as client,
    ):
        orders = [CreateOrder(declared(ref), fake.organization, project) for ref in refs]
        results = [
            result
            for start in range(0, len(orders), 125)
            for result in client.write(orders[start : start + 125], {})
        ]
    made = [result for result in results if isinstance(result, Written)]
    secrets = {one.id: one.client_secret.reveal() for one in made if one.client_secret}

    assert len(made) == len(orders), [r for r in results if not isinstance(r, Written)][:3]
    assert sum(proxy.done.values()) - proxy.done[""] > 75
    assert len(fake.held["apps"]) == 75
    assert len(fake.held["actions"]) == 175
    assert 0 < len(secrets) < 75  # a lost answer is the only one with its secret
    assert secrets.items() < fake.secrets.items()
    assert fake.replaced == 0


def test_somebody_elses_object_of_the_name_is_not_taken_over(
    fake: FakeZitadel, tmp_path: Path
) -> None:
    """Its secret would be replaced under whoever uses it."""
    an_app(fake, devMode=True)
    with (
        listening(fake.app()) as address,
        fault_proxy(
            address, lambda first: "reset before" if b"apps/oidc" in first else ""
        ) as proxy,
        zitadel_client(proxy.address, IAM, tmp_path) as client,
    ):
        order = CreateOrder(declared(WEB), fake.organization, project_of(fake))
        (refused,) = client.write([order], {})

    assert isinstance(refused, AlreadyExistsError)
    assert fake.secrets == {}


def test_updates_and_deletes_whose_answers_are_lost_are_done_once(
    client: ZitadelClient, fake: FakeZitadel, address: str, tmp_path: Path
) -> None:
    """Doing them again is the same; what they meet then is no failure."""
    apply_with(client, HOUSE, tmp_path)
    changed = desired(
        declared(WEB, a_public_application()),
        declared(GREET, an_action(timeout="4s")),
        declared(PARTNER, a_jwt_config(issuer="https://new.example.com")),
    )
    dice = random.Random(3)

    def choose(first: bytes) -> str:
        return "reset after" if first[:3] in {b"PUT", b"DEL"} and dice.random() < 0.5 else ""

    with (
        fault_proxy(address, choose) as proxy,
        zitadel_client(proxy.address, IAM, tmp_path) as harmed,
    ):
        assert apply_with(harmed, changed, tmp_path).remaining == 0
        gone = apply_with(
            harmed, desired(organizations=["acme"]), tmp_path, Scope(prune_unmanaged=True)
        )

    assert gone.remaining == 0
    assert {outcome.status for outcome in gone.outcomes} == {Status.MADE}


def test_a_lost_secret_is_replaced_until_one_arrives(fake: FakeZitadel, tmp_path: Path) -> None:
    """The one that is delivered is the one that counts."""
    app = an_app(fake, authMethodType=BASIC)
    left = iter(["reset after", "half an answer", "garbage"])
    with (
        listening(fake.app()) as address,
        fault_proxy(address, lambda first: next(left, "") if b"secret" in first else "") as proxy,
        zitadel_client(proxy.address, IAM, tmp_path) as client,
    ):
        order = SecretOrder(
            held_object(
                WEB,
                object_id=app["id"],
                organization_id=fake.organization,
                project_id=project_of(fake),
                client_id="77",
            )
        )
        (result,) = client.write([order], {})

    assert isinstance(result, Written)
    assert result.client_secret is not None
    assert fake.secrets[app["id"]] == result.client_secret.reveal()


def test_who_may_not_list_organizations_works_in_its_own(
    fake: FakeZitadel, address: str, tmp_path: Path
) -> None:
    """A robot of one organization needs no right over the whole instance."""
    with zitadel_client(address, MEMBER, tmp_path) as client:
        assert apply_with(client, HOUSE, tmp_path).remaining == 0
        assert client.organizations() == ["acme"]
        assert client.observe(["acme", "initech"]).unseen == ("initech",)
        with pytest.raises(AccessDeniedError, match="whether initech exists with this token"):
            plan_with(client, desired(organizations=["initech"]))


def test_lists_that_contradict_their_totals_block_the_plan(
    client: ZitadelClient, fake: FakeZitadel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object that is missing from a list would be made a second time."""
    page = FakeZitadel._page

    def short(self: FakeZitadel, items: list[Any], query: dict[str, Any]) -> dict[str, Any]:
        answer = page(self, items, query)
        return {**answer, "result": answer["result"][1:]} if len(items) > 1 else answer

    for name in ("a", "b", "c"):
        fake.put("actions", name=name, script="s", timeout="20s")
    monkeypatch.setattr(FakeZitadel, "_page", short)

    blocks = plan_with(client, desired(organizations=["acme"])).blocks

    assert [block.code for block in blocks] == ["GUARD-INCOMPLETE-READ"]


def test_two_runs_of_one_machine_exclude_each_other(address: str, tmp_path: Path) -> None:
    """The service has no leases, so a file that the kernel locks must do."""
    with (
        zitadel_client(address, IAM, tmp_path) as first,
        zitadel_client(address, IAM, tmp_path) as second,
    ):
        first.acquire(["acme"])
        first.renew()
        with pytest.raises(LockHeldError, match="process"):
            second.acquire(["acme"])
        first.release()
        second.acquire(["acme"])
        second.release()


def test_it_has_no_history_to_tell(client: ZitadelClient) -> None:
    """Who changed what can be asked of our own service only."""
    for ask in (lambda: client.histories(["1"]), lambda: client.removals("1")):
        with pytest.raises(ServiceError, match="history"):
            ask()
