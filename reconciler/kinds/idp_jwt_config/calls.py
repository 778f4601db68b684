"""The calls that write JWT identity providers.

The source's calls do not know the audience, and leave it as it is. So the calls that write it are
used for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.resources.call import JsonObject
from reconciler.service_client.kinds import KindCalls, OneCall
from reconciler.service_client.port import CreateOrder, UpdateOrder

_AUDIENCE = "audience"


class _Calls(KindCalls):
    def creates(self, order: CreateOrder) -> Iterator[OneCall]:
        for operation, fields in super().creates(order):
            if fields.get(_AUDIENCE):
                yield "AddJWTProvider", fields
            else:
                yield _without_audience(operation, fields)

    def rewrites(self, order: UpdateOrder) -> Iterator[OneCall]:
        held, wanted = order.held, order.resource
        if held.spec.get(_AUDIENCE) == wanted.spec.get(_AUDIENCE):
            for operation, fields in super().rewrites(order):
                yield _without_audience(operation, fields)
        else:  # one call changes name, fields and audience together
            own = {"id": held.id, "name": wanted.ref.name}
            yield "UpdateJWTProvider", {**own, **self.sent(order)}


def _without_audience(operation: str, fields: JsonObject) -> OneCall:
    return operation, {name: value for name, value in fields.items() if name != _AUDIENCE}


ROW = _Calls(
    "AddOrgJWTIDP",
    "UpdateOrgIDP",
    "UpdateOrgIDPJWTConfig",
    "RemoveOrgIDP",
    state="OrgIDP",
    id_field="idpId",
    not_kept={
        _AUDIENCE: "A ZITADEL before 3.4.12 or 4.15.2 does not know `audience` and never checks "
        "it: upgrade it."
    },
)
