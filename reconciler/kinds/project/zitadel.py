"""Projects of a ZITADEL."""

from __future__ import annotations

from reconciler.resources.ref import Kind
from reconciler.service_client.zitadel.kinds import ZitadelKind

ROW = ZitadelKind(
    Kind.PROJECT,
    lists="ListProjects",
    reads=("GetProjectByID", "project"),
    refreshes=True,
    has_own_sequence=True,
    not_changed=("COMMAND-2M0fs", "COMMAND-mki55", "COMMAND-5M9bs"),
)
