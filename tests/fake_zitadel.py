"""A service that behaves as the facts say a ZITADEL does, surprises included.

JSON without zero values, errors for updates that change nothing, lists that cannot be emptied,
lists that lag behind writes, instance-level objects among those of an organization, refused
preconditions as HTTP 400, and neither idempotency keys nor expected sequences.
"""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

IAM, MEMBER, STRANGER = "token-iam", "token-member", "token-stranger"
LISTS = ("redirectUris", "postLogoutRedirectUris", "additionalOrigins")
FLAGS = (
    "devMode",
    "accessTokenRoleAssertion",
    "idTokenRoleAssertion",
    "idTokenUserinfoAssertion",
    "skipNativeAppSuccessPage",
)
ENUMS = {
    "appType": "OIDC_APP_TYPE_WEB",
    "authMethodType": "OIDC_AUTH_METHOD_TYPE_BASIC",
    "accessTokenType": "OIDC_TOKEN_TYPE_BEARER",
}
SETS = {
    "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
    "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
}
NOTHING: tuple[Any, ...] = (
    False, 0, "", [], None, "OIDC_VERSION_1_0", "STYLING_TYPE_UNSPECIFIED", *ENUMS.values(),
)  # fmt: skip
WITH_SECRET = {"OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_POST"}
STATUS = {3: 400, 5: 404, 6: 409, 7: 403, 9: 400, 10: 409, 12: 405, 13: 500, 16: 401, 2: 500}

Item = dict[str, Any]


class FakeError(Exception):
    """Why the fake says no."""

    def __init__(self, code: int, error_id: str, message: str = "no") -> None:
        super().__init__(message)
        self.code = code
        self.error_id = error_id
        self.message = message


class FakeZitadel:
    """One instance. Any test may look into it.

    Attributes:
        lag: Seconds after which lists show what was written.
        is_unique: Whether names are, ignoring case.
        conflicts: How many writes to come are refused because of another writer.
        calls: How often each operation was carried out.
        page_limit: The most a page has, whatever is asked for.
    """

    def __init__(self, *, lag: float = 0.0, is_unique: bool = True) -> None:
        self.lag = lag
        self.is_unique = is_unique
        self.conflicts = 0
        self.page_limit = 1000
        self.calls: dict[str, int] = {}
        self.held: dict[str, dict[str, Item]] = {
            kind: {} for kind in ("orgs", "projects", "apps", "idps", "actions")
        }
        self.shown = copy.deepcopy(self.held)
        self.secrets: dict[str, str] = {}
        self.replaced = 0
        self._due: list[tuple[float, str, str, Item | None]] = []
        self._ids = itertools.count(300000000000000000)
        self._sequences: dict[str, int] = {}
        self.organization = self._put("orgs", {"name": "acme"}, own=True)["id"]
        system = {"name": "system", "owner": "IDP_OWNER_TYPE_SYSTEM", "jwtConfig": {}}
        self._put("idps", {**system, "details": {"resourceOwner": "instance"}}, owner="instance")

    # What tests put in and look at.

    def put(self, kind: str, **fields: Any) -> Item:
        """Hold an object, as somebody else would have made it."""
        return self._put(kind, fields)

    def named(self, kind: str, name: str) -> list[Item]:
        """Return the objects of a name."""
        return [item for item in self.held[kind].values() if item["name"] == name]

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route(path, self._endpoint(name, handler), methods=[verb])
                for verb, path, name, handler in self._operations()
            ]
        )

    # The wire.

    def _operations(self) -> list[tuple[str, str, str, Callable[[Request, Item], Item]]]:
        management, app = "/management/v1", "/management/v1/projects/{project}/apps/{app}"
        return [
            ("GET", f"{management}/iam", "GetIAM", self._iam),
            ("POST", "/admin/v1/orgs/_search", "ListOrgs", self._list_orgs),
            ("GET", f"{management}/orgs/me", "GetMyOrg", self._my_org),
            ("POST", f"{management}/orgs", "AddOrg", self._add_org),
            ("POST", f"{management}/projects", "AddProject", self._add_project),
            ("POST", f"{management}/projects/_search", "ListProjects", self._list("projects")),
            ("POST", f"{management}/projects/{{project}}/apps/oidc", "AddOIDCApp", self._add_app),
            ("POST", f"{management}/projects/{{project}}/apps/_search", "ListApps",
             self._list("apps")),
            ("GET", app, "GetAppByID", self._get("apps", "app")),
            ("PUT", app, "UpdateApp", self._rename_app),
            ("PUT", f"{app}/oidc_config", "UpdateOIDCAppConfig", self._configure_app),
            ("DELETE", app, "RemoveApp", self._remove("apps", "app")),
            ("POST", f"{app}/oidc_config/_generate_client_secret", "Regenerate", self._secret),
            ("POST", f"{management}/idps/jwt", "AddOrgJWTIDP", self._add_idp),
            ("POST", f"{management}/idps/_search", "ListOrgIDPs", self._list("idps")),
            ("GET", f"{management}/idps/{{idp}}", "GetOrgIDPByID", self._get("idps", "idp")),
            ("PUT", f"{management}/idps/{{idp}}", "UpdateOrgIDP", self._rename_idp),
            ("PUT", f"{management}/idps/{{idp}}/jwt_config", "UpdateOrgIDPJWTConfig",
             self._configure_idp),
            ("DELETE", f"{management}/idps/{{idp}}", "RemoveOrgIDP", self._remove("idps", "idp")),
            ("POST", f"{management}/actions", "CreateAction", self._add_action),
            ("POST", f"{management}/actions/_search", "ListActions", self._list("actions")),
            ("GET", f"{management}/actions/{{action}}", "GetAction",
             self._get("actions", "action")),
            ("PUT", f"{management}/actions/{{action}}", "UpdateAction", self._update_action),
            ("DELETE", f"{management}/actions/{{action}}", "DeleteAction",
             self._remove("actions", "action")),
        ]  # fmt: skip

    def _endpoint(
        self, name: str, handler: Callable[[Request, Item], Item]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                token = request.headers.get("authorization", "").removeprefix("Bearer ")
                self._check(name, token, request)
                content = await request.body()
                body = await request.json() if content else {}
                self.calls[name] = self.calls.get(name, 0) + 1
                self._conflict(request)
                return JSONResponse(_without_zeros(handler(request, body)))
            except FakeError as error:
                return _error(error)

        return endpoint

    def _conflict(self, request: Request) -> None:
        if self.conflicts and request.method != "GET" and "_search" not in request.url.path:
            self.conflicts -= 1
            raise FakeError(10, "V3-conflict", "somebody else wrote")

    def _check(self, name: str, token: str, request: Request) -> None:
        if token not in {IAM, MEMBER, STRANGER}:
            raise FakeError(16, "AUTH-7fs1e", "Token is invalid")
        if name == "GetIAM":
            return
        if token == STRANGER:
            raise FakeError(5, "AUTHZ-cdgFk", "Errors.Membership.NotFound")
        if name in {"ListOrgs", "AddOrg"} and token != IAM:
            raise FakeError(7, "AUTH-5mWD2", "No matching permissions found")

    def _iam(self, request: Request, body: Item) -> Item:
        return {"globalOrgId": "1", "iamProjectId": "277", "defaultOrgId": self.organization}

    def _my_org(self, request: Request, body: Item) -> Item:
        return {"org": self.held["orgs"][self._org(request)]}

    def _add_org(self, request: Request, body: Item) -> Item:
        return self._made(self._put("orgs", {"name": body["name"]}, own=True))

    def _add_project(self, request: Request, body: Item) -> Item:
        self._check_name("projects", body["name"], owner=self._org(request))
        return self._made(self._put("projects", {"name": body["name"]}, self._org(request)))

    def _add_app(self, request: Request, body: Item) -> Item:
        project = request.path_params["project"]
        if project not in self.held["projects"]:
            raise FakeError(9, "COMMA-VCnwD", "Errors.Project.NotFound")
        self._check_name("apps", body["name"], project=project)
        config = {"clientId": str(next(self._ids)), **_oidc(body, {})}
        item = {"name": body["name"], "project": project, "oidcConfig": config}
        made = self._put("apps", item, self._org(request))
        answer = {**self._made(made, "appId"), "clientId": config["clientId"]}
        if config["authMethodType"] in WITH_SECRET:
            answer["clientSecret"] = self._new_secret(made["id"])
        return answer

    def _rename_app(self, request: Request, body: Item) -> Item:
        item = self._one("apps", request.path_params["app"], "COMMAND-28di9")
        if item["name"] == body["name"]:
            raise FakeError(9, "COMMAND-2m8vx", "Errors.NoChangesFound")
        self._check_name("apps", body["name"], project=item["project"])
        return self._changed("apps", item, {"name": body["name"]})

    def _configure_app(self, request: Request, body: Item) -> Item:
        item = self._one("apps", request.path_params["app"], "COMMAND-2n8uU")
        if "oidcConfig" not in item:
            raise FakeError(3, "COMMAND-GBr34", "Errors.Project.App.IsNotOIDC")
        config = {**item["oidcConfig"], **_oidc(body, item["oidcConfig"])}
        if config == item["oidcConfig"]:
            raise FakeError(9, "COMMAND-1m88i", "Errors.NoChangesFound")
        return self._changed("apps", item, {"oidcConfig": config})

    def _secret(self, request: Request, body: Item) -> Item:
        item = self._one("apps", request.path_params["app"], "COMMAND-2g66f")
        self.replaced += 1
        return {**self._changed("apps", item, {}), "clientSecret": self._new_secret(item["id"])}

    def _add_idp(self, request: Request, body: Item) -> Item:
        if not body.get("headerName"):
            raise FakeError(3, "", "invalid AddOrgJWTIDPRequest.HeaderName")
        self._check_name("idps", body["name"], owner=self._org(request))
        item = {
            "name": body["name"],
            "owner": "IDP_OWNER_TYPE_ORG",
            "stylingType": body.get("stylingType", ""),
            "autoRegister": body.get("autoRegister", False),
            "jwtConfig": {name: body.get(name, "") for name in JWT},
        }
        return self._made(self._put("idps", item, self._org(request)), "idpId")

    def _rename_idp(self, request: Request, body: Item) -> Item:
        item = self._one("idps", request.path_params["idp"], "Org-1J9fs")
        fields = {
            "name": body["name"],
            "stylingType": body.get("stylingType", ""),
            "autoRegister": body.get("autoRegister", False),
        }
        if all(item.get(name) == value for name, value in fields.items()):
            raise FakeError(9, "Org-jf9w", "Errors.Org.IDPConfig.NotChanged")
        return self._changed("idps", item, fields)

    def _configure_idp(self, request: Request, body: Item) -> Item:
        item = self._one("idps", request.path_params["idp"], "Org-67J9d")
        config = {name: body.get(name, "") for name in JWT}
        if config == item["jwtConfig"]:
            raise FakeError(9, "Org-2k9fs", "Errors.Org.IDPConfig.NotChanged")
        return self._changed("idps", item, {"jwtConfig": config})

    def _add_action(self, request: Request, body: Item) -> Item:
        self._check_name("actions", body["name"], owner=self._org(request))
        return self._made(self._put("actions", _action(body), self._org(request)))

    def _update_action(self, request: Request, body: Item) -> Item:
        item = self._one("actions", request.path_params["action"], "COMMAND-Sfg2t")
        fields = _action(body)
        if all(item[name] == value for name, value in fields.items()):
            raise FakeError(9, "ACTION-dg4t2", "Errors.NoChangesFound")
        details = self._changed("actions", item, fields)["details"]
        return {"details": {**details, "creationDate": details["changeDate"]}}

    def _remove(self, kind: str, parameter: str) -> Callable[[Request, Item], Item]:
        def remove(request: Request, body: Item) -> Item:
            item = self._one(kind, request.path_params[parameter], "COMMAND-0po9s")
            del self.held[kind][item["id"]]
            self._later(kind, item["id"], None)
            return {} if kind != "apps" else {"details": self._details(item)}

        return remove

    def _get(self, kind: str, parameter: str) -> Callable[[Request, Item], Item]:
        def get(request: Request, body: Item) -> Item:
            if kind == "actions":
                self._catch_up(time.monotonic())
            else:
                self._catch_up(float("inf"))
            item = self.shown[kind].get(request.path_params[parameter])
            if item is None:
                raise FakeError(5, "QUERY-pCP8P", "not found")
            return {parameter: _view(item)}

        return get

    def _list(self, kind: str) -> Callable[[Request, Item], Item]:
        def list_them(request: Request, body: Item) -> Item:
            self._catch_up(time.monotonic())
            items = list(self.shown[kind].values())
            if kind == "apps":
                project = request.path_params["project"]
                items = [item for item in items if item.get("project") == project]
            elif kind != "orgs":
                mine = {self._org(request), "instance"}
                items = [item for item in items if item["details"]["resourceOwner"] in mine]
            for query in body.get("queries", []):
                items = [item for item in items if _matches(item, query)]
            return self._page(items, body.get("query", {}))

        return list_them

    def _list_orgs(self, request: Request, body: Item) -> Item:
        return self._list("orgs")(request, body)

    def _page(self, items: list[Item], query: Mapping[str, Any]) -> Item:
        offset = int(query.get("offset", 0))
        limit = min(int(query.get("limit", 0)) or self.page_limit, self.page_limit)
        page = items[offset : offset + limit]
        total = len(items) if offset < len(items) else 0
        return {
            "details": {"totalResult": str(total or ""), "viewTimestamp": "2026-01-01T00:00:00Z"},
            "result": [_view(item) for item in page],
        }

    # What is held.

    def _org(self, request: Request) -> str:
        named = request.headers.get("x-zitadel-orgid", "") or self.organization
        if named not in self.held["orgs"]:
            raise FakeError(7, "AUTH-Bs7Ds", "Organisation doesn't exist")
        return named

    def _one(self, kind: str, object_id: str, error_id: str) -> Item:
        if object_id not in self.held[kind]:
            raise FakeError(5, error_id, "not found")
        return self.held[kind][object_id]

    def _check_name(self, kind: str, name: str, *, owner: str = "", project: str = "") -> None:
        for item in self.held[kind].values():
            beside = item.get("project", "") == project if project else (
                item["details"]["resourceOwner"] == owner
            )  # fmt: skip
            if self.is_unique and beside and item["name"].lower() == name.lower():
                raise FakeError(6, "V3-DKcYh", "Errors.AlreadyExists")

    def _put(
        self, kind: str, fields: Mapping[str, Any], owner: str = "", *, own: bool = False
    ) -> Item:
        object_id = str(next(self._ids))
        item: Item = {**fields, "id": object_id, "state": "ACTIVE"}
        item["details"] = {"resourceOwner": object_id if own else owner or self.organization}
        self.held[kind][object_id] = item
        self._touch(kind, item)
        return item

    def _touch(self, kind: str, item: Item) -> None:
        owner: str = item["details"]["resourceOwner"]
        aggregates: dict[str, str] = {"apps": item.get("project", ""), "idps": owner}
        aggregate = aggregates.get(kind, str(item["id"]))
        self._sequences[aggregate] = self._sequences.get(aggregate, 0) + (
            2 if kind == "apps" else 1
        )
        item["details"] = {
            "sequence": str(self._sequences[aggregate]),
            "changeDate": "2026-01-01T00:00:00.123456Z",
            "resourceOwner": owner,
        }
        self._later(kind, item["id"], item)

    def _changed(self, kind: str, item: Item, fields: Mapping[str, Any]) -> Item:
        item.update(fields)
        self._touch(kind, item)
        return {"details": dict(item["details"])}

    def _made(self, item: Item, name: str = "id") -> Item:
        return {name: item["id"], "details": self._details(item)}

    def _details(self, item: Item) -> Item:
        details = dict(item["details"])
        details["creationDate"] = details.pop("changeDate")
        return details

    def _new_secret(self, object_id: str) -> str:
        secret = f"{object_id}{next(self._ids)}"
        self.secrets[object_id] = secret
        return secret

    def _later(self, kind: str, object_id: str, item: Item | None) -> None:
        due = time.monotonic() + self.lag
        self._due.append((due, kind, object_id, copy.deepcopy(item)))
        if not self.lag:
            self._catch_up(float("inf"))

    def _catch_up(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            _, kind, object_id, item = self._due.pop(0)
            if item is None:
                self.shown[kind].pop(object_id, None)
            else:
                self.shown[kind][object_id] = item


JWT = ("jwtEndpoint", "issuer", "keysEndpoint", "headerName")


def _oidc(body: Mapping[str, Any], before: Mapping[str, Any]) -> Item:
    """Return a configuration: scalars as sent or zero; an empty list is none at all."""
    return {
        **{name: body.get(name, False) for name in FLAGS},
        **{name: body.get(name, zero) for name, zero in ENUMS.items()},
        **{name: body.get(name) or default for name, default in SETS.items()},
        **{name: body.get(name) or before.get(name, []) for name in LISTS},
        "clockSkew": body.get("clockSkew", "0s"),
        "backChannelLogoutUri": body.get("backChannelLogoutUri", ""),
        "loginVersion": body.get("loginVersion"),
        "noneCompliant": False,
    }


def _action(body: Mapping[str, Any]) -> Item:
    timeout = body.get("timeout", "0s")
    return {
        "name": body["name"],
        "script": body["script"],
        "timeout": "20s" if timeout == "0s" else timeout,
        "allowedToFail": body.get("allowedToFail", False),
    }


def _view(item: Item) -> Item:
    return {name: value for name, value in item.items() if name != "project"}


def _matches(item: Item, query: Mapping[str, Any]) -> bool:
    ((name, asked),) = query.items()
    if name == "ownerTypeQuery":
        return bool(item.get("owner") == asked["ownerType"])
    assert asked["method"] == "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"
    return bool(item["name"].lower() == asked["name"].lower())


def _without_zeros(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if not _is_zero(inner)}
        return {name: _without_zeros(inner) for name, inner in kept.items()}
    return [_without_zeros(inner) for inner in value] if isinstance(value, list) else value


def _is_zero(value: Any) -> bool:
    return not isinstance(value, dict) and value in NOTHING


def _error(error: FakeError) -> Response:
    body: Item = {"code": error.code, "message": error.message}
    if error.error_id:
        body["message"] += f" ({error.error_id})"
        detail = {"@type": "type.googleapis.com/zitadel.v1.ErrorDetail", "id": error.error_id}
        body["details"] = [{**detail, "message": error.message}]
    return JSONResponse(body, STATUS[error.code])
