"""The fields of actions."""

from __future__ import annotations

from reconciler.resources.call import MANAGEMENT
from reconciler.resources.fields import NANOSECONDS, DurationRange, duration, flag, text
from reconciler.resources.kinds import IN_ORGANIZATION, KindRow

MAX_SCRIPT = 2000
"""Characters of a script by the source document."""

MAX_SCRIPT_BYTES = 40_000
"""Bytes of a script on a ZITADEL."""

TIMEOUT = DurationRange(20 * NANOSECONDS, r"^(?:1?[0-9](?:\.[0-9]{1,9})?|20(?:\.0{1,9})?)s$")

_ACTIONS = f"{MANAGEMENT}/actions"

# Source 2.5 without the name, which is the resource's own.
ROW = KindRow(
    "A script and how it runs.",
    rank=2,
    schema="action",
    noun="action",
    plural="actions",
    owner=IN_ORGANIZATION,
    has_state=True,
    reading=(flag("templated", "Replace variables in the script, too."),),
    fields=(
        text(
            "script",
            f"JavaScript to run, at most {MAX_SCRIPT} characters; on a ZITADEL, at most "
            f"{MAX_SCRIPT_BYTES} bytes. It must define a function with the action's own name.",
            "function greet(ctx, api) {\n  api.setClaim('greeting', 'hello');\n}\n",
            shortest=1,
            longest=MAX_SCRIPT_BYTES,
        )._replace(of_source=MAX_SCRIPT),
        duration(
            "timeout",
            "Time after which the action is ended if it has not finished, 0s to 20s: decimal "
            "seconds with s.",
            *("5s", "1.5s"),
            default="20s",
            limits=TIMEOUT,
        ),
        flag("allowedToFail", "When true, the next action is called even if this one fails."),
    ),
    instead={
        "script": text(
            "scriptFile",
            "Path of a file with the script, from the manifest's own folder. It stays beneath the "
            "folder of the manifests and holds no more than a script may have.",
            "scripts/greet.js",
            shortest=1,
            longest=1000,
        )
    },
    addresses={
        "CreateAction": (f"POST {_ACTIONS}",),
        "ListActions": (f"POST {_ACTIONS}/_search",),
        "GetAction": (f"GET {_ACTIONS}/{{id}}",),
        "UpdateAction": (f"PUT {_ACTIONS}/{{id}}",),
        "DeactivateAction": (f"POST {_ACTIONS}/{{id}}/_deactivate",),
        "ReactivateAction": (f"POST {_ACTIONS}/{{id}}/_reactivate",),
        "DeleteAction": (f"DELETE {_ACTIONS}/{{id}}",),
    },
)
