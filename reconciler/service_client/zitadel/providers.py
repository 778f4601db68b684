"""JWT identity providers of a ZITADEL: two families of calls for the same objects.

The console and Terraform write with the template calls, and only these see everything: the old
list goes on showing a provider as the old calls left it, even when another tool has changed or
removed it since. So the template calls are used wherever the server has them. A server that is
too old for them refuses one twice in a row, and is then asked with the old calls.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from reconciler.errors import ObjectNotFoundError, ServiceError
from reconciler.resources.call import Call, Code, JsonObject
from reconciler.resources.ref import Kind, fold
from reconciler.service_client.answers import id_of, text_of, unsound
from reconciler.service_client.orders import in_turn, switch_of
from reconciler.service_client.port import CreateOrder, UpdateOrder
from reconciler.service_client.wire import AGAIN, Reply, WireRefusal, error_id, service_error
from reconciler.service_client.zitadel.objects import (
    BESIDE_IDP,
    OPTIONS_OF_NEW,
    Owner,
    identity_provider,
    jwt_provider,
)
from reconciler.state import ObservedObject

LIST_TEMPLATES = "ListProviders"
OWN_PROVIDERS = {"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_ORG"}}
_OLD_FIELDS = {"sortingColumn": "IDP_FIELD_NAME_NAME"}
OLD_LIST: tuple[str, JsonObject] = ("ListOrgIDPs", {"queries": [OWN_PROVIDERS], **_OLD_FIELDS})
"""Operation and fields of the list of what old calls made."""

# Fields that the old calls do not have.
_ONLY_TEMPLATES = frozenset({"audience", "providerOptions"})
_NO_SUCH_ADDRESS = frozenset({Code.NOT_FOUND, Code.UNIMPLEMENTED})


class ServerAge(Enum):
    """Whether a server has the template calls."""

    UNKNOWN = auto()
    NEW = auto()
    OLD = auto()


@dataclass(slots=True)
class ProviderCalls:
    """The calls that a server has for JWT providers.

    Attributes:
        age: Whether the server has the template calls. Once known, it stays for the run.
    """

    age: ServerAge = ServerAge.UNKNOWN

    @property
    def is_old(self) -> bool:
        """Return whether the server turned out to have no template calls."""
        return self.age is ServerAge.OLD

    @property
    def only_active(self) -> frozenset[Kind]:
        """Return the kinds of which no object can be made inactive."""
        return frozenset() if self.is_old else frozenset({Kind.IDP_JWT_CONFIG})

    def answered(self) -> None:
        """Take note that a template list was answered: the server has the template calls.

        Raises:
            ServiceError: it refused them before. Two servers may share the address.
        """
        if self.is_old:
            raise ServiceError(
                "the service has calls for identity providers that it lacked a moment ago",
                remedy=AGAIN,
            )
        self.age = ServerAge.NEW

    def can_ask_on(self, refusal: WireRefusal, *, was_refused: bool) -> bool:
        """Return whether a refused template list can be asked for again, as ``list_call`` says.

        The first refusal may come from a proxy, so the same call is made once more. The second
        in a row makes the server old. Calls of several organizations go out together: each is
        judged by its own refusal, also where another one has made the server old.

        Args:
            refusal: The reply of the template list.
            was_refused: Whether the same list was refused like this just before.
        """
        if self.age is ServerAge.NEW or not is_unknown_address(refusal):
            return False
        if was_refused:
            self.age = ServerAge.OLD
        return True

    def list_call(self, *queries: JsonObject) -> tuple[str, JsonObject]:
        """Return operation and fields of the list of an organization's own providers."""
        asked: dict[str, Any] = {"queries": [*queries, OWN_PROVIDERS]}
        if self.is_old:
            return OLD_LIST[0], {**asked, **_OLD_FIELDS}
        return LIST_TEMPLATES, asked

    def named(self, name: str, organization: str) -> Call:
        """Return the call that looks for providers by name, in upper or lower case."""
        by_name = {"name": name, "method": "TEXT_QUERY_METHOD_EQUALS_IGNORE_CASE"}
        return Call(*self.list_call({"idpNameQuery": by_name}), organization)

    def get(self, object_id: str, organization: str) -> Call:
        """Return the call that reads a provider."""
        operation = "GetOrgIDPByID" if self.is_old else "GetProviderByID"
        return Call(operation, {"id": object_id}, organization)

    def still_named(
        self, items: Sequence[JsonObject], order: CreateOrder
    ) -> Generator[Call, Reply, list[JsonObject] | WireRefusal]:
        """Read listed providers one by one; return those that exist and have the order's name.

        A list can show a provider under a name that a rename or a delete has freed. The read of
        one provider does not lag. Returns the refusal of one that cannot be read.
        """
        current: list[JsonObject] = []
        for item in items:
            reply = yield self.get(id_of(item), order.organization_id)
            if isinstance(reply, WireRefusal):
                # A missing object has an error id. Without one, a proxy may have answered.
                if isinstance(service_error(reply), ObjectNotFoundError) and error_id(reply):
                    continue
                return reply
            found = reply.fields.get("idp")
            if not isinstance(found, dict):
                raise unsound(id_of(item), "idp is not an object")
            if fold(text_of(found, "name")) == fold(order.ref.name):
                current.append(found)
        return current

    def is_ours(self, item: JsonObject) -> bool:
        """Return whether a listed provider is of the kind that manifests declare."""
        return self.is_old or item.get("type") == "PROVIDER_TYPE_JWT"

    def observed(self, item: JsonObject, owner: Owner) -> ObservedObject:
        """Return a listed provider as an observed object."""
        return identity_provider(item, owner) if self.is_old else jwt_provider(item, owner)

    def need_old_list(self, items: Iterable[JsonObject]) -> bool:
        """Return whether the old list must be read beside these listed providers.

        A provider that an old call made can be deactivated by one. The present list goes on
        showing it as active; only the old list tells.
        """
        return not self.is_old and any(self.is_ours(item) for item in items)

    def with_state(self, held: ObservedObject, states: Mapping[str, bool]) -> ObservedObject:
        """Return a provider with its state; ``states`` has those that the old list tells, by id.

        What a present call made is not in that list, and no call deactivates it.
        """
        if self.is_old:
            return held
        active = held.active and states.get(held.id, True)
        return replace(held, active=active, can_be_inactive=held.id in states)

    def is_unseen(self, call: Call) -> bool:
        """Return whether the present list does not tell what a call writes, nor its sequence."""
        return not self.is_old and call.operation.endswith("activateOrgIDP")

    def create(self, order: CreateOrder) -> Call:
        """Return the call that makes a provider."""
        fields = {"name": order.ref.name, **order.spec}
        if self.is_old:
            return Call("AddOrgJWTIDP", _without(_ONLY_TEMPLATES, fields), order.organization_id)
        fields = {**fields, "providerOptions": OPTIONS_OF_NEW}
        return Call("AddJWTProvider", fields, order.organization_id)

    def update(self, order: UpdateOrder) -> Sequence[Call]:
        """Return the calls of an update; none if name, spec and state stay."""
        switched = switch_of(order)
        switch = Call(*switched, order.held.organization_id) if switched else None
        return list(in_turn(self._rewrites(order), switch, active=order.resource.active))

    def _rewrites(self, order: UpdateOrder) -> Sequence[Call]:
        held, wanted = order.held, order.resource
        is_renamed, is_changed = held.ref.name != wanted.ref.name, held.spec != wanted.spec
        if self.is_old:
            return list(_old_update(order, is_renamed=is_renamed, is_changed=is_changed))
        if not (is_renamed or is_changed):
            return ()
        options = {"providerOptions": OPTIONS_OF_NEW}
        own = {"id": held.id, "name": wanted.ref.name}
        fields = {**options, **held.carried, **wanted.spec, **own}
        return [Call("UpdateJWTProvider", fields, held.organization_id)]

    def delete(self, held: ObservedObject) -> Call:
        """Return the call that removes a provider."""
        if self.is_old:
            return Call("RemoveOrgIDP", {"idpId": held.id}, held.organization_id)
        return Call("DeleteProvider", {"id": held.id}, held.organization_id)


def is_unknown_address(refusal: WireRefusal) -> bool:
    """Return whether the gateway of a ZITADEL has no such address.

    It says so in a body with a code and without an id; a missing object and a missing membership
    have an id. A proxy answers without a code of gRPC.
    """
    is_sure = refusal.is_code_told and not refusal.unsure
    return is_sure and refusal.code in _NO_SUCH_ADDRESS and not error_id(refusal)


def _old_update(order: UpdateOrder, *, is_renamed: bool, is_changed: bool) -> Iterator[Call]:
    held, wanted = order.held, order.resource
    if is_renamed:
        # What stands beside the configuration goes with the name, and would be reset without it.
        beside = {name: held.carried[name] for name in BESIDE_IDP if name in held.carried}
        fields = {**beside, "idpId": held.id, "name": wanted.ref.name}
        yield Call("UpdateOrgIDP", fields, held.organization_id)
    if is_changed:
        carried = _without(BESIDE_IDP, held.carried)
        fields = {**carried, **_without(_ONLY_TEMPLATES, wanted.spec), "idpId": held.id}
        yield Call("UpdateOrgIDPJWTConfig", fields, held.organization_id)


def _without(names: frozenset[str] | set[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
