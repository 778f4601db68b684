"""Inactive objects: shown, left as they are, switched where a manifest says so, healed by apply."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.conftest import Place, Run, an_action, an_application, an_idp, write
from tests.acceptance.test_crashes import assert_nothing_is_lost_or_twice, events
from tests.acceptance.test_guards import with_metadata
from tests.acceptance.zitadel import ServeZitadel

WEB = {"kind": "OidcApplication", "organization": "acme", "project": "shop", "name": "web"}
ACME = json.dumps(
    {
        "apiVersion": "reconciler/v1",
        "kind": "Organization",
        "metadata": {"name": "acme"},
    }
)
PROJECT = json.dumps(
    {
        "apiVersion": "reconciler/v1",
        "kind": "Project",
        "metadata": {"organization": "acme", "name": "shop"},
    }
)
EACH = {
    "shop": PROJECT,
    "web": an_application("web"),
    "greet": an_action("greet"),
    "partner": an_idp("partner"),
}


def declare(folder: Path, **metadata: object) -> None:
    """Write an object of each kind, all with more metadata."""
    for name, manifest in EACH.items():
        write(folder / f"{name}.yaml", with_metadata(manifest, **metadata))


@pytest.fixture
def each(run: Run, small: Path) -> Path:
    """Return a folder that is applied, with an object of each kind that has a state."""
    write(small / "organization.yaml", ACME)
    declare(small)
    assert run("apply", "--auto-approve").code == 0
    return small


def test_every_kind_is_deactivated_noted_and_reactivated(
    run: Run, each: Path, tmp_path: Path
) -> None:
    """Unset leaves it off and the plan empty; each switch is a risk of its own."""
    declare(each, active=False)
    off = run("apply", "--auto-approve", "--format", "json")
    assert (off.code, off.json["summary"]["made"]) == (0, 4)
    assert run("plan", "--detailed-exitcode").code == 0
    assert run("plan", "--format", "json").json["inactive"] == []

    declare(each)
    noted = run("plan", "--detailed-exitcode")
    assert noted.code == 0
    assert "No changes." in noted.out
    assert "Inactive, and left so: no manifest says metadata.active:" in noted.out
    told = run("plan", "--format", "json").json
    assert WEB in told["inactive"]
    assert len(told["inactive"]) == 4
    drift = run("drift", "--format", "json")
    assert (drift.code, drift.json["inactive"]) == (0, told["inactive"])
    assert "OidcApplication acme/shop/web" in run("drift").out.split("Inactive")[1]
    for form in ("markdown", "html"):
        assert "nactive, and left so" in run("plan", "--format", form).out

    run("export", "--out", "exported")
    assert (
        "active: false"
        in (tmp_path / "exported" / "acme" / "projects" / "shop" / "project.yaml").read_text()
    )
    assert run("plan", "exported", "--detailed-exitcode").code == 0

    declare(each, active=True)
    plan = run("plan", "--format", "json").json
    classes = [risk["class"] for change in plan["changes"] for risk in change["risks"]]
    assert classes == ["reactivated"] * 4
    assert run("apply", "--auto-approve").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


def test_a_configuration_is_never_in_use_on_the_way(run: Run, each: Path) -> None:
    """Deactivated before the update, reactivated after it."""
    for active in (False, True):
        changed = an_application("web", devMode=not active)
        write(each / "web.yaml", with_metadata(changed, active=active))
        assert run("apply", "--auto-approve").code == 0

    history = events(each.parent)
    (web,) = [stream for stream, _, payload in history if payload.get("name") == "web"]
    assert [kind for stream, kind, _ in history if stream == web] == [
        "application.added",
        *("application.deactivated", "application.changed"),
        *("application.changed", "application.reactivated"),
    ]


def test_a_critical_object_is_not_switched_unless_it_is_named(run: Run, each: Path) -> None:
    """Either way: off locks people out, on lets in what was shut out."""
    critical = with_metadata(an_application("web"), critical=True)
    write(each / "web.yaml", critical)
    assert run("apply", "--auto-approve").code == 0
    allowed = "OidcApplication/acme/shop/web=asked for"
    for active, done in ((False, "deactivated"), (True, "reactivated")):
        write(each / "web.yaml", with_metadata(critical, active=active))
        refused = run("apply", "--auto-approve")
        assert refused.code == 3
        assert f"a critical object would be {done}" in refused.err
        assert run("apply", "--auto-approve", "--break-glass", allowed).code == 0


@pytest.mark.parametrize("point", ["C4:3", "C6:3", "S3:4"])
def test_a_kill_between_the_two_writes_is_healed_by_the_next_apply(
    run: Run, small: Path, point: str
) -> None:
    """Created once, then deactivated; its secret is delivered."""
    write(small / "web.yaml", with_metadata(an_application("web"), active=False))
    killed = run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point)
    assert killed.code == -signal.SIGKILL

    assert_nothing_is_lost_or_twice(run, small.parent)
    told = [kind for _, kind, _ in events(small.parent)]
    assert told.count("application.deactivated") == 1


@pytest.mark.parametrize("point", ["C4:3", "C6:3"])
def test_a_critical_object_that_was_made_half_way_needs_no_break_glass(
    run: Run, small: Path, point: str
) -> None:
    """The run that was killed was to leave it inactive, and so does the next one; plan agrees."""
    critical = with_metadata(an_application("web"), critical=True)
    write(small / "web.yaml", with_metadata(critical, active=False))
    assert run("apply", "--auto-approve", RECONCILER_CRASHPOINT=point).code == -signal.SIGKILL

    planned = run("plan", "--detailed-exitcode")
    assert planned.code == 2, planned.all
    assert_nothing_is_lost_or_twice(run, small.parent)
    write(small / "web.yaml", with_metadata(critical, active=True))
    assert run("plan", "--detailed-exitcode").code == 3


def test_a_saved_plan_goes_on_after_a_kill_between_the_two_writes(run: Run, small: Path) -> None:
    """It is the same plan: the half that is left is done."""
    write(small / "web.yaml", with_metadata(an_application("web"), active=False))
    assert run("plan", "--out", "plan.json").code == 0
    assert run("apply", "plan.json", RECONCILER_CRASHPOINT="C4:3").code == -signal.SIGKILL

    assert run("apply", "plan.json").code == 0
    assert run("plan", "--detailed-exitcode").code == 0


def test_what_another_writer_switched_off_is_told(place: Place) -> None:
    """Noted where no manifest says a state; drift with a name where one does."""
    run, web = place.run, place.manifests / "web.yaml"
    write(web, with_metadata(an_application("web"), active=True))
    spa = place.manifests / "spa.yaml"
    write(spa, with_metadata(spa.read_text(encoding="utf-8"), active=False))
    assert run("apply", "--auto-approve").code == 0
    greet, app = place.direct.objects()["greet"], place.direct.objects()["web"]
    place.direct("DeactivateAction", id=greet["id"])
    place.direct("DeactivateApp", projectId=app["projectId"], appId=app["id"])

    drift = run("drift", "--format", "json").json
    assert [ref["name"] for ref in drift["inactive"]] == ["greet"]
    (changed,) = drift["drift"]
    assert (changed["ref"]["name"], changed["by"]) == ("web", "ana")
    (field,) = changed["fields"]
    assert (field["name"], field["declared"], field["held"]) == ("metadata.active", True, False)
    history = run("history", "OidcApplication/acme/shop/web").out
    assert "application.deactivated" in history
    assert "metadata.active: true -> false" in history

    plan = run("plan", "--format", "json").json
    (change,) = plan["changes"]
    assert [field["cause"]["by"] for field in change["fields"]] == ["ana"]
    assert run("apply", "--auto-approve").code == 0
    states = {name: held["state"] for name, held in place.direct.objects().items()}
    assert [states[name] for name in ("web", "greet", "spa")] == ["ACTIVE", "INACTIVE", "INACTIVE"]


def test_a_zitadel_is_healed_told_of_and_refused(
    a_zitadel: ServeZitadel, run: Run, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill between the two writes makes nothing twice; a provider has no such state there.

    The server does not tell who made an object: the journal, the content and the time do.
    """
    monkeypatch.setattr("tests.zitadel.held.MOMENT", datetime.now(UTC).isoformat())
    public = an_application("web", authMethodType="OIDC_AUTH_METHOD_TYPE_NONE")
    write(tree / "web.yaml", with_metadata(public, active=False, critical=True))
    with a_zitadel() as (fake, here):
        killed = run("apply", "--auto-approve", **here, RECONCILER_CRASHPOINT="C4")
        assert killed.code == -signal.SIGKILL
        assert run("apply", "--auto-approve", **here).code == 0
        (held,) = fake.named("apps", "web")
        assert held["state"] == "APP_STATE_INACTIVE"

        write(tree / "web.yaml", public)
        plan = run("plan", "--detailed-exitcode", **here)
        assert (plan.code, "  OidcApplication acme/shop/web" in plan.out) == (0, True)
        drift = run("drift", "--format", "json", **here).json
        assert drift["inactive"] == [WEB]

        fake.put_provider("partner")
        write(tree / "partner.yaml", with_metadata(an_idp("partner"), active=False))
        refused = run("apply", "--auto-approve", **here)
        assert refused.code == 1
        assert "partner.yaml:" in refused.err
        assert "PLAN-NOT-DEACTIVATABLE" in refused.err
