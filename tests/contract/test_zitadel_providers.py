"""JWT providers of a ZITADEL: two families of calls for the same objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from reconciler.errors import AlreadyExistsError, ServiceError
from reconciler.plan.model import Adopt, Create, Plan, Scope
from reconciler.resources.ref import Kind
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, UpdateOrder, Written
from reconciler.service_client.zitadel.client import ListDelays, ZitadelClient
from tests.builders import a_jwt_config, a_ref, declared, desired
from tests.fault_proxy import fault_proxy
from tests.http_clients import apply_with, plan_with, zitadel_client
from tests.listening import listening
from tests.zitadel.stand_in import IAM, OLDER, OLDEST, FakeZitadel

PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")
TREE = desired(declared(PARTNER))
ATTACKER = {"issuer": "https://evil.example.com", "keysEndpoint": "https://evil.example.com/keys"}
OPTIONS = {
    "isLinkingAllowed": True,
    "isAutoUpdate": True,
    "autoLinking": "AUTO_LINKING_OPTION_EMAIL",
}


@pytest.fixture(params=["4.x", "3.x"])
def fake(request: pytest.FixtureRequest) -> FakeZitadel:
    """Return a service of each generation that has template calls."""
    return FakeZitadel(version=OLDER) if request.param == "3.x" else FakeZitadel()


@pytest.fixture
def client(fake: FakeZitadel, tmp_path: Path) -> Iterator[ZitadelClient]:
    """Open a client that may do everything."""
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        yield client


def fields_of(plan: Plan) -> list[tuple[type, str, Any]]:
    """Return type, name and id of each change."""
    held = [getattr(change, "held", None) for change in plan.changes]
    return [
        (type(change), change.resource.ref.name, each and each.id)
        for change, each in zip(plan.changes, held, strict=True)
        if isinstance(change, Create | Adopt)
    ]


def by_console(fake: FakeZitadel, object_id: str, **fields: Any) -> None:
    """Change a provider as the console does."""
    item = fake.held["idps"][object_id]
    sent = {**item["config"]["jwt"], "providerOptions": item["config"]["options"], **fields}
    fake.providers.update({"name": item["name"], **sent, "id": object_id}, fake.organization)


def assert_present_list_is_read(fake: FakeZitadel) -> None:
    """Check that the old list is read once beside it, for the states, and not in its place."""
    assert fake.calls["ListProviders"] == fake.calls["ListOrgIDPs"] == 1


def test_what_the_console_changes_and_deletes_is_planned(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """An attacker's issuer and keys, written with the console's calls, do not stay unseen."""
    held = fake.put_old_provider("partner", **a_jwt_config())
    assert plan_with(client, TREE).changes == ()

    by_console(fake, held["id"], **ATTACKER)

    assert fields_of(plan_with(client, TREE)) == [(Adopt, "partner", held["id"])]
    assert apply_with(client, TREE, tmp_path).remaining == 0
    assert a_jwt_config().items() <= fake.held["idps"][held["id"]]["config"]["jwt"].items()
    assert fake.held["oldIdps"][held["id"]]["jwtConfig"] == a_jwt_config()

    fake.providers.remove({"id": held["id"]}, fake.organization)

    assert held["id"] in fake.held["oldIdps"], "the old list goes on showing it"
    assert fields_of(plan_with(client, TREE)) == [(Create, "partner", None)]


def test_what_the_console_made_is_found_and_not_made_twice(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """Its options are not part of a manifest, and an update sends them back."""
    held = fake.put_provider("partner", **a_jwt_config(issuer="i"), providerOptions=OPTIONS)

    report = apply_with(client, TREE, tmp_path)

    assert report.remaining == 0
    (kept,) = fake.named("idps", "partner")
    assert (kept["id"], kept["config"]["options"]) == (held["id"], OPTIONS)
    pruned = apply_with(
        client, desired(organizations=["acme"]), tmp_path, Scope(prune_unmanaged=True)
    )
    assert pruned.remaining == 0
    assert fake.named("idps", "partner") == []


def test_a_new_provider_lets_users_log_in_as_one_of_the_old_calls_did(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """Without options nobody could be linked to it or made from it."""
    assert apply_with(client, TREE, tmp_path).remaining == 0

    (made,) = fake.named("idps", "partner")
    assert made["config"]["options"] == {"isLinkingAllowed": True, "isCreationAllowed": True}
    assert fake.named("oldIdps", "partner") == []


def test_a_server_without_template_calls_is_found_out_once(tmp_path: Path) -> None:
    """It gets the old calls: for lists, creates, updates, renames and deletes."""
    fake = FakeZitadel(version=OLDEST)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        assert apply_with(client, TREE, tmp_path).remaining == 0
        (made,) = fake.named("oldIdps", "partner")
        ally = replace(
            declared(a_ref(Kind.IDP_JWT_CONFIG, "ally"), a_jwt_config(issuer="i")),
            pinned_id=made["id"],
        )
        assert apply_with(client, desired(ally), tmp_path).remaining == 0
        assert (made["name"], made["jwtConfig"]["issuer"]) == ("ally", "i")
        nothing = desired(organizations=["acme"])
        assert apply_with(client, nothing, tmp_path, Scope(prune_unmanaged=True)).remaining == 0

    assert fake.named("oldIdps", "ally") == []
    organizations = 1  # their present list, which is not asked about again
    assert fake.unknown == organizations + 2, "the first refusal is asked about once more"
    assert not {"AddJWTProvider", "UpdateJWTProvider", "ListProviders"} & fake.calls.keys()


def a_create(fake: FakeZitadel) -> CreateOrder:
    """Return the order that makes the provider."""
    return CreateOrder(declared(PARTNER), fake.organization)


UNKNOWN_ADDRESS = {"code": 5, "message": "Not Found"}
SLUG = {"@type": "type.googleapis.com/zitadel.error.v2.ErrorDetail", "slug": "org.not_found"}


@pytest.mark.parametrize(
    "stray",
    [
        PlainTextResponse("default backend - 404", 404),
        PlainTextResponse("method not allowed", 405),
        PlainTextResponse("not implemented", 501),
        JSONResponse({"message": "Not Found"}, 404),
        JSONResponse({"code": 404, "message": "Not Found"}, 404),
        JSONResponse({**UNKNOWN_ADDRESS, "details": [SLUG]}, 404),
    ],
    ids=["404", "405", "501", "no code", "code of HTTP", "slug"],
)
def test_a_stray_refusal_ends_the_run_and_tells_no_age(stray: Response, tmp_path: Path) -> None:
    """The answer of a proxy says nothing of the calls that the server has."""
    fake = FakeZitadel()
    fake.put_provider("partner", **a_jwt_config())
    other = replace(a_create(fake), resource=declared(a_ref(Kind.IDP_JWT_CONFIG, "other")))
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        fake.strays["ListProviders"] = [stray]
        with pytest.raises(ServiceError):
            plan_with(client, TREE)
        fake.strays["ListProviders"] = [stray]
        (refused,) = client.write([other], {})
        assert plan_with(client, TREE).changes == ()

    assert isinstance(refused, ServiceError)
    assert not {"AddJWTProvider", "AddOrgJWTIDP"} & fake.calls.keys()
    assert_present_list_is_read(fake)


def test_one_refusal_like_that_of_an_old_server_is_asked_about_again(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """Only the second in a row is believed."""
    fake.put_provider("partner", **a_jwt_config())
    fake.strays["ListProviders"] = [JSONResponse(UNKNOWN_ADDRESS, 404)]

    assert plan_with(client, TREE).changes == ()
    assert_present_list_is_read(fake)


def test_a_server_that_answered_a_template_call_is_never_taken_for_old(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """Later refusals, however many, are errors of the run."""
    fake.put_provider("partner", **a_jwt_config())
    assert plan_with(client, TREE).changes == ()
    fake.strays["ListProviders"] = [JSONResponse(UNKNOWN_ADDRESS, 404) for _ in range(2)]

    with pytest.raises(ServiceError):
        plan_with(client, TREE)
    (refused,) = client.write([a_create(fake)], {})

    assert isinstance(refused, ServiceError)
    assert "AddOrgJWTIDP" not in fake.calls
    assert_present_list_is_read(fake)


def test_an_old_server_is_planned_and_written_in_several_organizations(tmp_path: Path) -> None:
    """Calls of several organizations go out together, and each is refused."""
    fake = FakeZitadel(version=OLDEST)
    names = ["acme", "second", "third"]
    ids = [fake.organization, *(fake.put("orgs", name=name)["id"] for name in names[1:])]
    refs = [a_ref(Kind.IDP_JWT_CONFIG, "partner", name) for name in names]
    with listening(fake.app()) as address:
        with zitadel_client(address, IAM, tmp_path) as client:
            orders = [CreateOrder(declared(ref), each) for ref, each in zip(refs, ids, strict=True)]
            results = client.write(orders, {})
        with zitadel_client(address, IAM, tmp_path) as client:
            plan = plan_with(client, desired(*map(declared, refs)))

    assert all(isinstance(result, Written) for result in results), results
    assert (plan.changes, plan.blocks) == ((), ())


def test_doubles_are_shown_and_none_is_chosen(
    client: ZitadelClient, fake: FakeZitadel, tmp_path: Path
) -> None:
    """Names are not unique among them, and which is meant only a person can say."""
    first, second = (fake.put_provider("Partner", **a_jwt_config()) for _ in range(2))

    observed = client.observe(["acme"])
    order = CreateOrder(declared(PARTNER), fake.organization)
    (refused,) = client.write([order], {})

    assert [held.id for held in observed.name_clashes] == [second["id"]]
    assert plan_with(client, TREE).blocks != ()
    assert isinstance(refused, ServiceError)
    assert first["id"] in refused.problem
    assert second["id"] in refused.problem
    pinned = desired(replace(declared(PARTNER), pinned_id=second["id"]))
    assert "AddJWTProvider" not in fake.calls
    assert plan_with(client, pinned).blocks == ()


def test_an_update_of_a_double_shows_at_once(fake: FakeZitadel, tmp_path: Path) -> None:
    """A pinned one is written to like any other, and no wait for lists would end."""
    for _ in range(2):
        fake.put_provider("partner", **a_jwt_config())
    slept: list[float] = []
    patience = ListDelays(settling=0, step=0.5, longest=60, sleep=slept.append)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path, patience) as one:
        (second,) = one.observe(["acme"]).name_clashes
        order = UpdateOrder(declared(PARTNER, a_jwt_config(issuer="https://new.example")), second)
        (written,) = one.write([order], {})
        slept.clear()
        state = one.observe(["acme"])

    assert isinstance(written, Written), written
    assert (state.unshown, slept) == ((), [])


def test_one_that_appeared_since_the_plan_is_not_doubled(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """The server would make a second one of the name."""
    order = CreateOrder(declared(PARTNER), fake.organization)
    same = fake.put_provider("partner", **a_jwt_config())
    (taken,) = client.write([order], {})
    by_console(fake, same["id"], **ATTACKER)
    (refused,) = client.write([order], {})

    assert isinstance(taken, Written)
    assert taken.id == same["id"]
    assert isinstance(refused, AlreadyExistsError)
    assert len(fake.named("idps", "partner")) == 1


@pytest.mark.parametrize("is_renamed", [True, False], ids=["renamed", "removed"])
def test_a_list_that_still_shows_a_freed_name_is_not_believed(
    client: ZitadelClient, fake: FakeZitadel, *, is_renamed: bool
) -> None:
    """The provider that had the name is not the one that is to be made."""
    before = fake.put_provider("partner", **a_jwt_config())
    held = client.observe(["acme"]).objects[PARTNER.key]
    ally = declared(a_ref(Kind.IDP_JWT_CONFIG, "ally"))
    freeing: Order = UpdateOrder(ally, held) if is_renamed else DeleteOrder(held)
    fake.lag = 60

    (freed,) = client.write([freeing], {})
    (made,) = client.write([a_create(fake)], {})

    assert isinstance(freed, Written), freed
    assert isinstance(made, Written), made
    assert made.id != before["id"]
    assert [item["id"] for item in fake.named("idps", "partner")] == [made.id]


@pytest.mark.parametrize("harm", ["reset after", "half an answer", "reset before"])
def test_a_create_whose_answer_is_lost_makes_one(harm: str, tmp_path: Path) -> None:
    """What it may have made is looked for, after the lists had time to catch up."""
    fake = FakeZitadel(lag=0.05)
    left = iter([harm])
    patience = ListDelays(settling=0.2, step=0.05, longest=3)
    with (
        listening(fake.app()) as address,
        fault_proxy(address, lambda first: next(left, "") if b"generic" in first else "") as proxy,
        zitadel_client(proxy.address, IAM, tmp_path, patience) as client,
    ):
        order = CreateOrder(declared(PARTNER), fake.organization)
        (result,) = client.write([order], {})

    assert isinstance(result, Written), result
    assert [item["id"] for item in fake.named("idps", "partner")] == [result.id]


def test_providers_of_other_types_are_named_and_never_touched(
    client: ZitadelClient, fake: FakeZitadel
) -> None:
    """One may have the name of a declared one: it is none of the same kind."""
    google = {"google": {"clientId": "7"}}
    fake.put("idps", name="partner", owner="IDP_OWNER_TYPE_ORG", type="PROVIDER_TYPE_GOOGLE",
             config=google)  # fmt: skip

    observed = client.observe(["acme"])

    assert PARTNER.key not in observed.objects
    (told,) = observed.unexpressed
    assert "partner" in told
    assert "PROVIDER_TYPE_GOOGLE" in told
    assert fields_of(plan_with(client, TREE)) == [(Create, "partner", None)]


CHECKED = desired(declared(PARTNER, a_jwt_config(audience="us")))


def test_an_audience_is_written_read_and_emptied(tmp_path: Path) -> None:
    """By a server that knows it; a change by the console is planned like any other."""
    fake = FakeZitadel()
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        first = plan_with(client, CHECKED)
        assert apply_with(client, CHECKED, tmp_path).remaining == 0
        (made,) = fake.named("idps", "partner")
        assert made["config"]["jwt"]["audience"] == "us"
        in_step = plan_with(client, CHECKED)
        by_console(fake, made["id"], audience="")
        emptied = plan_with(client, CHECKED)
        assert apply_with(client, CHECKED, tmp_path).remaining == 0
        assert apply_with(client, TREE, tmp_path).remaining == 0

    assert made["config"]["jwt"]["audience"] == ""
    assert [warning.code for warning in first.warnings] == ["PLAN-AUDIENCE-UNKNOWN"]
    assert (in_step.changes, in_step.warnings) == ((), ())
    assert fields_of(emptied) == [(Adopt, "partner", made["id"])]


@pytest.mark.parametrize("version", [OLDER, OLDEST, "4.15.1"])
def test_a_server_that_drops_an_audience_is_to_be_upgraded(version: str, tmp_path: Path) -> None:
    """It never checks `aud`. The plan says so where that is known, the apply in any case."""
    fake = FakeZitadel(version=version)
    with listening(fake.app()) as address, zitadel_client(address, IAM, tmp_path) as client:
        report = apply_with(client, CHECKED, tmp_path)
        told = plan_with(client, CHECKED).warnings
        again = apply_with(client, CHECKED, tmp_path)

    assert (report.remaining, again.remaining) == (1, 1)
    assert "PLAN-AUDIENCE-UNKNOWN" in [warning.code for warning in told]
    assert "upgrade it" in " ".join(warning.remedy for warning in told)
    (note,) = [note for note in again.notes if note.code == "APPLY-REMAINING"]
    assert "audience" in note.remedy
    assert "4.15.2" in note.remedy
    assert "upgrade it" in note.remedy
