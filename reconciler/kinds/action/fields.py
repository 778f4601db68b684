"""The fields of actions."""

from __future__ import annotations

from reconciler.resources.fields import ACTION_TIMEOUT, duration, flag, text
from reconciler.resources.kinds import IN_ORGANIZATION, KindRow

MAX_SCRIPT = 2000
"""Characters of a script by the source document."""

MAX_SCRIPT_BYTES = 40_000
"""Bytes of a script on a ZITADEL."""

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
        ),
        duration(
            "timeout",
            "Time after which the action is ended if it has not finished, 0s to 20s: decimal "
            "seconds with s.",
            *("5s", "1.5s"),
            default="20s",
            limits=ACTION_TIMEOUT,
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
)
