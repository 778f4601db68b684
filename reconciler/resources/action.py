"""Actions: JavaScript that the identity service runs at a trigger (source 2.5 without name)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from reconciler.resources.base import NO_NUL, Spec
from reconciler.resources.duration import ACTION_TIMEOUT_PATTERN
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind

MAX_SCRIPT = 2000
Script = Annotated[str, Field(min_length=1, max_length=MAX_SCRIPT, pattern=NO_NUL)]

_DEFAULTS = DEFAULTS[Kind.ACTION]


class Action(Spec):
    """A script and how it runs."""

    kind: ClassVar[Kind] = Kind.ACTION

    script: Script = Field(
        description=(
            "JavaScript to run, at most 2000 characters. It must define a function with the "
            "action's own name."
        ),
        examples=["function greet(ctx, api) {\n  api.setClaim('greeting', 'hello');\n}\n"],
    )
    timeout: Annotated[str, Field(pattern=ACTION_TIMEOUT_PATTERN)] = Field(
        _DEFAULTS["timeout"],
        description=(
            "Time after which the action is ended if it has not finished, 0s to 20s: decimal "
            "seconds with s."
        ),
        examples=["5s", "1.5s"],
    )
    allowed_to_fail: bool = Field(
        _DEFAULTS["allowedToFail"],
        description="When true, the next action is called even if this one fails.",
    )
