"""The calls that write actions."""

from __future__ import annotations

from reconciler.service_client.kinds import KindCalls

ROW = KindCalls("CreateAction", "UpdateAction", "UpdateAction", "DeleteAction", state="Action")
