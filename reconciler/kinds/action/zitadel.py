"""Actions of a ZITADEL."""

from __future__ import annotations

from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.kinds import ZitadelKind

ROW = ZitadelKind(
    Kind.ACTION,
    lists="ListActions",
    query="actionNameQuery",
    reads=("GetAction", "action"),
    has_own_sequence=True,
    not_changed=("ACTION-dg4t2", "COMMAND-Dgj92", "COMMAND-J53zh"),
)
