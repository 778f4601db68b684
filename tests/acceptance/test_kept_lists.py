"""Lists that a ZITADEL from 4.0 on does not empty: said by every report, and never sent alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Run, an_application, write
from tests.acceptance.zitadel import a_zitadel
from tests.zitadel.stand_in import GENERATIONS, OLDER, FakeZitadel

WORDS = "this server will not empty it"
HELD = {"clientId": "7", "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
PUBLIC = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
URIS = ["https://web.example.com/cb"]


def an_app(fake: FakeZitadel, **config: Any) -> dict[str, Any]:
    project = fake.named("projects", "shop")[0]["id"]
    return fake.put("apps", name="web", project=project, oidcConfig={**HELD, **config})


def test_every_report_marks_a_list_that_stays(run: Run, tree: Path) -> None:
    """Text, Markdown, HTML, JSON and a saved plan; and no risk of a removal is claimed."""
    write(tree / "web.yaml", an_application("web", **PUBLIC, redirectUris=[]))
    with a_zitadel() as (fake, here):
        an_app(fake, redirectUris=URIS, backChannelLogoutUri="https://web.example.com/out")
        text = run("plan", "--out", "plan.json", **here)
        forms = {form: run("plan", "--format", form, **here) for form in ("markdown", "html")}
        told = run("plan", "--format", "json", **here).json
        saved = run("export", "--snapshot", "held.json", **here)
    shown = run("show", "plan.json")
    against = run("plan", "--against", "held.json")

    (change,) = told["changes"]
    assert [(each["name"], each["kept"]) for each in change["fields"]] == [("redirectUris", True)]
    assert change["risks"] == []
    assert saved.code == 0, saved.all
    assert "PLAN-LIST-KEPT" in against.err
    assert "PLAN-LOGOUT-CHECKED" not in text.err  # nothing is sent
    for report in (text.out, shown.out, against.out, *(form.out for form in forms.values())):
        assert WORDS in report
    (told_at,) = [line for line in text.err.splitlines() if "PLAN-LIST-KEPT" in line]
    assert told_at.startswith("manifests/web.yaml:")
    assert "Write at least one entry" in text.all


@pytest.mark.parametrize("version", GENERATIONS)
def test_a_list_is_emptied_where_the_server_does_so(run: Run, tree: Path, version: str) -> None:
    """From 4.0 nothing is sent, exit 5, and the next run tells the same; 3.x empties it."""
    write(tree / "web.yaml", an_application("web", **PUBLIC, redirectUris=[]))
    with a_zitadel(version=version) as (fake, here):
        app = an_app(fake, redirectUris=URIS)
        first = run("apply", "--auto-approve", **here)
        again = run("apply", "--auto-approve", **here)
        planned = run("plan", "--detailed-exitcode", **here)

    held = fake.held["apps"][app["id"]]["oidcConfig"]
    if version == OLDER:
        assert (first.code, again.code, planned.code) == (0, 0, 0), first.all
        assert not held["redirectUris"]
        return
    assert (first.code, again.code, planned.code) == (5, 5, 2), first.all
    assert "0 failed, 0 not tried, 1 untouched. 1 remaining." in first.out
    for report in (first.out, again.out):
        assert "APPLY-LIST-KEPT" in report
        assert "remove the application and create it again" in " ".join(report.split())
    assert "UpdateOIDCAppConfig" not in fake.calls
    assert held["redirectUris"] == URIS


def test_other_fields_are_written_and_the_rest_is_told(run: Run, tree: Path) -> None:
    """What can be done is done; what stays is named, and is what remains."""
    write(tree / "web.yaml", an_application("web", **PUBLIC, redirectUris=[], devMode=True))
    with a_zitadel() as (fake, here):
        app = an_app(fake, redirectUris=URIS, additionalOrigins=["https://a.example.com"])
        planned = run("plan", "--out", "plan.json", **here)
        applied = run("apply", "plan.json", "--format", "json", **here)
        again = run("apply", "plan.json", **here)
        left = run("plan", "--format", "json", **here).json

    held = fake.held["apps"][app["id"]]["oidcConfig"]
    assert "PLAN-LIST-KEPT" in planned.err
    assert (applied.code, again.code) == (5, 5), applied.all + again.all
    assert applied.json["summary"]["made"] == applied.json["summary"]["remaining"] == 1
    codes = [note["code"] for note in applied.json["diagnostics"]]
    assert codes == ["APPLY-LIST-KEPT"]
    assert held["devMode"] is True
    assert held["redirectUris"] == URIS
    (change,) = left["changes"]
    assert [each["name"] for each in change["fields"]] == ["redirectUris", "additionalOrigins"]
    assert all(each["kept"] for each in change["fields"])


def test_the_generation_is_asked_only_where_a_list_is_emptied(run: Run, tree: Path) -> None:
    """It is a request, and a plan that does not depend on it makes none."""
    write(tree / "web.yaml", an_application("web", **PUBLIC, redirectUris=URIS))
    with a_zitadel() as (fake, here):
        an_app(fake)
        assert run("plan", **here).code == 0

    assert "ListExecutionFunctions" not in fake.calls
