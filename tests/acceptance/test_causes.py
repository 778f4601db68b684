"""Each field of a plan is blamed on its own cause: the manifests, the service, or both."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import Place, an_action, write

SCRIPT = "function greet(ctx, api) { return 1; }"


def causes(place: Place, *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the causes of the fields of the one change that is planned."""
    (change,) = place.run("plan", *arguments, "--format", "json").json["changes"]
    return {field["name"]: field["cause"] for field in change["fields"]}


@pytest.fixture
def both(place: Place) -> Place:
    """Change the script on the service, the timeout in the manifest, and a flag on both."""
    assert place.run("apply", "--auto-approve").code == 0
    place.direct.change("greet", script=SCRIPT)
    manifest = an_action(timeout="5s", allowedToFail=True)
    write(place.manifests / "greet.yaml", manifest)
    return place


def test_each_field_has_its_own_cause(both: Place) -> None:
    """A script changed by ana, a timeout changed in the manifest: each is told as it was."""
    text = both.run("plan").out
    told = causes(both)
    (change,) = both.run("plan", "--format", "json").json["changes"]

    assert "# timeout, allowedToFail: declared differently since it was last applied" in text
    assert "# script: changed on the service since, by ana at 20" in text
    assert told["timeout"]["kind"] == "declared"
    assert (told["script"]["kind"], told["script"]["by"]) == ("changed_on_service", "ana")
    assert change["cause"]["kind"] == "changed_on_service"


def test_each_field_names_its_own_writer(both: Place) -> None:
    """The last writer of the object is not to blame for what an earlier one did."""
    both.direct.named("bob").change("greet", timeout="1s")

    told = causes(both)

    assert (told["script"]["kind"], told["script"]["by"]) == ("changed_on_service", "ana")
    assert (told["timeout"]["kind"], told["timeout"]["by"]) == ("both", "bob")
    assert told["timeout"]["sequence"] != told["script"]["sequence"]
    assert "# timeout: declared differently, and changed on the service since, by bob at 20" in (
        both.run("plan").out
    )


def test_every_form_tells_them(both: Place) -> None:
    """A comment, a page, a saved plan and apply itself say what plan says."""
    script = "script: changed on the service since, by ana at 20"

    assert f"# {script}" in both.run("plan", "--format", "markdown").out
    assert script in both.run("plan", "--format", "html").out
    text, fields = both.run("plan", "--out", "plan.json").out, both.run("plan", "--format", "json")
    assert both.run("show", "plan.json").out == text
    assert (
        both.run("show", "plan.json", "--format", "json").json["changes"]
        == (fields.json["changes"])
    )
    assert f"# {script}" in both.run("apply", "--auto-approve").out


def test_a_field_that_the_service_took_back_is_declared(place: Place) -> None:
    """What is held is what was applied: the difference is the manifest's."""
    assert place.run("apply", "--auto-approve").code == 0
    place.direct.change("greet", timeout="1s")
    place.direct.change("greet", timeout="20s")
    write(place.manifests / "greet.yaml", an_action(timeout="5s"))

    assert causes(place)["timeout"]["kind"] == "declared"
    assert "# declared differently since it was last applied" in place.run("plan").out


def test_a_rotation_takes_no_blame_for_what_was_changed_before_it(place: Place) -> None:
    """The last event is of this tree and applied nothing: history, plan and drift name ana."""
    assert place.run("apply", "--auto-approve").code == 0
    held = place.direct.objects()["web"]
    spec = {**held["spec"], "devMode": True}
    place.direct("UpdateOIDCAppConfig", projectId=held["projectId"], appId=held["id"], **spec)
    assert place.run("secret", "rotate", "acme/shop/web", "--auto-approve").code == 0

    (drifted,) = place.run("drift", "--format", "json").json["drift"]

    assert (causes(place)["devMode"]["kind"], drifted["by"]) == ("changed_on_service", "ana")
