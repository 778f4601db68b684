"""The size of a plan against a ZITADEL: requests by the page, and none for each object."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.conftest import Run, an_application, write
from tests.acceptance.zitadel import ServeZitadel

PUBLIC = {"authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE"}
COUNT = 1300


def test_a_plan_of_many_applications_reads_pages_of_lists(
    run: Run, tree: Path, a_zitadel: ServeZitadel
) -> None:
    """1,300 applications are three pages of the nine requests of a plan."""
    names = [f"app-{number}" for number in range(COUNT)]
    write(tree / "apps.yaml", "\n---\n".join(an_application(name, **PUBLIC) for name in names))
    with a_zitadel() as (fake, here):
        project = fake.named("projects", "shop")[0]["id"]
        for name in names:
            uris = [f"https://{name}.example.com/cb"]
            config = {**PUBLIC, "clientId": "7", "redirectUris": uris}
            fake.put("apps", name=name, project=project, oidcConfig=config)
        planned = run("plan", "--detailed-exitcode", **here)

    assert planned.code == 0, planned.all
    assert fake.calls == {
        "GetIAM": 1, "ListOrganizations": 1, "ListProjects": 1, "ListProviders": 1,
        "ListActions": 1, "ListApps": 3, "ListProjectRoles": 1,
    }  # fmt: skip
