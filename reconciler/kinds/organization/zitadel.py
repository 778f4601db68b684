"""Organizations of a ZITADEL, as far as they are like other kinds.

How they are found is a subject of its own (``service_client.zitadel.organizations``).
"""

from __future__ import annotations

from reconciler.resources.call import JsonObject
from reconciler.resources.ref import Kind, organization_ref
from reconciler.service_client.answers import id_of, sequence_of
from reconciler.service_client.zitadel.kinds import PRESENT, ZitadelKind
from reconciler.service_client.zitadel.objects import NO_PROJECT, Owner
from reconciler.state import ObservedObject


class _Organizations(ZitadelKind):
    def observed(
        self, item: JsonObject, owner: Owner, project: Owner = NO_PROJECT
    ) -> ObservedObject:
        # The list is asked by name, so that only the id is read from it.
        details = item.get("details")
        sequence = sequence_of(details) if isinstance(details, dict) else 0
        return ObservedObject(organization_ref(owner.name), id_of(item), sequence, {}, owner.id)


ROW = _Organizations(
    Kind.ORGANIZATION, lists=PRESENT, has_own_sequence=True, not_changed=("ORG-4VSdf",)
)
