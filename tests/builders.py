"""Resources, objects and states, sound by default: a test states its subject alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.apply.sink import (
    Application,
    Delivery,
    Followed,
    Kept,
    Move,
    NotGivenError,
    Stops,
    never,
)
from reconciler.diagnostics import SourceLocation
from reconciler.errors import (
    AlreadyExistsError,
    LocalFileError,
    ObjectNotFoundError,
    PreconditionFailedError,
    ServiceError,
    ServiceUnavailableError,
)
from reconciler.kinds.oidc_application.compliance import has_client_secret
from reconciler.plan.guards import Allowances
from reconciler.plan.model import Plan, Scope
from reconciler.plan.planner import build_plan
from reconciler.report.place import Place
from reconciler.resources.capabilities import BEYOND
from reconciler.resources.normal import LEFT_AS_HELD, normal_form
from reconciler.resources.ref import (
    IN_PROJECT,
    Kind,
    ResourceRef,
    fold,
    organization_ref,
    owner_of,
    project_ref,
)
from reconciler.resources.secret import Secret
from reconciler.service_client.port import (
    CreateOrder,
    DeleteOrder,
    Order,
    SecretOrder,
    UpdateOrder,
    Written,
)
from reconciler.state import (
    DesiredState,
    FeedEvent,
    ObjectEvent,
    ObservedObject,
    ObservedState,
    OwedSecret,
    Removal,
    Resource,
)
from reconciler.validation.desired import Judgement
from tests.examples import JWT

BASIC = "OIDC_AUTH_METHOD_TYPE_BASIC"
NONE = "OIDC_AUTH_METHOD_TYPE_NONE"
TREE = "default"


def an_application(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of a web application, which has a client secret."""
    return {"redirectUris": ["https://shop.example.com/callback"], **spec}


def a_public_application(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of an application without a client secret."""
    return an_application(authMethodType=NONE, **spec)


def an_action(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of an action."""
    return {"script": "function greet(ctx, api) {\n  return 1;\n}\n", **spec}


def a_jwt_config(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of a JWT identity provider."""
    return {**JWT, **spec}


def an_action_flow(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of the flow in which tokens are made."""
    return {"PRE_USERINFO_CREATION": ["greet"], **spec}


def a_role(**spec: Any) -> dict[str, Any]:
    """Return what a manifest says of a role."""
    return {"displayName": "Order manager", **spec}


_SAID = {
    Kind.OIDC_APPLICATION: an_application,
    Kind.ACTION: an_action,
    Kind.IDP_JWT_CONFIG: a_jwt_config,
    Kind.ACTION_FLOW: an_action_flow,
    Kind.PROJECT_ROLE: a_role,
}


def a_ref(
    kind: Kind = Kind.OIDC_APPLICATION,
    name: str = "storefront",
    organization: str = "acme",
    project: str = "shop",
) -> ResourceRef:
    """Return a ref; kinds without a project take no notice of it."""
    if kind is Kind.ORGANIZATION:
        return organization_ref(organization)
    return ResourceRef(kind, organization, project if kind in IN_PROJECT else "", name)


ACME = organization_ref("acme")
SHOP = project_ref("acme", "shop")
WEB = a_ref()
GREET = a_ref(Kind.ACTION, "greet")
PARTNER = a_ref(Kind.IDP_JWT_CONFIG, "partner")
TOKEN = a_ref(Kind.ACTION_FLOW, "COMPLEMENT_TOKEN")
MANAGER = a_ref(Kind.PROJECT_ROLE, "orders.manage")


@dataclass(frozen=True)
class FakeSource:
    """A place for every value: the line of a path is told by a table, and is 1 otherwise."""

    file: str = "shop.yaml"
    lines: Mapping[tuple[str | int, ...], int] = field(default_factory=dict, hash=False)

    def place(self, *path: str | int) -> SourceLocation:
        """Return the place of a path."""
        return SourceLocation(self.file, self.lines.get(path, 1), 1 + len(path))


def declared(
    ref: ResourceRef = WEB,
    said: Mapping[str, Any] | None = None,
    *,
    pinned_id: str = "",
    prevent_delete: bool = False,
    critical: bool = False,
    source: FakeSource | None = None,
) -> Resource:
    """Return a resource as judging leaves it: complete, and knowing what its manifest says."""
    said = _said(ref.kind, said)
    return Resource(
        ref=ref,
        spec=normal_form(ref.kind, said),
        written=frozenset(said),
        source=source or FakeSource(),
        pinned_id=pinned_id,
        prevent_delete=prevent_delete,
        critical=critical,
    )


def held(
    ref: ResourceRef = WEB,
    said: Mapping[str, Any] | None = None,
    *,
    object_id: str = "",
    trees: Iterable[str] = (TREE,),
    prevent_delete: bool | None = False,
    **more: Any,
) -> ObservedObject:
    """Return an object as the service lists it, at sequence 1 unless told otherwise."""
    project = owner_of(ref) if ref.kind is Kind.OIDC_APPLICATION else None
    fields: dict[str, Any] = {
        "sequence": 1,
        "critical": False,
        "ignored": frozenset(),
        "organization_id": id_of(organization_ref(ref.organization)),
        "project_id": id_of(project) if project else "",
        "client_id": f"{object_id or id_of(ref)}@shop" if project else "",
        **more,
    }
    return ObservedObject(
        ref=ref,
        id=object_id or id_of(ref),
        spec=normal_form(ref.kind, {**_left_as_held(ref.kind), **_said(ref.kind, said)}),
        trees=frozenset(trees),
        prevent_delete=prevent_delete,
        **fields,
    )


def _left_as_held(kind: Kind) -> dict[str, Any]:
    """Return the fields left as held that our own service answers, at their defaults."""
    return {name: value for name, value in LEFT_AS_HELD[kind].items() if name not in BEYOND[kind]}


def an_owed_secret(ref: ResourceRef = WEB, **more: Any) -> OwedSecret:
    """Return a secret that the service keeps for the usual tree."""
    fields: dict[str, Any] = {
        "id": id_of(ref),
        "client_id": f"{id_of(ref)}@shop",
        "made_at": 1,
        "since": "2026-01-02T03:04:05Z",
        "by": "deployer",
        "tree": TREE,
        "run": "run-1",
        **more,
    }
    return OwedSecret(ref=ref, **fields)


def id_of(ref: ResourceRef) -> str:
    """Return the id that an object has unless a test gives it another."""
    return "-".join([ref.kind.value[:3].lower(), *ref.key[2:]])


def _said(kind: Kind, said: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return said if said is not None else _SAID.get(kind, dict)()


def desired(
    *resources: Resource, organizations: Iterable[str] | None = None, whole: bool = True
) -> DesiredState:
    """Return everything declared; its scope is what it names, unless it is told."""
    named = {resource.ref.organization for resource in resources}
    return DesiredState(
        {resource.ref.key: resource for resource in resources},
        tuple(sorted(named if organizations is None else organizations)),
        whole,
    )


def observed(
    *objects: ObservedObject, instance: str = "instance-1", incomplete: tuple[str, ...] = ()
) -> ObservedState:
    """Return everything held."""
    return ObservedState(instance, {found.ref.key: found for found in objects}, incomplete)


HOUSE = (held(ACME), held(SHOP))
"""What most tests take for granted: the organization acme and its project shop, both held."""

OWNERS = (declared(ACME), declared(SHOP))
"""The same two, declared."""


def plan_of(
    resources: Iterable[Resource],
    objects: Iterable[ObservedObject] = (),
    scope: Scope | None = None,
    allowed: Allowances | None = None,
) -> Plan:
    """Return the plan for these resources and objects, in a house that is in step."""
    return build_plan(desired(*OWNERS, *resources), observed(*HOUSE, *objects), scope, allowed)


def is_valid(judgement: Judgement) -> bool:
    """Return whether manifests were judged to have no error."""
    return not any(finding.is_error for finding in judgement.diagnostics)


def a_plan(*changes: Any, **fields: Any) -> Plan:
    """Return the plan with these changes, in a house that is in step."""
    return Plan(
        **{
            "scope": Scope(),
            "instance": "instance-1",
            "organizations": ("acme",),
            "changes": changes,
            "in_step": (ACME, SHOP),
            **fields,
        }
    )


PLACE = Place("sqlite:x.db", "instance-1", "default")
"""Where a plan of ``a_plan`` takes place."""


Trouble = Callable[[str], None]
"""Told before and after each effect; it may raise what would go wrong just there."""


def no_trouble(where: str) -> None:
    """Let everything go well."""


class FakeService:
    """A service in memory that keeps the promises of ``ServiceClient``.

    It refuses taken names, missing owners and outdated sequences; only the latest secret counts,
    and it is kept until its delivery is acknowledged.

    Attributes:
        objects: What is held, by id.
        secrets: The secret of each application that has one, by id.
        owed: Which of them are in custody, by id.
        custody: Whether the service keeps secrets at all.
        refuse: Why the order about something of this name is refused.
        lose: Names of which the order is carried out and the answer lost.
        trouble: Told ``observe``, ``renew``, ``send`` before and ``answer`` after each write, and
            likewise ``claim``, ``claimed``, ``acknowledge`` and ``acknowledged``.
        written: What was carried out, in order.
        contexts: What every write was told to keep.
    """

    batch_size = 500
    run = "run-2"

    def __init__(self, *objects: ObservedObject) -> None:
        self.objects = {found.id: found for found in objects}
        self.secrets: dict[str, str] = {}
        self.owed: dict[str, OwedSecret] = {}
        self.custody = True
        self.refuse: dict[str, ServiceError] = {}
        self.lose: set[str] = set()
        self.trouble: Trouble = no_trouble
        self.written: list[Order] = []
        self.contexts: list[Mapping[str, Any]] = []
        self._count = 1000

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return what these organizations hold."""
        self.trouble("observe")
        return self.look(organizations)

    def look(self, organizations: Collection[str]) -> ObservedState:
        """Return what these organizations hold, without any trouble."""
        names = {fold(name) for name in organizations}
        here = [o for o in self.objects.values() if o.ref.key.organization in names]
        if not self.custody:
            return observed(*here)
        found = observed(*(replace(o, has_secret=o.id in self.secrets) for o in here))
        owed = tuple(each for each in self.owed.values() if each.id in {o.id for o in here})
        return replace(found, custody=True, owed=owed)

    def generation(self) -> int | None:
        """Return None: it is no ZITADEL."""
        return None

    def organizations(self) -> Sequence[str]:
        """Return the names of all organizations."""
        return sorted(fold(found.ref.organization) for found in self.objects.values())

    def histories(self, object_ids: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        """Yield each object without an event: it keeps none."""
        return ((each, ()) for each in object_ids)

    def removals(self, organization_id: str) -> Sequence[Removal]:
        """Refuse: it keeps no history."""
        raise ServiceError(f"no removals of {organization_id} are kept", remedy="Ask another.")

    def observe_at(self, moments: Mapping[str, int]) -> ObservedState:
        """Refuse: it keeps no history."""
        raise ServiceError(f"no past of {len(moments)} is kept", remedy="Ask another service.")

    def heads(self) -> None:
        """Return None: there is no feed."""

    def changes_of(self, after: Mapping[str, int]) -> Iterator[tuple[str, Sequence[FeedEvent]]]:
        """Yield that nothing happened in any of them."""
        yield from ((owner, ()) for owner in after)

    def trees(self) -> None:
        """Return None: nothing is kept of trees."""

    def claim(
        self, owed: Sequence[OwedSecret], context: Mapping[str, Any]
    ) -> Sequence[Written | ServiceError]:
        """Return secrets in custody again."""
        self.trouble("claim")
        results = [self._claimed(each) for each in owed]
        self.trouble("claimed")
        return results

    def _claimed(self, owed: OwedSecret) -> Written | ServiceError:
        if self.owed.get(owed.id) != owed or owed.lost:
            return PreconditionFailedError("it is not owed", remedy="r")
        return Written(owed.id, owed.made_at, owed.client_id, Secret(self.secrets[owed.id]))

    def acknowledge(self, delivered: Collection[Written]) -> None:
        """End the custody of secrets."""
        self.trouble("acknowledge")
        for each in delivered:
            if each.id in self.owed and self.owed[each.id].made_at == each.sequence:
                del self.owed[each.id]
        self.trouble("acknowledged")

    def _keep(self, found: ObservedObject, tree: str) -> None:
        """Take a new secret into custody."""
        if self.custody:
            more: dict[str, Any] = {"made_at": found.sequence, "tree": tree, "run": self.run}
            more |= {"id": found.id, "client_id": found.client_id}
            self.owed[found.id] = an_owed_secret(found.ref, **more)

    def acquire(self, organizations: Collection[str]) -> None:
        """Take no note of writers: tests of leases are the client's."""

    def renew(self) -> None:
        """Stay the one writer."""
        self.trouble("renew")

    def release(self) -> None:
        """Take no note of writers."""

    def write(
        self, orders: Sequence[Order], context: Mapping[str, Any]
    ) -> Sequence[Written | ServiceError]:
        """Carry out orders, each on its own."""
        if not orders:
            return []
        self.trouble("send")
        self.contexts.append(context)
        results = [self._carried_out(order, str(context.get("tree", TREE))) for order in orders]
        self.trouble("answer")
        return results

    def _carried_out(self, order: Order, tree: str) -> Written | ServiceError:
        name = name_of(order)
        if name in self.refuse:
            return self.refuse[name]
        try:
            result = self._do(order, tree)
        except ServiceError as refusal:
            return refusal
        return lost() if name in self.lose else result

    def _do(self, order: Order, tree: str) -> Written:
        match order:
            case CreateOrder():
                return self._create(order, tree)
            case UpdateOrder():
                result = self._update(order, tree)
            case DeleteOrder():
                self._expect(order.held)
                del self.objects[order.held.id]
                self.secrets.pop(order.held.id, None)
                self.owed.pop(order.held.id, None)
                result = Written(order.held.id, 0)
            case SecretOrder():
                if order.held.id not in self.objects:
                    raise ObjectNotFoundError("there is no such application", remedy="r")
                moved = replace(self.objects[order.held.id], sequence=self._next())
                self.objects[order.held.id] = moved
                secret = self.secrets[order.held.id] = f"secret-{self._next()}"
                self._keep(moved, tree)
                result = Written(order.held.id, moved.sequence, moved.client_id, Secret(secret))
        self.written.append(order)
        return result

    def _create(self, order: CreateOrder, tree: str) -> Written:
        for owner in (order.organization_id, order.project_id):
            if owner and owner not in self.objects:
                raise ObjectNotFoundError("there is no such owner", remedy="r")
        self._check_name(order.ref, "")
        new, sequence = f"new-{self._next()}", self._next()
        found = ObservedObject(
            ref=order.ref,
            id=new,
            sequence=sequence,
            spec=order.resource.spec,
            organization_id=order.organization_id or new,
            project_id=order.project_id,
            client_id=f"{new}@shop" if order.ref.kind is Kind.OIDC_APPLICATION else "",
            trees=frozenset({tree}),
            prevent_delete=order.resource.prevent_delete,
            critical=order.resource.critical,
        )
        self.objects[new] = found
        secret = None
        if found.client_id and has_client_secret(order.resource.spec):
            secret = Secret(f"secret-{self._next()}")
            self.secrets[new] = secret.reveal()
            self._keep(found, tree)
        self.written.append(order)
        return Written(new, sequence, found.client_id, secret)

    def _update(self, order: UpdateOrder, tree: str) -> Written:
        before = self._expect(order.held)
        self._check_name(order.resource.ref, before.id)
        after = replace(
            before,
            ref=order.resource.ref,
            spec=order.resource.spec,
            sequence=self._next(),
            trees=before.trees | {tree},
            prevent_delete=order.resource.prevent_delete,
            critical=order.resource.critical,
        )
        self.objects[before.id] = after
        if before.client_id and not has_client_secret(after.spec):
            self.secrets.pop(before.id, None)
            self.owed.pop(before.id, None)
        return Written(after.id, after.sequence, after.client_id)

    def _expect(self, held: ObservedObject) -> ObservedObject:
        found = self.objects.get(held.id)
        if found is None:
            raise ObjectNotFoundError("there is no such object", remedy="r")
        if found.sequence != held.sequence:
            raise PreconditionFailedError("the object has changed since", remedy="r")
        return found

    def _check_name(self, ref: ResourceRef, own: str) -> None:
        if any(o.ref.key == ref.key and o.id != own for o in self.objects.values()):
            raise AlreadyExistsError("the name is taken", remedy="r")

    def _next(self) -> int:
        self._count += 1
        return self._count


def name_of(order: Order) -> str:
    """Return the name of what an order is about, as it will be."""
    match order:
        case CreateOrder() | SecretOrder():
            return order.ref.name
        case UpdateOrder():
            return order.resource.ref.name
        case DeleteOrder():
            return order.held.ref.name


def lost() -> ServiceUnavailableError:
    """Return the error of an answer that never came."""
    return ServiceUnavailableError("the service did not answer", remedy="Run it again.")


class FakeSink:
    """A sink in memory.

    Attributes:
        kept: The secret delivered last, by the key of the application's ref and its client id.
        proven: For which applications it was last proven.
        trouble: Told ``prove``, and ``keep`` before and ``kept`` after each secret.
    """

    follows = True

    def __init__(self) -> None:
        self.kept: dict[tuple[ResourceRef, str], str] = {}
        self.proven: Collection[ResourceRef] = ()
        self.trouble: Trouble = no_trouble

    def prove(self, refs: Collection[ResourceRef] = ()) -> None:
        """Take a secret, if nothing is in the way."""
        self.trouble("prove")
        self.proven = refs

    def deliver(
        self, deliveries: Sequence[Delivery], stops: Stops = never
    ) -> Sequence[Kept | LocalFileError]:
        """Keep secrets, one after the other, until something asks to stop in between."""
        late = NotGivenError("it was to stop", remedy="r")
        return [
            late if number and stops() else self._keep(delivery)
            for number, delivery in enumerate(deliveries)
        ]

    def _keep(self, delivery: Delivery) -> Kept | LocalFileError:
        try:
            self.trouble("keep")
            self.kept[delivery.ref.key, delivery.client_id] = delivery.client_secret.reveal()
            self.trouble("kept")
        except LocalFileError as failure:
            return failure
        return Kept(f"fake:{delivery.ref.path}")

    def _holds(self, ref: ResourceRef, client_id: str) -> bool | None:
        """Say whether the secret of an application is here."""
        return (ref.key, client_id) in self.kept

    def held(self, applications: Sequence[Application]) -> Sequence[bool | None]:
        """Return for each application whether its secret is here."""
        return [self._holds(*application) for application in applications]

    def follow(self, moves: Sequence[Move]) -> Sequence[Followed]:
        """Keep secrets under the new names of their applications; forget those of deleted ones."""
        for move in moves:
            secret = self.kept.pop((move.old.key, move.client_id), None)
            if secret is not None and move.ref is not None:
                self.kept[move.ref.key, move.client_id] = secret
        return [() for _ in moves]
