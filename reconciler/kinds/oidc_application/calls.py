"""The calls that write OIDC applications."""

from __future__ import annotations

from reconciler.errors import InvalidArgumentError
from reconciler.service_client.kinds import KindCalls

_LOGOUT_URI = (
    "The server checks the back-channel logout URI of an application on every write, and cannot "
    "resolve its host or may not call it (such as localhost). Write a spec.backChannelLogoutUri "
    "that it can reach, or an empty one to have none."
)

ROW = KindCalls(
    "AddOIDCApp",
    "UpdateApp",
    "UpdateOIDCAppConfig",
    "RemoveApp",
    "RegenerateOIDCClientSecret",
    state="App",
    id_field="appId",
    fixed=frozenset({"version"}),  # the OIDC version
    refusals=dict.fromkeys(
        ("PROJECT-msNebo", "PROJECT-iZL2Ac"), (InvalidArgumentError, _LOGOUT_URI)
    ),
)
