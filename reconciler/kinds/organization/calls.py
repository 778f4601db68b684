"""The call that makes organizations; nothing of them changes, and no call removes one."""

from __future__ import annotations

from reconciler.service_client.kinds import KindCalls

ROW = KindCalls("AddOrg", carries=False)
