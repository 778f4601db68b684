"""Fields that ``metadata.ignore`` leaves to others: never compared, and sent back as they are held.

The other writer is another tool or a person: it writes between a plan and its apply, and between
the read and the write of an apply, to every kind of service and over each of its wires.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import (
    ORGANIZATION,
    Place,
    Run,
    an_action,
    an_application,
    an_idp,
    write,
)
from tests.acceptance.test_action_flows import a_flow
from tests.acceptance.zitadel import ServeZitadel
from tests.fault_proxy import fault_proxy
from tests.running import Server, running_server
from tests.terminal import approved_after
from tests.wires import WIRES, Answered
from tests.zitadel.stand_in import FakeZitadel

PUBLIC = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
OURS, THEIRS = ["https://ours.example.com"], ["https://theirs.example.com"]
UPDATE = b"PUT "


def web(ignore: list[str] | None = None, *, critical: bool = False, **spec: Any) -> str:
    """Return the manifest of an application whose additional origins are left to others."""
    manifest = json.loads(an_application("web", **{**PUBLIC, "additionalOrigins": OURS, **spec}))
    manifest["metadata"]["ignore"] = ["additionalOrigins"] if ignore is None else ignore
    manifest["metadata"]["critical"] = critical
    return json.dumps(manifest)


def held(place: Place, name: str = "web") -> dict[str, Any]:
    spec: dict[str, Any] = place.direct.objects()[name]["spec"]
    return spec


def write_as_other(place: Place, **fields: Any) -> None:
    """Write an application as a console does: all of its fields, some of them new."""
    found = place.direct.objects()["web"]
    where = {"projectId": found["projectId"], "appId": found["id"]}
    place.direct("UpdateOIDCAppConfig", **where, **{**found["spec"], **fields})


@pytest.fixture
def shared(place: Place) -> Place:
    """Return a service with the application, whose additional origins somebody has changed."""
    write(place.manifests / "web.yaml", web())
    assert place.run("apply", "--auto-approve").code == 0
    assert held(place)["additionalOrigins"] == OURS  # a new object gets what is declared
    write_as_other(place, additionalOrigins=THEIRS)
    return place


def test_it_is_shown_as_theirs_and_is_no_difference(shared: Place) -> None:
    """By every form of a plan and of drift, and by a saved plan."""
    planned = shared.run("plan", "--detailed-exitcode", "--out", "plan.json")
    drift = shared.run("drift", "--detailed-exitcode")
    told = [
        shared.run(command, "--format", "json").json["ignored"] for command in ("plan", "drift")
    ]
    saved = shared.run("show", "plan.json")
    pages = [shared.run("plan", "--format", form) for form in ("markdown", "html")]
    issue = shared.run("drift", "--format", "markdown")

    assert (planned.code, drift.code) == (0, 0), planned.all + drift.all
    assert "No changes." in planned.out
    assert "; 1 ignored field is not judged." in drift.out
    ref = {"kind": "OidcApplication", "organization": "acme", "project": "shop", "name": "web"}
    entry = {"ref": ref, "name": "additionalOrigins", "declared": OURS, "held": THEIRS}
    assert told == [[entry], [entry]]
    for report in (planned, drift, saved, *pages, issue):
        assert "https://theirs.example.com" in report.out


def test_a_full_update_sends_it_back_as_it_is_held(shared: Place) -> None:
    """The update is about another field, and says nothing of this one."""
    write(shared.manifests / "web.yaml", web(devMode=True))
    (change,) = shared.run("plan", "--format", "json").json["changes"]

    applied = shared.run("apply", "--auto-approve")

    assert [field["name"] for field in change["fields"]] == ["devMode"]
    assert applied.code == 0, applied.all
    assert "0 remaining" in applied.out
    assert (held(shared)["devMode"], held(shared)["additionalOrigins"]) == (True, THEIRS)


def test_an_export_has_the_mark_and_plans_empty(shared: Place) -> None:
    """Whoever starts from an export goes on sharing the field."""
    exported = shared.run("export", "--out", "out", "--organization", "acme")
    again = shared.run("plan", "out", "--detailed-exitcode")

    assert exported.code == 0, exported.all
    assert "  ignore:\n    - additionalOrigins\n" in Path(
        shared.folder, "out/acme/projects/shop/applications/web.yaml"
    ).read_text(encoding="utf-8")
    assert again.code == 0, again.all


def test_another_writer_between_plan_and_apply_makes_no_plan_stale(shared: Place) -> None:
    """The approved plan is applied by file and by digest; what they wrote stays."""
    write(shared.manifests / "web.yaml", web(devMode=True))
    shared.run("plan", "--out", "plan.json")
    write_as_other(shared, additionalOrigins=["https://later.example.com"])
    applied = shared.run("apply", "plan.json")
    write_as_other(shared, additionalOrigins=THEIRS)
    again = shared.run("apply", "plan.json")

    assert applied.code == 0, applied.all
    assert "Every change of this plan is done already." in again.err
    assert (held(shared)["devMode"], held(shared)["additionalOrigins"]) == (True, THEIRS)


def test_a_field_that_the_plan_judged_still_makes_it_stale(shared: Place) -> None:
    """Nothing is written, and the writer is named."""
    write(shared.manifests / "web.yaml", web(devMode=True))
    shared.run("plan", "--out", "plan.json")
    write_as_other(shared, additionalOrigins=OURS, clockSkew="1s")

    applied = shared.run("apply", "plan.json")

    assert applied.code == 4, applied.all
    assert "changed on the service since, by ana" in applied.err
    assert held(shared)["devMode"] is False


def test_another_writer_between_read_and_send_keeps_what_it_wrote(shared: Place) -> None:
    """Apply has read the service and waits for its approval, as long as a person takes."""
    write(shared.manifests / "web.yaml", web(devMode=True))
    latest = ["https://latest.example.com"]

    applied = approved_after(
        lambda: write_as_other(shared, additionalOrigins=latest),
        shared.folder,
        "apply",
        **_surroundings(shared),
    )

    assert applied.code == 0, applied.all
    assert "0 remaining" in applied.out
    assert (held(shared)["devMode"], held(shared)["additionalOrigins"]) == (True, latest)


def test_what_was_judged_and_moves_between_read_and_send_is_refused(shared: Place) -> None:
    """A changed field and a changed mark alike; what the other wrote stays."""
    write(shared.manifests / "web.yaml", web(devMode=True))

    applied = approved_after(
        lambda: write_as_other(shared, clockSkew="1s"),
        shared.folder,
        "apply",
        **_surroundings(shared),
    )

    assert applied.code == 4, applied.all
    assert (held(shared)["devMode"], held(shared)["clockSkew"]) == (False, "1s")


def _surroundings(place: Place) -> dict[str, str]:
    """Return the environment that a program on a terminal needs to reach the same service."""
    return dict(getattr(place.run, "keywords", {}))


def test_flags_of_a_project_that_no_manifest_says_are_kept_the_same_way(place: Place) -> None:
    """They stay as they are held when the update is sent, not when it was planned."""
    assert place.run("apply", "--auto-approve").code == 0
    write(
        place.manifests / "organization.yaml", f"{ORGANIZATION}spec: {{projectRoleCheck: true}}\n"
    )

    def set_another() -> None:
        found = place.direct.objects()["shop"]
        fields = {**found["spec"], "hasProjectCheck": True}
        place.direct("UpdateProject", id=found["id"], name="shop", **fields)

    applied = approved_after(
        set_another,
        place.folder,
        "apply",
        **_surroundings(place),
    )

    assert applied.code == 0, applied.all
    flags = held(place, "shop")
    assert (flags["projectRoleCheck"], flags["hasProjectCheck"]) == (True, True)


@pytest.fixture
def server(
    run: Run, tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Run]]:
    """Serve a store with the application, and return how the program is run against it."""
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "web.yaml", web())
    with running_server(tmp_path_factory.mktemp("server")) as served:
        remote = partial(run, RECONCILER_TOKEN=served.token())
        applied = remote("apply", "--auto-approve", RECONCILER_SERVICE=served.address)
        assert applied.code == 0, applied.all
        yield served, remote


class Other:
    """Another writer over one wire, which reads all fields and sends them back with its own."""

    def __init__(self, server: Server, wire: str) -> None:
        self.wire = WIRES[wire](server)
        self._headers = [*server.bearer().items()]
        self._where = {"projectId": server.known.project}
        (app,) = self._call("ListApps", self._where)["result"]
        self._where["appId"] = app["id"]

    def _call(self, operation: str, fields: dict[str, Any]) -> dict[str, Any]:
        answer = self.wire.call(operation, fields, self._headers)
        assert isinstance(answer, Answered), answer
        return dict(answer.fields)

    def held(self) -> dict[str, Any]:
        config: dict[str, Any] = self._call("GetAppByID", self._where)["app"]["oidcConfig"]
        return config

    def write(self, **fields: Any) -> None:
        told = {"clientId", "noneCompliant", "complianceProblems", "allowedOrigins", "version"}
        config = {name: value for name, value in self.held().items() if name not in told}
        self._call("UpdateOIDCAppConfig", {**self._where, **config, **fields})


@contextmanager
def an_other(server: Server, wire: str) -> Iterator[Other]:
    other = Other(server, wire)
    with closing(other.wire):
        yield other


@pytest.mark.parametrize("wire", WIRES)
def test_over_every_wire_another_writer_may_come_before_the_apply(
    server: tuple[Server, Run], tree: Path, wire: str
) -> None:
    """A plan file is applied although the object has moved on."""
    served, run = server
    here = {"RECONCILER_SERVICE": served.address}
    write(tree / "web.yaml", web(devMode=True))
    with an_other(served, wire) as other:
        assert run("plan", "--out", "plan.json", **here).code == 0
        other.write(additionalOrigins=THEIRS)
        applied = run("apply", "plan.json", **here)

        assert applied.code == 0, applied.all
        assert (other.held()["devMode"], other.held()["additionalOrigins"]) == (True, THEIRS)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("times", [2, 3])
def test_over_every_wire_another_writer_may_come_between_read_and_send(
    server: tuple[Server, Run], tree: Path, wire: str, times: int
) -> None:
    """Twice it is read again; the third time apply gives up, and writes over nothing."""
    served, run = server
    write(tree / "web.yaml", web(devMode=True))
    written: list[str] = []
    with an_other(served, wire) as other:

        def choose(first: bytes) -> str:
            if first.startswith(UPDATE) and len(written) < times:
                written.append(f"https://{len(written)}.example.com")
                other.write(additionalOrigins=written)
            return ""

        with fault_proxy(served.address, choose) as proxy:
            applied = run("apply", "--auto-approve", RECONCILER_SERVICE=proxy.address)

        assert applied.code == (0 if times == 2 else 4), applied.all
        assert len(written) == times
        assert other.held()["additionalOrigins"] == written
        assert other.held().get("devMode", False) is (times == 2)


def test_of_a_batch_only_what_moved_is_read_and_sent_again(
    server: tuple[Server, Run], tree: Path
) -> None:
    """The other orders of the batch are carried out once."""
    served, run = server
    write(tree / "greet.yaml", an_action())
    write(tree / "web.yaml", web(devMode=True))
    firsts: list[bytes] = []
    with an_other(served, "json") as other:

        def choose(first: bytes) -> str:
            if b"batch" in first:
                other.write(additionalOrigins=THEIRS)
            if not first.startswith(b"GET ") and b"leases" not in first:
                firsts.append(first.split(b" ")[1])
            return ""

        with fault_proxy(served.address, choose) as proxy:
            applied = run("apply", "--auto-approve", RECONCILER_SERVICE=proxy.address)

        assert applied.code == 0, applied.all
        assert (other.held()["devMode"], other.held()["additionalOrigins"]) == (True, THEIRS)
    sent = [first for first in firsts if b"batch" in first or b"oidc_config" in first]
    assert [b"batch" in first for first in sent] == [True, False], firsts


def fields_of(ran: Any) -> dict[str, tuple[Any, Any]]:
    (change,) = ran.json["changes"]
    return {field["name"]: (field["before"], field["after"]) for field in change["fields"]}


def test_the_mark_is_kept_with_the_object_and_every_change_of_it_is_shown(shared: Place) -> None:
    """A pull request cannot hide drift unseen: to ignore one field more is a change."""
    both = ["additionalOrigins", "clockSkew"]
    write(shared.manifests / "web.yaml", web(both))
    added = shared.run("plan", "--format", "json")
    applied = shared.run("apply", "--auto-approve")
    seen = shared.direct.objects()["web"]["ignore"]
    write_as_other(shared, clockSkew="1s")
    unseen = shared.run("plan", "--detailed-exitcode")
    write(shared.manifests / "web.yaml", web([]))
    taken = shared.run("plan", "--format", "json")
    text = shared.run("plan")
    shared.run("apply", "--auto-approve")
    history = shared.run("history", "OidcApplication/acme/shop/web", "--format", "json").json

    assert fields_of(added) == {"metadata.ignore": (["additionalOrigins"], both)}
    assert applied.code == 0, applied.all
    assert seen == both
    assert unseen.code == 0, unseen.all
    assert fields_of(taken) == {
        "metadata.ignore": (both, []),
        "additionalOrigins": (THEIRS, OURS),
        "clockSkew": ("1s", "0s"),
    }
    assert "metadata.ignore:" in text.out
    assert shared.direct.objects()["web"]["ignore"] == []
    assert held(shared)["additionalOrigins"] == OURS
    marks = [
        field["after"]
        for event in history["events"]
        for field in event["fields"]
        if field["name"] == "metadata.ignore"
    ]
    assert marks == [["additionalOrigins"], both, []]


def test_a_critical_object_is_not_left_to_others_where_it_decides_who_gets_in(
    shared: Place,
) -> None:
    """Redirect URIs and authentication; any other field is no risk."""
    write(shared.manifests / "web.yaml", web(critical=True))
    assert shared.run("apply", "--auto-approve").code == 0
    write(shared.manifests / "web.yaml", web(["clockSkew"], critical=True))
    harmless = shared.run("plan", "--format", "json").json
    write(shared.manifests / "web.yaml", web(["redirectUris"], critical=True))
    blocked = shared.run("apply", "--auto-approve")
    risks = shared.run("plan", "--format", "json").json["changes"][0]["risks"]
    broken = "OidcApplication/acme/shop/web=the team of the shop keeps them"
    allowed = shared.run("apply", "--auto-approve", "--break-glass", broken)

    assert "field-unwatched" not in {risk["class"] for risk in harmless["changes"][0]["risks"]}
    assert blocked.code == 3
    assert "GUARD-CRITICAL" in blocked.all
    assert ("field-unwatched", "metadata.ignore") in {(r["class"], r["field"]) for r in risks}
    assert allowed.code == 0, allowed.all


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (an_idp(), "issuer"),
        (an_idp(), "keysEndpoint"),
        (an_action(), "script"),
        (an_application("web"), "authMethodType"),
    ],
)
def test_issuer_keys_scripts_and_authentication_are_guarded_as_well(
    run: Run, tree: Path, manifest: str, field: str
) -> None:
    """A new object says the risk, too."""
    document = json.loads(manifest)
    document["metadata"]["ignore"] = [field]
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "one.yaml", json.dumps(document))

    planned = run("plan", "--format", "json")

    found = [risk["class"] for change in planned.json["changes"] for risk in change["risks"]]
    assert "field-unwatched" in found


@pytest.mark.parametrize("declared", ["BASIC", "NONE"])
def test_a_secret_is_replaced_only_where_they_sign_in_with_one(place: Place, declared: str) -> None:
    """The way to sign in is theirs: what a manifest says of it is for a new application."""
    methods: dict[str, Any] = {"authMethodType": f"OIDC_AUTH_METHOD_TYPE_{declared}"}
    write(place.manifests / "web.yaml", web(["authMethodType"], **methods))
    assert place.run("apply", "--auto-approve").code == 0
    replaced = ("apply", "--auto-approve", "--rotate-missing", "acme/shop/web")

    write_as_other(place, authMethodType="OIDC_AUTH_METHOD_TYPE_NONE")
    without = place.run(*replaced)
    write_as_other(place, authMethodType="OIDC_AUTH_METHOD_TYPE_POST")
    with_one = place.run(*replaced)

    assert without.code == 1, without.all
    assert "acme/shop/web is not a declared application with a client secret" in without.err
    assert "or held with it where metadata.ignore has that field" in without.err
    assert with_one.code == 0, with_one.all
    assert "secret in .reconciler/secrets/acme.shop.web.json" in with_one.out


def test_a_wrong_name_is_an_error_at_its_place(run: Run, tree: Path) -> None:
    """A required field must be declared all the same, and a kind without fields has no mark."""
    write(
        tree / "organization.yaml",
        ORGANIZATION.replace("name: acme", "name: acme\n  ignore: [x]", 1),
    )
    write(tree / "web.yaml", web(["additionalOrigin"]))
    idp = json.loads(an_idp())
    idp["metadata"]["ignore"] = ["issuer"]
    del idp["spec"]["issuer"]
    write(tree / "idp.yaml", json.dumps(idp))

    found = run("validate", "--format", "json")

    assert found.code == 1
    told = {(Path(each["file"]).name, each["code"]): each for each in found.json["diagnostics"]}
    wrong = told["web.yaml", "SCHEMA-VALUE"]
    assert "Did you mean additionalOrigins?" in wrong["remedy"]
    assert wrong["column"] > 1
    assert ("organization.yaml", "SCHEMA-UNKNOWN-FIELD") in told
    assert ("idp.yaml", "SCHEMA-MISSING-FIELD") in told


DEFAULTS = """\
apiVersion: reconciler/v1
kind: Defaults
metadata:
  ignore:
    OidcApplication: [additionalOrigins]
    Action: [timeout]
"""


def ignored_in(ran: Any) -> dict[str, list[str]]:
    return {
        change["ref"]["name"]: field["after"]
        for change in ran.json["changes"]
        for field in change["fields"]
        if field["name"] == "metadata.ignore"
    }


def test_defaults_and_overlays_set_it(run: Run, tree: Path) -> None:
    """By kind; a manifest that says it keeps its own, and an overlay has the last word."""
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "defaults.yaml", DEFAULTS)
    write(tree / "web.yaml", an_application("web", **PUBLIC))
    write(tree / "own.yaml", web(["clockSkew"]).replace('"web"', '"own"'))
    write(tree / "none.yaml", web([]).replace('"web"', '"none"'))
    write(tree / "greet.yaml", an_action())
    here = run("plan", "--format", "json")
    overlay = json.loads(an_application("web"))
    overlay["metadata"] |= {"patch": True, "ignore": ["devMode"]}
    overlay["spec"] = {}
    write(tree.parent / "overlay" / "web.yaml", json.dumps(overlay))
    write(
        tree.parent / "reconciler.yaml",
        "apiVersion: reconciler/v1\nkind: Configuration\nmanifests: manifests\n"
        "environments:\n  staging:\n    service: sqlite:s.db\n    overlay: overlay\n",
    )
    staging = run("plan", "--env", "staging", "--format", "json")
    write(tree / "defaults.yaml", DEFAULTS.replace("timeout", "timeouts"))
    wrong = run("validate", "--format", "json")

    assert here.code == 0, here.all
    by_default = {"web": ["additionalOrigins"], "greet": ["timeout"], "own": ["clockSkew"]}
    assert ignored_in(here) == by_default
    assert staging.code == 0, staging.all
    assert ignored_in(staging) == {**by_default, "web": ["devMode"]}
    assert [(each["file"], each["code"]) for each in wrong.json["diagnostics"]] == [
        ("manifests/defaults.yaml", "SCHEMA-VALUE")
    ]


CONSOLE = {"clientId": "7", **PUBLIC, "redirectUris": ["https://web.example.com/cb"]}


def on_stand_in(fake: FakeZitadel) -> dict[str, Any]:
    project = fake.named("projects", "shop")[0]["id"]
    return fake.put(
        "apps", name="web", project=project, oidcConfig={**CONSOLE, "additionalOrigins": THEIRS}
    )


def write_on_console(fake: FakeZitadel, app: dict[str, Any], **fields: Any) -> None:
    """Change fields of an application of a stand-in, by an event of its own."""
    item = fake.held["apps"][app["id"]]
    fake._changed("apps", item, {"oidcConfig": {**item["oidcConfig"], **fields}})


LATEST = ["https://latest.example.com"]


def test_a_zitadel_is_sent_what_it_holds_at_that_moment(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """Another writer before the apply, and another after its lists were read."""
    write(tree / "web.yaml", web(devMode=True))
    with a_zitadel() as (fake, here):
        app = on_stand_in(fake)
        planned = run("plan", "--out", "plan.json", "--format", "json", **here)
        write_on_console(fake, app, additionalOrigins=OURS)
        times: list[bytes] = []

        def choose(first: bytes) -> str:
            is_look = first.startswith(b"GET ") and f"/apps/{app['id']} ".encode() in first
            if is_look and not times:
                times.append(first)
                write_on_console(fake, app, additionalOrigins=LATEST)
            return ""

        with fault_proxy(here["RECONCILER_SERVICE"], choose) as proxy:
            there = {**here, "RECONCILER_SERVICE": proxy.address}
            applied = run("apply", "plan.json", **there)
        again = run("plan", "--detailed-exitcode", **here)

    assert [field["name"] for field in planned.json["changes"][0]["fields"]] == ["devMode"]
    assert applied.code == 0, applied.all
    assert len(times) == 1
    config = fake.held["apps"][app["id"]]["oidcConfig"]
    assert (config["devMode"], config["additionalOrigins"]) == (True, LATEST)
    assert again.code == 0, again.all


def test_a_zitadel_that_others_keep_writing_to_is_given_up(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """An object that moves before each of three sends; and a judged field that moved once."""
    write(tree / "web.yaml", web(devMode=True))
    for fields in ({"additionalOrigins": LATEST}, {"clockSkew": "1s"}):
        with a_zitadel() as (fake, here):
            app = on_stand_in(fake)
            looks: list[bytes] = []

            def choose(
                first: bytes,
                fake: FakeZitadel = fake,
                app: dict[str, Any] = app,
                looks: list[bytes] = looks,
                fields: dict[str, Any] = fields,
            ) -> str:
                if first.startswith(b"GET ") and f"/apps/{app['id']} ".encode() in first:
                    looks.append(first)
                    write_on_console(fake, app, **fields)
                return ""

            with fault_proxy(here["RECONCILER_SERVICE"], choose) as proxy:
                there = {**here, "RECONCILER_SERVICE": proxy.address}
                applied = run("apply", "--auto-approve", **there)

        assert applied.code == 4, applied.all
        assert "UpdateOIDCAppConfig" not in fake.calls
        assert len(looks) == (5 if "additionalOrigins" in fields else 2)


def test_a_zitadel_has_no_condition_so_a_gap_is_left(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """Who writes between the last look and the update is written over: the docs say so."""
    write(tree / "web.yaml", web(devMode=True))
    with a_zitadel() as (fake, here):
        app = on_stand_in(fake)

        def choose(first: bytes) -> str:
            if first.startswith(UPDATE):
                write_on_console(fake, app, additionalOrigins=LATEST)
            return ""

        with fault_proxy(here["RECONCILER_SERVICE"], choose) as proxy:
            applied = run(
                "apply", "--auto-approve", **{**here, "RECONCILER_SERVICE": proxy.address}
            )

    assert applied.code == 0, applied.all
    assert fake.held["apps"][app["id"]]["oidcConfig"]["additionalOrigins"] == THEIRS


def test_a_trigger_of_a_flow_may_be_left_to_others(place: Place) -> None:
    """Another tool runs an action of its own there; the plan and the apply leave it alone."""
    write_flow(place.manifests)
    write(place.manifests / "log.yaml", an_action("log"))
    assert place.run("apply", "--auto-approve").code == 0
    log = place.direct.objects()["log"]
    of_flow = {"flowType": "2", "triggerType": "4", "actionIds": [log["id"]]}
    place.direct("SetTriggerActions", log["organizationId"], **of_flow)
    in_step = place.run("plan", "--detailed-exitcode")
    write_flow(place.manifests, PRE_ACCESS_TOKEN_CREATION=["greet"])
    place.run("plan", "--out", "plan.json")
    greet = place.direct.objects()["greet"]["id"]
    both = {**of_flow, "actionIds": [log["id"], greet]}
    place.direct("SetTriggerActions", log["organizationId"], **both)
    applied = place.run("apply", "plan.json")

    assert in_step.code == 0, in_step.all
    assert applied.code == 0, applied.all
    assert held(place, "COMPLEMENT_TOKEN") == {
        "PRE_USERINFO_CREATION": [log["id"], greet],
        "PRE_ACCESS_TOKEN_CREATION": [greet],
    }


def test_a_flow_that_others_empty_is_made_again_with_what_is_declared(place: Place) -> None:
    """Nothing is held of a flow without actions, so it is a new one."""
    write_flow(place.manifests)
    assert place.run("apply", "--auto-approve").code == 0
    greet = place.direct.objects()["greet"]
    of_flow = {"flowType": "2", "triggerType": "4", "actionIds": []}
    place.direct("SetTriggerActions", greet["organizationId"], **of_flow)

    (change,) = place.run("plan", "--format", "json").json["changes"]
    write_flow(place.manifests, PRE_USERINFO_CREATION=[])

    assert (change["change"], change["ref"]["name"]) == ("create", "COMPLEMENT_TOKEN")
    assert place.run("plan", "--detailed-exitcode").code == 0


def test_an_action_that_others_run_at_such_a_trigger_is_not_pruned(place: Place) -> None:
    """The flow would lose what the tree promised to leave alone."""
    write_flow(place.manifests)
    log = write(place.manifests / "log.yaml", an_action("log"))
    assert place.run("apply", "--auto-approve").code == 0
    found = place.direct.objects()["log"]
    of_flow = {"flowType": "2", "triggerType": "4", "actionIds": [found["id"]]}
    place.direct("SetTriggerActions", found["organizationId"], **of_flow)
    log.unlink()

    kept = place.run("plan", "--detailed-exitcode")
    pruned = place.run("plan", "--prune", "--allow-deletes", "1")

    assert kept.code == 0, kept.all
    assert pruned.code == 1
    assert "PLAN-ACTION-IN-USE" in pruned.err


@pytest.mark.parametrize("takes_name", [False, True], ids=["renamed", "name taken"])
def test_an_action_of_such_a_trigger_can_be_renamed(place: Place, *, takes_name: bool) -> None:
    """The trigger keeps the action, whatever is called so afterwards."""
    write_flow(place.manifests)
    write(place.manifests / "log.yaml", an_action("log"))
    assert place.run("apply", "--auto-approve").code == 0
    renamed = json.loads(an_action("welcome"))
    renamed["metadata"]["id"] = greet = place.direct.objects()["greet"]["id"]
    write(place.manifests / "greet.yaml", json.dumps(renamed))
    if takes_name:
        write(place.manifests / "new.yaml", an_action("greet"))
    write_flow(
        place.manifests, PRE_USERINFO_CREATION=["welcome"], PRE_ACCESS_TOKEN_CREATION=["log"]
    )

    applied = place.run("apply", "--auto-approve")

    assert applied.code == 0, applied.all
    log = place.direct.objects()["log"]["id"]
    assert held(place, "COMPLEMENT_TOKEN") == {
        "PRE_USERINFO_CREATION": [greet],
        "PRE_ACCESS_TOKEN_CREATION": [log],
    }
    assert place.run("plan", "--detailed-exitcode").code == 0


def write_flow(tree: Path, **triggers: list[str]) -> None:
    document = json.loads(a_flow({"PRE_USERINFO_CREATION": ["greet"], **triggers}))
    document["metadata"]["ignore"] = ["PRE_USERINFO_CREATION"]
    write(tree / "token.yaml", json.dumps(document))


def test_a_trigger_of_a_zitadel_may_be_left_to_others(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """It has another action before the apply, and again after the flow was read."""
    write_flow(tree)
    write(tree / "greet.yaml", an_action())
    write(tree / "log.yaml", an_action("log"))
    with a_zitadel() as (fake, here):
        assert run("apply", "--auto-approve", **here).code == 0
        (flow,) = fake.held["flows"].values()
        (log,) = (each["id"] for each in fake.named("actions", "log"))
        (greet,) = (each["id"] for each in fake.named("actions", "greet"))

        def set_theirs(*actions: str) -> None:
            fake._changed("flows", flow, {"triggers": {**flow["triggers"], "4": [*actions]}})

        set_theirs(log)
        in_step = run("plan", "--detailed-exitcode", **here)
        write_flow(tree, PRE_ACCESS_TOKEN_CREATION=["greet"])
        run("plan", "--out", "plan.json", **here)
        set_theirs(log, greet)
        reads: list[bytes] = []

        def choose(first: bytes) -> str:
            if first.startswith(b"GET ") and b"/flows/2 " in first:
                reads.append(first)
                if len(reads) == 2:
                    set_theirs(greet)
            return ""

        with fault_proxy(here["RECONCILER_SERVICE"], choose) as proxy:
            there = {**here, "RECONCILER_SERVICE": proxy.address}
            applied = run("apply", "plan.json", **there)

    assert in_step.code == 0, in_step.all
    assert applied.code == 0, applied.all
    assert flow["triggers"] == {"4": [greet], "5": [greet]}


def test_environments_are_compared_by_what_they_declare(run: Run, tree: Path) -> None:
    """A list of one environment, and the value that a new object would get there."""
    write(tree / "organization.yaml", ORGANIZATION)
    write(tree / "web.yaml", web())
    overlay = {**json.loads(web([])), "spec": {"additionalOrigins": THEIRS}}
    write(tree.parent / "overlay" / "web.yaml", json.dumps(overlay))
    write(
        tree.parent / "reconciler.yaml",
        "apiVersion: reconciler/v1\nkind: Configuration\nmanifests: manifests\nenvironments:\n"
        "  staging: {service: 'sqlite:s.db', overlay: overlay}\n"
        "  production: {service: 'sqlite:p.db'}\n",
    )

    compared = run("compare", "staging", "production", "--format", "json")

    assert fields_of(compared) == {
        "metadata.ignore": ([], ["additionalOrigins"]),
        "additionalOrigins": (THEIRS, OURS),
    }


def test_what_is_held_and_does_not_fit_what_is_declared_is_refused_before_any_write(
    place: Place,
) -> None:
    """Validation judges what is declared, while an update sends the ignored field as it is held."""
    code: dict[str, Any] = {"grantTypes": ["AUTHORIZATION_CODE"], "responseTypes": ["CODE"]}
    write(place.manifests / "web.yaml", web([], **code))
    assert place.run("apply", "--auto-approve").code == 0
    before = held(place)
    both: dict[str, Any] = {
        "grantTypes": ["IMPLICIT", "AUTHORIZATION_CODE"],
        "responseTypes": ["ID_TOKEN", "CODE"],
    }
    write(place.manifests / "web.yaml", web(["grantTypes"], **both))
    assert place.run("validate").code == 0

    planned, applied = place.run("plan"), place.run("apply", "--auto-approve")

    for report in (planned, applied):
        assert "GUARD-IGNORED" in report.all
        assert "OIDC_RESPONSE_TYPE_ID_TOKEN needs OIDC_GRANT_TYPE_IMPLICIT" in " ".join(
            report.all.split()
        )
    assert applied.code == 3
    assert held(place) == before
    write(place.manifests / "web.yaml", web([], **both))
    assert place.run("apply", "--auto-approve").code == 0
    assert held(place)["grantTypes"] != before["grantTypes"]
