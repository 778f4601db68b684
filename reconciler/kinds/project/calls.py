"""The calls that write projects. No manifest removes one."""

from __future__ import annotations

from reconciler.service_client.kinds import KindCalls

ROW = KindCalls("AddProject", "UpdateProject", "UpdateProject", state="Project")
