"""OIDC applications of a ZITADEL, which lists other applications beside them."""

from __future__ import annotations

from dataclasses import replace

from reconciler.resources.call import JsonObject
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.service_client.answers import ReadSpec, text_of
from reconciler.service_client.zitadel.kinds import ZitadelKind
from reconciler.service_client.zitadel.objects import (
    NO_PROJECT,
    Owner,
    object_of,
    read_fields,
    strange_fields,
)
from reconciler.state import ObservedObject

# Told by the service, and never sent to it.
_DERIVED = {"clientId", "noneCompliant", "complianceProblems", "allowedOrigins"}
# Of applications that are not of OIDC, by the field that has their configuration.
_OTHERS = {
    "apiConfig": "the configuration of an API application",
    "samlConfig": "the configuration of a SAML application",
}


class _Applications(ZitadelKind):
    def observed(
        self, item: JsonObject, owner: Owner, project: Owner = NO_PROJECT
    ) -> ObservedObject:
        said = item.get("oidcConfig")
        if isinstance(said, dict):
            config = {name: value for name, value in said.items() if name not in _DERIVED}
            read = read_fields(self.kind, item, config)
            client_id = text_of({"clientId": "", **said}, "clientId")
        else:
            # Not one of OIDC: without an auth method it differs from all that a manifest can say.
            strange = tuple(_OTHERS.get(name, name) for name in strange_fields(item))
            read = ReadSpec({**DEFAULTS[self.kind], "authMethodType": ""}, {}, strange)
            client_id = ""
        return replace(object_of(self.kind, item, owner, read, project), client_id=client_id)


ROW = _Applications(
    Kind.OIDC_APPLICATION,
    lists="ListApps",
    reads=("GetAppByID", "app"),
    refreshes=True,
    not_changed=("COMMAND-2m8vx", "COMMAND-1m88i", "COMMAND-dsh35", "COMMAND-1n8cM"),
    removed_by="PROJECT_OWNER",
)
