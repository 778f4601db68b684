"""Identity providers in their two families, as a ZITADEL keeps them.

The old calls write events of their own, which both families read. The template calls write
others, which only the template calls read: what they change or delete, the old list goes on
showing as it was. Names are unique among the old ones alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.zitadel.held import Held, Item, made
from tests.zitadel.refusals import FakeError
from tests.zitadel.states import ERRORS, switched

JWT = ("jwtEndpoint", "issuer", "keysEndpoint", "headerName")
ORG = "IDP_OWNER_TYPE_ORG"


class Providers:
    """The calls that read and write providers; each takes fields and returns an answer."""

    def __init__(self, things: Held, *, is_unique: bool) -> None:
        self.things = things
        self.is_unique = is_unique

    def add_old(self, fields: Mapping[str, Any], organization: str) -> Item:
        self._check_name(fields["name"], organization)
        old = {
            "name": fields["name"],
            "owner": ORG,
            "stylingType": fields.get("stylingType", "STYLING_TYPE_UNSPECIFIED"),
            "autoRegister": fields.get("autoRegister", False),
            "jwtConfig": {name: fields.get(name, "") for name in JWT},
        }
        item = self.things.add("oldIdps", old, organization)
        template = {
            "name": old["name"],
            "owner": ORG,
            "type": "PROVIDER_TYPE_JWT",
            "config": {"options": _options_of(old), "jwt": dict(old["jwtConfig"])},
        }
        self.things.add("idps", template, organization, item["id"])
        self.things.follow("idps", self.things.held["idps"][item["id"]], item)
        return item

    def add(self, fields: Mapping[str, Any], organization: str) -> Item:
        item = {
            "name": fields["name"].strip(),
            "owner": ORG,
            "type": "PROVIDER_TYPE_JWT",
            "config": _template(fields),
        }
        return self.things.add("idps", item, organization)

    def rename_old(self, fields: Mapping[str, Any], organization: str) -> Item:
        old = self._old(fields["idpId"], "Org-1J9fs", organization)
        changes = {name: fields[name] for name in ("name", "stylingType", "autoRegister")}
        if all(old.get(name) == value for name, value in changes.items()):
            raise FakeError(9, "Org-jf9w", "Errors.Org.IDPConfig.NotChanged")
        if changes["name"].lower() != old["name"].lower():
            self._check_name(changes["name"], organization)
        old.update(changes)
        details = self.things.touch("oldIdps", old)
        template = self.things.held["idps"].get(old["id"])
        if template:
            template["name"] = changes["name"]
            options = {**template["config"]["options"], "isAutoCreation": changes["autoRegister"]}
            template["config"]["options"] = _set(options)
            self.things.follow("idps", template, old)
        return {"details": details}

    def configure_old(self, fields: Mapping[str, Any], organization: str) -> Item:
        old = self._old(fields["idpId"], "Org-67J9d", organization)
        config = {name: fields[name] for name in JWT}
        # The event says only what differs from the old events.
        changes = {name: each for name, each in config.items() if old["jwtConfig"][name] != each}
        if not changes:
            raise FakeError(9, "Org-2k9fs", "Errors.Org.IDPConfig.NotChanged")
        old["jwtConfig"] = config
        details = self.things.touch("oldIdps", old)
        template = self.things.held["idps"].get(old["id"])
        if template:
            template["config"]["jwt"] = {**template["config"]["jwt"], **changes}
            self.things.follow("idps", template, old)
        return {"details": details}

    def set_state_old(self, fields: Mapping[str, Any], organization: str, state: str) -> Item:
        """Switch what an old call made; of anything else it says that it is in another state."""
        missing, refused = ERRORS["oldIdps", state]
        old = self.things.held["oldIdps"].get(fields["idpId"])
        if old is None or old["details"]["resourceOwner"] != organization:
            raise FakeError(9, missing, "Errors.Org.IDPConfig.NotActive")
        return {"details": switched(self.things, "oldIdps", old, state, refused)}

    def remove_old(self, fields: Mapping[str, Any], organization: str) -> Item:
        old = self._old(fields["idpId"], "QUERY-rhR2o", organization)
        self.things.remove("oldIdps", old)
        template = self.things.held["idps"].get(old["id"])
        if template:
            self.things.remove("idps", template)
        return {}

    def update(self, fields: Mapping[str, Any], organization: str) -> Item:
        item = self._template(fields["id"], organization)
        changes = {"name": fields["name"].strip(), "config": _template(fields)}
        if all(item[name] == value for name, value in changes.items()):
            return {"details": dict(item["details"])}  # a success, and no event
        item.update(changes)
        return {"details": self.things.touch("idps", item)}

    def remove(self, fields: Mapping[str, Any], organization: str) -> Item:
        item = self._template(fields["id"], organization)
        self.things.remove("idps", item)
        return {"details": dict(item["details"])}

    def _old(self, object_id: str, error_id: str, organization: str) -> Item:
        old = self.things.one("oldIdps", object_id, error_id)
        if old["details"]["resourceOwner"] != organization:
            raise FakeError(5, error_id, "not found")
        return old

    def _template(self, object_id: str, organization: str) -> Item:
        item = self.things.one("idps", object_id, "ORG-Bhju5")
        if item["details"]["resourceOwner"] != organization:
            raise FakeError(5, "ORG-Bhju5", "Errors.Org.IDPConfig.NotExisting")
        return item

    def _check_name(self, name: str, organization: str) -> None:
        for item in self.things.held["oldIdps"].values():
            is_here = item["details"]["resourceOwner"] == organization
            if self.is_unique and is_here and item["name"].lower() == name.lower():
                raise FakeError(6, "V3-DKcYh", "Errors.IDPConfig.AlreadyExists")


def details_of(item: Item) -> Item:
    """Return the answer of a create of either family, without its id."""
    return {"details": made(item)}


def _options_of(old: Mapping[str, Any]) -> Item:
    return _set(
        {
            "isLinkingAllowed": True,
            "isCreationAllowed": True,
            "isAutoCreation": old["autoRegister"],
        }
    )


def _set(options: Mapping[str, Any]) -> Item:
    """Return the options that are not at zero, as JSON has them."""
    zeros = {False, "AUTO_LINKING_OPTION_UNSPECIFIED"}
    return {name: value for name, value in options.items() if value not in zeros}


def _template(fields: Mapping[str, Any]) -> Item:
    """Return a configuration; every text is trimmed."""
    jwt = {name: fields.get(name, "").strip() for name in (*JWT, "audience")}
    return {"options": _set(fields.get("providerOptions", {})), "jwt": jwt}
