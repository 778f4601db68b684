"""What the OpenAPI document says is what the server does: generated requests find no difference.

Schemathesis makes them, right ones and wrong ones, and judges every answer by all of its checks.
Its own failures come out as they are; the command that repeats one is in the message.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.api.document import openapi, openapi_text
from docs.api.page import docs_page
from reconciler.service.operations.table import operations
from tests.contract.described import check_answer
from tests.contract.story import JWT
from tests.effort import IS_USUAL, cases
from tests.raw_http import exchange, request
from tests.running import Server

ROOT = Path(__file__).parents[2]
CASES_EACH = cases(1)  # of each kind for each operation; what is covered one by one comes on top
CONFIG = Path(__file__).with_name("schemathesis.toml")
# Value by value is covered once for the fields that several operations share: of a second address,
# of an update as of its create, of lists, of an operation and its counterpart, and of operations
# that take ids alone. What goes beyond one organization is covered by the run that may do it. Each
# of these operations has its random cases all the same, and `make laws` covers every value of
# every one.
COVERED_ELSEWHERE = """
[[operations]]
include-operation-id-regex = "Alias$|^Reactivate|^Deactivate(Project|OrgIDP|Action)$|\
(Org|Orgs|Trees)$|^List(Projects|OrgIDPs|Actions|Apps)$|\
^(UpdateOIDCAppConfig|UpdateAction|UpdateJWTProvider|UpdateProject|UpdateProjectRole)$|\
^(DeleteAction|RemoveOrgIDP|DeleteProvider|DeactivateApp|ClearFlow)$|\
^(AddOrgJWTIDP|RenewLease|AcknowledgeSecrets)$"
phases.coverage.enabled = false
"""
SEED = 20_260_101  # the same requests each time: what they find is found by everybody
PATIENCE = 3000


def test_the_document_in_the_docs_is_in_step() -> None:
    """``make api`` writes it, for programs and for people."""
    assert (ROOT / "docs" / "openapi.json").read_text(encoding="utf-8") == openapi_text()
    assert (ROOT / "docs" / "openapi.html").read_text(encoding="utf-8") == docs_page()


def test_every_operation_is_in_the_document() -> None:
    """At each of its addresses, under its own name, with what it takes and answers."""
    paths = openapi()["paths"]
    documented = {
        operation["operationId"].removesuffix("Alias")
        for verbs in paths.values()
        for operation in verbs.values()
    }

    assert documented == set(operations())
    assert sum(len(verbs) for verbs in paths.values()) == sum(
        len(operation.http) for operation in operations().values()
    )


def test_the_server_shows_the_document_as_it_is(server: Server) -> None:
    """To whoever asks, once there is a token."""
    answer = exchange(server.port, request("GET", "/openapi.json"))

    assert answer is not None
    assert answer.json == openapi()


def test_nothing_in_the_document_is_left_open() -> None:
    """Every object says which fields it has, but for those that are somebody else's to fill."""
    free = {"spec", "payload", "context"}
    schemas = openapi()["components"]["schemas"]

    opened = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, inner in schema["properties"].items()
        if inner.get("type") == "object" and "additionalProperties" not in inner
    ]

    assert {name.rpartition(".")[2] for name in opened} <= free
    assert all(schema["additionalProperties"] is False for schema in schemas.values())


@pytest.mark.parametrize(
    ("token", "phases", "operations", "at_least"),
    [
        pytest.param(
            "editor", "examples,coverage,fuzzing,stateful", "", 2000, id="one organization"
        ),
        # What goes beyond one organization; the others do the same for every token.
        pytest.param(
            "admin", "examples,coverage", "(Org|Orgs|Trees)$", 100, id="every organization"
        ),
    ],
)
def test_generated_requests_find_nothing(
    server: Server, tmp_path: Path, token: str, phases: str, operations: str, at_least: int
) -> None:
    """Right requests are taken, wrong ones refused, and every answer is as it is described."""
    # Tables of characters that take seconds to make; they are made once for all tests.
    tables = ROOT / ".hypothesis"
    tables.mkdir(exist_ok=True)
    (tmp_path / tables.name).symlink_to(tables)
    config = tmp_path / CONFIG.name
    shared = COVERED_ELSEWHERE if not operations and IS_USUAL else ""
    config.write_text(CONFIG.read_text(encoding="utf-8") + shared, encoding="utf-8")
    ran = subprocess.run(
        [
            Path(sys.executable).with_name("schemathesis"),
            "--config-file", config, "run",
            f"{server.address}/openapi.json",
            "--header", f"Authorization: {server.bearer(token)['authorization']}",
            "--checks", "all",
            "--phases", phases,
            "--max-examples", str(CASES_EACH),
            "--seed", str(SEED),
            "--generation-database", "none",
            "--no-color",
            "--include-operation-id-regex", operations or ".",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )  # fmt: skip

    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-5000:]
    counted = re.search(r"(\d+) generated, (\d+) passed", ran.stdout)
    assert counted, ran.stdout[-2000:]
    assert counted[1] == counted[2]
    assert int(counted[1]) > at_least


def test_every_answer_is_as_its_schema_says(server: Server) -> None:
    """Also those that generated requests seldom reach, because something must exist first.

    ``test_transports.py`` holds the others to it.
    """
    answers = dict(_answers_of(server))

    assert set(answers) >= {row.name for row in operations().values() if not row.grpc}
    for operation, answer in answers.items():
        check_answer(operation, answer)


def _answers_of(server: Server) -> Iterator[tuple[str, Any]]:
    """Call operations with success: all that JSON alone has, and others."""
    caller = _Caller(server)
    yield from _owners(caller)
    yield from _providers(caller)
    yield from _applications(caller)
    yield from _roles(caller)
    yield from _actions(caller)
    yield from _own(caller)


class _Caller:
    """Calls operations, and expects nothing but success."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.known = server.known
        self.project = {"projectId": server.known.project}

    def __call__(
        self, operation: str, *, by: str = "editor", under: str = "", run: str = "", **fields: Any
    ) -> Any:
        """Call, and return the answer."""
        verb, _, path = operations()[operation].http[0].partition(" ")
        for name in list(fields):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", fields.pop(name))
        headers = {**self._server.bearer(by), "content-type": "application/json"}
        if operation != "WriteBatch":
            headers["x-reconciler-context"] = '{"tree":"web"}'
        if under:
            headers["x-reconciler-lease"] = under
        if run:
            headers["x-reconciler-custody"] = run
        body = json.dumps(fields).encode() if fields else b""
        answer = exchange(self._server.port, request(verb, path, headers, body))
        assert answer is not None
        assert answer.status == 200, (operation, answer.body)
        return answer.json

    def told(self, operation: str, **fields: Any) -> tuple[str, Any]:
        """Call, and return the operation with its answer."""
        return operation, self(operation, **fields)


def _owners(call: _Caller) -> Iterator[tuple[str, Any]]:
    for name in ("Healthz", "GetMyOrg", "GetServiceInfo"):
        yield call.told(name)
    yield call.told("AddOrg", by="admin", name="new")
    yield call.told("ListOrgs", sortingColumn="ORG_FIELD_NAME_NAME")
    yield call.told("AddProject", name="p")
    yield call.told("ListProjects")
    yield call.told("GetProjectByID", id=call.known.project)
    yield call.told("UpdateProject", id=call.known.project, name="shop", projectRoleCheck=True)
    for verb in ("Deactivate", "Reactivate"):
        yield call.told(f"{verb}Project", id=call.known.project)
        yield call.told("GetProjectByID", id=call.known.project)


def _providers(call: _Caller) -> Iterator[tuple[str, Any]]:
    idp = call("AddOrgJWTIDP", name="first", **JWT)["idpId"]
    yield call.told("AddOrgJWTIDP", name="second", **JWT)
    yield call.told("ListOrgIDPs")
    yield call.told("GetOrgIDPByID", id=idp)
    yield call.told("UpdateOrgIDP", idpId=idp, name="renamed")
    yield call.told("UpdateOrgIDPJWTConfig", idpId=idp, **JWT)
    yield call.told("DeactivateOrgIDP", idpId=idp)
    yield call.told("GetOrgIDPByID", id=idp)
    yield call.told("GetProviderByID", id=idp)
    yield call.told("ReactivateOrgIDP", idpId=idp)
    yield call.told("RemoveOrgIDP", idpId=idp)
    yield call.told("AddJWTProvider", name="third", **JWT, audience="us")
    provider = call("AddJWTProvider", name="fourth", **JWT)["id"]
    yield call.told("ListProviders")
    yield call.told("GetProviderByID", id=provider)
    yield call.told("UpdateJWTProvider", id=provider, name="renamed", **JWT, audience="us")
    yield call.told("DeleteProvider", id=provider)


def _roles(call: _Caller) -> Iterator[tuple[str, Any]]:
    yield call.told("AddProjectRole", **call.project, roleKey="a/b", displayName="Manager")
    yield call.told("ListProjectRoles", **call.project)
    role = {**call.project, "roleKey": "a%2Fb"}
    yield call.told("UpdateProjectRole", **role, displayName="Manager", group="Shop")
    yield call.told("RemoveProjectRole", **role)


def _applications(call: _Caller) -> Iterator[tuple[str, Any]]:
    app = call("AddOIDCApp", **call.project, name="first")["appId"]
    spa: dict[str, Any] = {
        "authMethodType": "OIDC_AUTH_METHOD_TYPE_NONE",
        "redirectUris": ["http://x", "app://y"],
    }
    check_answer("AddOIDCApp", call("AddOIDCApp", **call.project, name="second", **spa))
    yield call.told("AddOIDCApp", **call.project, name="third")
    yield call.told("ListApps", **call.project)
    yield call.told("GetAppByID", **call.project, appId=app)
    yield call.told("UpdateApp", **call.project, appId=app, name="renamed")
    yield call.told("UpdateOIDCAppConfig", **call.project, appId=app, devMode=True)
    yield call.told("RegenerateOIDCClientSecret", **call.project, appId=app)
    yield call.told("DeactivateApp", **call.project, appId=app)
    yield call.told("GetAppByID", **call.project, appId=app)
    yield call.told("ReactivateApp", **call.project, appId=app)
    yield call.told("GetObjectHistory", id=app)
    yield call.told("RemoveApp", **call.project, appId=app)


def _actions(call: _Caller) -> Iterator[tuple[str, Any]]:
    action = call("CreateAction", name="first", script="x")["id"]
    yield call.told("CreateAction", name="second", script="x")
    yield call.told("ListActions")
    yield call.told("GetAction", id=action)
    yield call.told("UpdateAction", id=action, name="renamed", script="y")
    yield call.told("RecordContext", id=action)
    login = {"flowType": "3", "triggerType": "1"}
    yield call.told("SetTriggerActions", **login, actionIds=[action])
    yield call.told("GetFlow", type="3")
    yield call.told("ClearFlow", type="3")
    yield call.told("DeactivateAction", id=action)
    yield call.told("GetAction", id=action)
    yield call.told("ReactivateAction", id=action)
    yield call.told("DeleteAction", id=action)


def _own(call: _Caller) -> Iterator[tuple[str, Any]]:
    yield call.told("GetIAM")
    yield call.told("ListTrees")
    action = {"operation": "CreateAction", "fields": {"name": "ordered", "script": "x"}}
    removal = {"operation": "DeleteAction", "from": {"id": 1}}
    yield call.told("WriteBatch", orders=[action, action, removal])
    yield call.told("ListObjects", organizationId=call.known.organization)
    yield call.told("ListRemovals", organizationId=call.known.organization)
    lease: dict[str, Any] = {"organization": "acme", "seconds": 5}
    held = call("AcquireLease", holder="me", **lease)
    yield "AcquireLease", held
    yield from _owed(call, held["lease"])
    yield call.told("RenewLease", lease=held["lease"], **lease)
    yield call.told("ReleaseLease", organization="acme", lease=held["lease"])
    leads = call("AcquireLease", holder="me", tree="shop", **lease)["lease"]
    tree = {"organization": "acme", "tree": "shop"}
    yield call.told("PauseTree", **tree, reason="incident", seconds=60)
    yield call.told("RecordCommit", **tree, commit="a" * 40, lease=leads)
    yield call.told("ListHeads")
    yield "ListTokens", call("ListTokens", by="admin")
    here = {"organizationId": call.known.organization}
    yield call.told("ListChanges", **here)
    yield call.told("ListObjectsAt", **here, ids=[call.known.organization, "9"])
    yield call.told("ResumeTree", **tree)
    yield from _trust(call)


def _trust(call: _Caller) -> Iterator[tuple[str, Any]]:
    rule = {"kind": "issuer", "role": "viewer", "issuer": "https://issuer.example"}
    admin: dict[str, Any] = {"by": "admin", "name": "ci"}
    yield call.told("GrantTrust", claims={"sub": ["x"]}, **rule, **admin)
    yield call.told("ListTrust", by="admin")
    yield call.told("GetTrust", **admin)
    yield call.told("RevokeTrust", **admin)


def _owed(call: _Caller, lease: str) -> Iterator[tuple[str, Any]]:
    made = call("AddOIDCApp", **call.project, name="owed", run="run-1")
    mine = {"id": made["appId"], "madeAt": made["details"]["sequence"]}
    here = {"organizationId": call.known.organization}
    yield call.told("ListOwedSecrets", **here)
    yield call.told("ClaimSecrets", **here, under=lease, secrets=[mine, {"id": "9", "madeAt": 1}])
    yield call.told("AcknowledgeSecrets", **here, secrets=[mine])
