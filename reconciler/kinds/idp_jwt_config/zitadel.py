"""JWT identity providers of a ZITADEL: two families of calls for the same objects.

The console and Terraform write with the template calls, and only these see everything: the old
list goes on showing a provider as the old calls left it, even when another tool has changed or
removed it since. So the template calls are used wherever the server has them. A server that is
too old for them refuses one twice in a row, and is then asked with the old calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.kinds.idp_jwt_config import calls
from reconciler.resources.call import Call, JsonObject
from reconciler.resources.normal import TYPES
from reconciler.resources.ref import Kind
from reconciler.service_client.answers import ReadSpec, id_of, text_of
from reconciler.service_client.kinds import OneCall, Placed, in_turn
from reconciler.service_client.port import CreateOrder, DeleteOrder, Order, UpdateOrder
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import (
    NO_PROJECT,
    OUTSIDE,
    Owner,
    is_active,
    object_of,
    read_fields,
    strange_fields,
)
from reconciler.state import ObservedObject

_OWN = {"ownerTypeQuery": {"ownerType": "IDP_OWNER_TYPE_ORG"}}
_OLD_LIST, _OLD_FIELDS = "ListOrgIDPs", {"sortingColumn": "IDP_FIELD_NAME_NAME"}

# What the old create of an identity provider allowed, and what users need to log in by it at all.
OPTIONS_OF_NEW = {"isLinkingAllowed": True, "isCreationAllowed": True}
# Beside the configuration; what renames a provider sends them, too.
_BESIDE = {"stylingType", "autoRegister"}
# Fields that the old calls do not have.
_ONLY_TEMPLATES = frozenset({"audience", "providerOptions"})
_NOTHING_SAID = dict.fromkeys(TYPES[Kind.IDP_JWT_CONFIG], "")


class _Providers(ZitadelKind):
    def list_call(self, *queries: JsonObject) -> OneCall:
        asked: dict[str, Any] = {"queries": [*queries, _OWN]}
        return (_OLD_LIST, {**asked, **_OLD_FIELDS}) if self.is_old else (self.lists, asked)

    def list_beside(self, items: Iterable[JsonObject]) -> OneCall | None:
        # A provider that an old call made can be deactivated by one. The present list goes on
        # showing it as active; only the old list has its state.
        if self.is_old or not any(self._is_ours(item) for item in items):
            return None
        return _OLD_LIST, {"queries": [_OWN], **_OLD_FIELDS}

    def is_called(self, item: JsonObject, name: str) -> bool:
        return super().is_called(item, name) and self._is_ours(item)

    def _is_ours(self, item: JsonObject) -> bool:
        """Return whether a listed provider is of the kind that manifests declare."""
        return self.is_old or item.get("type") == "PROVIDER_TYPE_JWT"

    def observed(
        self, item: JsonObject, owner: Owner, project: Owner = NO_PROJECT
    ) -> ObservedObject:
        said, carried, known = _old_config(item) if self.is_old else _config(item)
        if not isinstance(said, dict):
            strange = strange_fields(item, _BESIDE | {"owner"})
            return object_of(self.kind, item, owner, ReadSpec(_NOTHING_SAID, {}, strange))
        read = read_fields(self.kind, item, {**_NOTHING_SAID, **said})
        # Every field that is not known here is sent back by an update.
        beside = _without(OUTSIDE | {"owner"} | known, item)
        read = read._replace(carried={**read.carried, **beside, **carried})
        return object_of(self.kind, item, owner, read)

    def objects(
        self,
        items: Iterable[JsonObject],
        owner: Owner,
        project: Owner,
        beside: Sequence[JsonObject],
    ) -> Iterator[ObservedObject | str]:
        states = {id_of(item): is_active(item) for item in beside}
        for item in items:
            if not self._is_ours(item):
                kind, name = item.get("type", "of an unknown type"), text_of(item, "name")
                yield f"The identity provider {name} of {owner.name} is {kind}."
                continue
            held = self.observed(item, owner)
            if not self.is_old:
                # What a present call made is not in the old list, and no call deactivates it.
                active = held.active and states.get(held.id, True)
                held = replace(held, active=active, can_be_inactive=held.id in states)
            yield held

    def get(self, at: Placed, object_id: str) -> Call:
        operation = "GetOrgIDPByID" if self.is_old else self.reads[0]
        return Call(operation, {"id": object_id}, at.organization_id)

    def is_unseen(self, call: Call) -> bool:
        return not self.is_old and call.operation.endswith("activateOrgIDP")

    def calls(self, order: Order) -> Sequence[OneCall]:
        match order:
            case CreateOrder():
                fields = {"name": order.ref.name, **order.resource.spec}
                if self.is_old:
                    return [(calls.ROW.create, _without(_ONLY_TEMPLATES, fields))]
                return [("AddJWTProvider", {**fields, "providerOptions": OPTIONS_OF_NEW})]
            case UpdateOrder():
                rewrites = _old_update(order) if self.is_old else _update(order)
                switch = calls.ROW.switch(order)
                return [*in_turn(rewrites, switch, active=order.resource.active)]
            case DeleteOrder() if not self.is_old:
                return [("DeleteProvider", {"id": order.held.id})]
            case _:
                return calls.ROW.calls(order)


def _update(order: UpdateOrder) -> Iterator[OneCall]:
    held, wanted = order.held, order.resource
    if (held.ref.name, held.spec) != (wanted.ref.name, wanted.spec):
        own = {"id": held.id, "name": wanted.ref.name}
        options = {"providerOptions": OPTIONS_OF_NEW}
        yield "UpdateJWTProvider", {**options, **held.carried, **wanted.spec, **own}


def _old_update(order: UpdateOrder) -> Iterator[OneCall]:
    held, wanted = order.held, order.resource
    if held.ref.name != wanted.ref.name:
        # What stands beside the configuration goes with the name, and would be reset without it.
        beside = {name: held.carried[name] for name in _BESIDE if name in held.carried}
        yield calls.ROW.rename, {**beside, "idpId": held.id, "name": wanted.ref.name}
    if held.spec != wanted.spec:
        carried = _without(_BESIDE, held.carried)
        fields = {**carried, **_without(_ONLY_TEMPLATES, wanted.spec), "idpId": held.id}
        yield calls.ROW.configure, fields


def _without(names: frozenset[str] | set[str], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _config(item: JsonObject) -> tuple[object, JsonObject, set[str]]:
    """Return what the template calls answer: the configuration, what is carried, known fields.

    Options that are not those of a new provider are sent back by an update.
    """
    config = item.get("config")
    if not isinstance(config, dict):
        config = {}
    carried = _without({"jwt", "options"}, config)
    options = config.get("options", {})
    if options != OPTIONS_OF_NEW:
        carried["providerOptions"] = options
    return config.get("jwt"), carried, {"type", "config"}


def _old_config(item: JsonObject) -> tuple[object, JsonObject, set[str]]:
    return item.get("jwtConfig"), {}, {"jwtConfig"}


ROW = _Providers(
    Kind.IDP_JWT_CONFIG,
    lists="ListProviders",
    query="idpNameQuery",
    reads=("GetProviderByID", "idp"),
    refreshes=True,
    keeps_names_unique=False,
    not_changed=("Org-2k9fs", "INSTANCE-3n9gg", "Org-jf9w", "Org-BBmd0", "Org-5Mo0d"),
    only_new=("audience",),
    only_active=True,
    newer_list="ListProviders",
    is_old=None,
)
