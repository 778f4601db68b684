"""A service that behaves as the facts say a ZITADEL does, surprises included.

It speaks the real messages (``protos``): unknown fields are refused, field rules and permissions
are those of each method, JSON is without zero values. It has errors for updates that change
nothing, lists that lag behind writes, lists that a server from 4.0 does not empty, instance-level
objects among those of an organization, refused preconditions as HTTP 400, conflicts that are told
as unknown errors, and neither idempotency keys nor expected sequences.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.zitadel.flows import Flows
from tests.zitadel.generations import list_functions, only_from_4
from tests.zitadel.held import Held, Item, made
from tests.zitadel.later import check_logout, check_version, login_of
from tests.zitadel.project_roles import ProjectRoles
from tests.zitadel.projects import Projects
from tests.zitadel.protos import LATER_FIELDS, Method, method
from tests.zitadel.providers import Providers, details_of
from tests.zitadel.refusals import STATUS, FakeError, check_rules, with_slug
from tests.zitadel.roles import Membership, User, memberships_of, readable
from tests.zitadel.states import ERRORS, switched

NEWEST, OLDER, OLDEST = "4.16.0", "3.4.9", "2.18.0"
GENERATIONS = (NEWEST, OLDER)
IAM, MEMBER, STRANGER = "token-iam", "token-member", "token-stranger"
MANAGEMENT = "zitadel.management.v1.ManagementService"
ADMIN = "zitadel.admin.v1.AdminService"
AUTH = "zitadel.auth.v1.AuthService"
ORGS = "zitadel.org.v2.OrganizationService"
CONFLICT = 'ERROR: duplicate key value violates unique constraint "events2_pkey" (SQLSTATE 23505)'
LISTS = ("redirectUris", "postLogoutRedirectUris", "additionalOrigins")
SETS = {
    "responseTypes": ["OIDC_RESPONSE_TYPE_CODE"],
    "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
}
BESIDE_CONFIG = {"projectId", "appId", "name"}
WITH_SECRET = {"OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_POST"}
OWNER_QUERIES = {"ownerTypeQuery", "idpIdQuery", "idQuery", "actionIdQuery"}

Handler = Callable[[Item, str], Item]
"""From the fields of a call, zeros included, and its organization to the answer."""


class FakeZitadel:
    """One instance. Any test may look into it.

    Attributes:
        version: Decides what it knows: lists that an update leaves out are kept from 4.0, JWT
            providers have an audience from 3.4.12 and 4.15.2, and a very old one has no template
            calls and no list of organizations for every user.
        console: Id of the project of its own console, or empty if it does not tell.
        is_unique: Whether names are, ignoring case.
        conflicts: How many writes to come are refused because of another writer.
        conflict: Words of that refusal; its code is unknown.
        has_slugs: Whether refusals have a slug in place of an id.
        rival: The other writer: called before such a refusal.
        calls: How often each operation was carried out.
        unknown: How many requests were for an address that it does not have.
        page_limit: The most a page has. From 4.16 a larger page is refused.
        strays: By operation, what a proxy in front of it answers instead to the next requests.
        users: By token.
    """

    def __init__(self, *, version: str = NEWEST, lag: float = 0.0, is_unique: bool = True) -> None:
        major, minor, patch = (int(part) for part in version.split("."))
        at = (major, minor, patch)
        self.version, self.at = version, at
        self.keeps_lists = at >= (4, 0, 0)
        self.knows_audience = (3, 4, 12) <= at < (4, 0, 0) or at >= (4, 15, 2)
        self.has_templates = at >= (2, 19, 0)
        self.has_org_search = at >= (2, 71, 0)
        self.refuses_large_pages = at >= (4, 16, 0)
        self.hides_refusals = (4, 11, 0) <= at < (4, 13, 2)
        self.is_unique = is_unique
        self.conflicts = 0
        self.conflict = CONFLICT
        self.has_slugs = False
        self.rival: Callable[[], object] = lambda: None
        self.page_limit = 1000
        self.calls: dict[str, int] = {}
        self.strays: dict[str, list[Response]] = {}
        self.unknown = 0
        self.console = "277"
        self.things = Held(lag)
        self.held = self.things.held
        self.secrets: dict[str, str] = {}
        self.replaced = 0
        self.flows = Flows(self.things, _view)
        self.providers = Providers(self.things, is_unique=is_unique)
        self.projects = Projects(
            self.things,
            lambda name, org: self._check_name("projects", name, owner=org),
            refuses_idle=at < (3, 3, 0),
        )
        self.roles = ProjectRoles(self.things, self._projects)
        self.organization: str = self.things.add("orgs", {"name": "acme"})["id"]
        self.users = {
            IAM: User(self.organization, (Membership("IAM_OWNER"),)),
            MEMBER: User(self.organization, (Membership("ORG_OWNER", self.organization),)),
            STRANGER: User(self.things.add("orgs", {"name": "elsewhere"})["id"], ()),
        }
        for kind, config in (("idps", "config"), ("oldIdps", "jwtConfig")):
            system = {"name": "system", "owner": "IDP_OWNER_TYPE_SYSTEM", config: {}}
            self.things.add(kind, system, "instance", "299999999999999999")

    # What tests put in and look at.

    @property
    def lag(self) -> float:
        """Return the seconds after which lists show what was written."""
        return self.things.lag

    @lag.setter
    def lag(self, seconds: float) -> None:
        self.things.lag = seconds

    def put(self, kind: str, **fields: Any) -> Item:
        """Hold an object, as another tool would have made it."""
        return self.things.add(kind, fields, "" if kind == "orgs" else self.organization)

    def put_provider(self, name: str, **fields: Any) -> Item:
        """Hold a JWT provider that the console made, with the template calls."""
        return self.providers.add({"name": name, **fields}, self.organization)

    def put_old_provider(self, name: str, **fields: Any) -> Item:
        """Hold a JWT provider that a tool made with the old calls; return what these see."""
        return self.providers.add_old({"name": name, **fields}, self.organization)

    def deactivate(self, kind: str, object_id: str) -> None:
        """Switch an object off, as the console does; of a provider, as an old call does."""
        item = self.held[kind][object_id]
        switched(self.things, kind, item, "INACTIVE", "")

    def named(self, kind: str, name: str) -> list[Item]:
        """Return the objects of a name."""
        return [item for item in self.held[kind].values() if item["name"] == name]

    def app(self) -> Starlette:
        """Return the application."""
        routes = []
        for service, handlers in self._operations().items():
            for name, handler in handlers.items():
                found = method(service, name)
                endpoint = self._endpoint(found, handler)
                path = found.path.replace("=**}", ":path}")  # the rest of it, slashes included
                routes.append(Route(path, endpoint, methods=[found.verb]))
        if self.keeps_lists:
            found = only_from_4()
            endpoint = self._endpoint(found, list_functions)
            routes.append(Route(found.path, endpoint, methods=[found.verb]))
        # A fixed path comes before one with a parameter in its place.
        routes.sort(key=lambda route: route.path.replace("{", "\x7f"))
        return Starlette(routes=routes, exception_handlers={HTTPException: self._no_route})

    # The wire.

    def _operations(self) -> Mapping[str, Mapping[str, Handler]]:
        idps = self.providers
        templates: dict[str, Handler] = {
            "ListProviders": self._list("idps"),
            "GetProviderByID": self._get("idps", "idp"),
            "AddJWTProvider": lambda asked, org: _with_id(idps.add(asked, org), "id"),
            "UpdateJWTProvider": idps.update,
            "DeleteProvider": idps.remove,
        }
        return {
            ADMIN: {"ListOrgs": self._list("orgs")},
            AUTH: {"ListMyMemberships": self._my_memberships},
            # Its answer says the same as that of the old call, with other details.
            ORGS: {"ListOrganizations": self._list("orgs")} if self.has_org_search else {},
            MANAGEMENT: {
                "GetIAM": self._iam,
                "GetMyOrg": self._my_org,
                "AddOrg": self._add_org,
                "ListProjects": self._list("projects"),
                "GetProjectByID": self._get("projects", "project"),
                "AddProject": self.projects.add,
                "UpdateProject": self.projects.update,
                "DeactivateProject": self._switch("projects", "id", "INACTIVE"),
                "ReactivateProject": self._switch("projects", "id", "ACTIVE"),
                "ListProjectRoles": self._list("roles"),
                "AddProjectRole": self.roles.add,
                "UpdateProjectRole": self.roles.update,
                "RemoveProjectRole": self.roles.remove,
                "ListApps": self._list("apps"),
                "AddOIDCApp": self._add_app,
                "GetAppByID": self._get("apps", "app", "appId"),
                "UpdateApp": self._rename_app,
                "UpdateOIDCAppConfig": self._configure_app,
                "RemoveApp": self._remove("apps", "appId"),
                "DeactivateApp": self._switch("apps", "appId", "INACTIVE"),
                "ReactivateApp": self._switch("apps", "appId", "ACTIVE"),
                "RegenerateOIDCClientSecret": self._secret,
                "AddOrgJWTIDP": lambda asked, org: _with_id(idps.add_old(asked, org), "idpId"),
                "ListOrgIDPs": self._list("oldIdps"),
                "GetOrgIDPByID": self._get("oldIdps", "idp"),
                "UpdateOrgIDP": idps.rename_old,
                "UpdateOrgIDPJWTConfig": idps.configure_old,
                "DeactivateOrgIDP": partial(idps.set_state_old, state="INACTIVE"),
                "ReactivateOrgIDP": partial(idps.set_state_old, state="ACTIVE"),
                "RemoveOrgIDP": idps.remove_old,
                **(templates if self.has_templates else {}),
                "ListActions": self._list("actions"),
                "CreateAction": self._add_action,
                "GetAction": self._get("actions", "action"),
                "UpdateAction": self._update_action,
                "DeleteAction": self._remove("actions", "id"),
                "DeactivateAction": self._switch("actions", "id", "INACTIVE"),
                "ReactivateAction": self._switch("actions", "id", "ACTIVE"),
                "GetFlow": self.flows.get,
                "SetTriggerActions": self.flows.set,
                "ClearFlow": self.flows.clear,
            },
        }

    async def _no_route(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        self.unknown += 1
        code = 12 if error.status_code == 405 else 5
        return JSONResponse({"code": code, "message": error.detail}, error.status_code)

    def _endpoint(
        self, found: Method, handler: Handler
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if self.strays.get(found.name):
                return self.strays[found.name].pop(0)
            try:
                message = await self._message(found, request)
                return JSONResponse(self._answer(found, handler, message, request))
            except FakeError as error:
                body = with_slug(error.body) if self.has_slugs else error.body
                return JSONResponse(body, STATUS[error.code])

        return endpoint

    async def _message(self, found: Method, request: Request) -> Message:
        """Read a request as the gateway does, before any right is checked."""
        content = await request.body()
        try:
            fields = {**(json.loads(content) if content else {}), **request.path_params}
            if not self.knows_audience:
                # The gateway drops a field that its server is too old for. Every other unknown
                # field is a mistake of ours, and refused here.
                later = {each[1] for each in LATER_FIELDS}
                fields = {name: value for name, value in fields.items() if name not in later}
            return ParseDict(fields, found.request())
        except (ValueError, ParseError) as failure:
            raise FakeError(3, "", f"proto: {failure}") from None

    def _answer(self, found: Method, handler: Handler, message: Message, request: Request) -> Item:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.users:
            raise FakeError(16, "AUTH-7fs1e", "Token is invalid")
        user = self.users[token]
        organization = request.headers.get("x-zitadel-orgid", "") or user.home
        if organization not in self.held["orgs"]:
            raise FakeError(7, "AUTH-Bs7Ds", "Organisation doesn't exist")
        user.check(found, message, organization, self._projects(organization))
        self._check_rules(message)
        check_version(self.at, message)
        self.calls[found.name] = self.calls.get(found.name, 0) + 1
        if self.conflicts and found.verb != "GET" and not found.path.endswith("_search"):
            self.conflicts -= 1
            self.rival()
            raise FakeError(2, "", self.conflict)
        asked = MessageToDict(message, always_print_fields_with_no_presence=True)
        answer = handler(asked, organization)
        if found.name == "ListOrganizations":
            answer = readable(answer, user)
        elif found.name == "ListMyMemberships":
            answer = self._page(memberships_of(user, self.held, asked), asked.get("query", {}))
        return MessageToDict(ParseDict(answer, found.answer(), ignore_unknown_fields=False))

    def _check_rules(self, message: Message) -> None:
        try:
            check_rules(message)
        except FakeError as error:
            if self.hides_refusals:
                # As zitadel#11730 has it, for what is refused before the server's own code.
                told = f"rpc error: code = InvalidArgument desc = {error.message} ()"
                raise FakeError(2, "", told) from None
            raise

    def _projects(self, organization: str) -> list[str]:
        projects = self.held["projects"].values()
        return [each["id"] for each in projects if _owner(each) == organization]

    # Organizations and projects.

    def _iam(self, asked: Item, org: str) -> Item:
        return {"globalOrgId": "1", "iamProjectId": self.console, "defaultOrgId": self.organization}

    def _my_memberships(self, asked: Item, org: str) -> Item:
        return asked  # the answer is made where the user is known

    def _my_org(self, asked: Item, org: str) -> Item:
        return {"org": self.held["orgs"][org]}

    def _add_org(self, asked: Item, org: str) -> Item:
        self._check_name("orgs", asked["name"])
        return _made(self.things.add("orgs", {"name": asked["name"]}))

    # Applications.

    def _add_app(self, asked: Item, org: str) -> Item:
        project = asked["projectId"]
        if project not in self._projects(org):
            raise FakeError(9, "COMMA-VCnwD", "Errors.Project.NotFound")
        self._check_name("apps", asked["name"], project=project)
        check_logout(self.at, asked)
        config = {"clientId": self.things.new_id(), **self._oidc(asked, {})}
        item = {"name": asked["name"], "project": project, "oidcConfig": config}
        held = self.things.add("apps", item, org)
        answer = {"appId": held["id"], "details": made(held), "clientId": config["clientId"]}
        if config["authMethodType"] in WITH_SECRET:
            answer["clientSecret"] = self._new_secret(held["id"])
        return answer

    def _rename_app(self, asked: Item, org: str) -> Item:
        item = self._one("apps", asked["appId"], "COMMAND-28di9", org)
        if item["name"] == asked["name"]:
            raise FakeError(9, "COMMAND-2m8vx", "Errors.NoChangesFound")
        self._check_name("apps", asked["name"], project=item["project"])
        return self._changed("apps", item, {"name": asked["name"]})

    def _configure_app(self, asked: Item, org: str) -> Item:
        item = self._one("apps", asked["appId"], "COMMAND-2n8uU", org)
        if "oidcConfig" not in item:
            raise FakeError(3, "COMMAND-GBr34", "Errors.Project.App.IsNotOIDC")
        check_logout(self.at, asked)
        config = {**item["oidcConfig"], **self._oidc(asked, item["oidcConfig"])}
        if config == item["oidcConfig"]:
            raise FakeError(9, "COMMAND-1m88i", "Errors.NoChangesFound")
        return self._changed("apps", item, {"oidcConfig": config})

    def _oidc(self, asked: Item, before: Mapping[str, Any]) -> Item:
        """Return a configuration: scalars as sent or zero; from 4.0 an empty list is none."""
        kept = before if self.keeps_lists else {}
        return {
            **{name: value for name, value in asked.items() if name not in BESIDE_CONFIG},
            **{name: asked[name] or default for name, default in SETS.items()},
            **{name: asked[name] or kept.get(name, []) for name in LISTS},
            "clockSkew": asked.get("clockSkew", "0s"),
            **login_of(asked, before),
            "noneCompliant": False,
        }

    def _secret(self, asked: Item, org: str) -> Item:
        item = self._one("apps", asked["appId"], "COMMAND-2g66f", org)
        self.replaced += 1
        return {**self._changed("apps", item, {}), "clientSecret": self._new_secret(item["id"])}

    # Actions.

    def _add_action(self, asked: Item, org: str) -> Item:
        self._check_name("actions", asked["name"], owner=org)
        return _made(self.things.add("actions", _action(asked), org))

    def _update_action(self, asked: Item, org: str) -> Item:
        item = self._one("actions", asked["id"], "COMMAND-Sfg2t", org)
        fields = _action(asked)
        if all(item.get(name) == value for name, value in fields.items()):
            raise FakeError(9, "ACTION-dg4t2", "Errors.NoChangesFound")
        self._changed("actions", item, fields)
        return {"details": made(item)}  # the time of the change stands there

    # Every kind.

    def _switch(self, kind: str, parameter: str, state: str) -> Handler:
        def switch(asked: Item, org: str) -> Item:
            missing, refused = ERRORS[kind, state]
            item = self._one(kind, asked[parameter], missing, org)
            return {"details": switched(self.things, kind, item, state, refused)}

        return switch

    def _remove(self, kind: str, parameter: str) -> Handler:
        def remove(asked: Item, org: str) -> Item:
            item = self._one(kind, asked[parameter], "COMMAND-0po9s", org)
            self.things.remove(kind, item)
            return {"details": dict(item["details"])} if kind == "apps" else {}

        return remove

    def _get(self, kind: str, name: str, parameter: str = "id") -> Handler:
        def get(asked: Item, org: str) -> Item:
            self.things.catch_up(None if kind == "actions" else float("inf"))
            item = self.things.shown[kind].get(asked[parameter])
            if item is None or _owner(item) not in {org, "instance"}:
                raise FakeError(5, "QUERY-pCP8P", "not found")
            return {name: _view(item)}

        return get

    def _list(self, kind: str) -> Handler:
        def list_them(asked: Item, org: str) -> Item:
            self.things.catch_up()
            items = list(self.things.shown[kind].values())
            if kind in {"apps", "roles"}:
                items = [item for item in items if item.get("project") == asked["projectId"]]
            if kind != "orgs":
                items = [item for item in items if _owner(item) in {org, "instance"}]
            for query in asked.get("queries", []):
                items = [item for item in items if _matches(item, query)]
            return self._page(items, asked.get("query", {}))

        return list_them

    def _page(self, items: list[Item], query: Mapping[str, Any]) -> Item:
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 0))
        if limit > self.page_limit and self.refuses_large_pages:
            raise FakeError(3, "QUERY-4M0fs", "Errors.Query.LimitExceeded")
        limit = min(limit or self.page_limit, self.page_limit)
        page = items[offset : offset + limit]
        total = len(items) if offset < len(items) else 0
        return {
            "details": {"totalResult": str(total), "viewTimestamp": "2026-01-01T00:00:00Z"},
            "result": [_view(item) for item in page],
        }

    def _one(self, kind: str, object_id: str, error_id: str, org: str) -> Item:
        item = self.things.one(kind, object_id, error_id)
        if _owner(item) != org:
            raise FakeError(5, error_id, "not found")
        return item

    def _check_name(self, kind: str, name: str, *, owner: str = "", project: str = "") -> None:
        for item in self.held[kind].values():
            beside = item.get("project", "") == project if project else (
                kind == "orgs" or _owner(item) == owner
            )  # fmt: skip
            if self.is_unique and beside and item["name"].lower() == name.lower():
                raise FakeError(6, "V3-DKcYh", "Errors.AlreadyExists")

    def _changed(self, kind: str, item: Item, fields: Mapping[str, Any]) -> Item:
        item.update(fields)
        return {"details": self.things.touch(kind, item)}

    def _new_secret(self, object_id: str) -> str:
        secret = f"{object_id}{self.things.new_id()}"
        self.secrets[object_id] = secret
        return secret


def _with_id(item: Item, name: str) -> Item:
    return {name: item["id"], **details_of(item)}


def _made(item: Item) -> Item:
    return {"id": item["id"], "details": made(item)}


def _owner(item: Item) -> str:
    return str(item["details"]["resourceOwner"])


def _action(asked: Item) -> Item:
    timeout = asked.get("timeout", "0s")
    return {
        "name": asked["name"],
        "script": asked["script"],
        "timeout": "20s" if timeout == "0s" else timeout,
        "allowedToFail": asked["allowedToFail"],
    }


def _view(item: Item) -> Item:
    hidden = {"project", "id"} if "key" in item else {"project"}  # a role has no id
    return {name: value for name, value in item.items() if name not in hidden}


def _matches(item: Item, query: Mapping[str, Any]) -> bool:
    if not query:
        raise FakeError(3, "MGMT-dsg3z", "List.Query.Invalid")
    ((name, asked),) = query.items()
    if name == "ownerTypeQuery":
        return bool(item.get("owner") == asked["ownerType"])
    if name in OWNER_QUERIES:
        return bool(item["id"] == asked["id"])
    if name == "projectResourceOwnerQuery":
        return bool(_owner(item) == asked["resourceOwner"])
    if name == "keyQuery":
        asked, item = {**asked, "name": asked["key"]}, {"name": item["key"]}
    if asked["method"].endswith("_IGNORE_CASE"):
        return bool(item["name"].lower() == asked["name"].lower())
    return bool(item["name"] == asked["name"])
