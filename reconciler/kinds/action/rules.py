"""The rules of actions: scripts that compile, define their function and show what they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.diagnostics import Diagnostic, cut, error, note, warning
from reconciler.resources.fields import Spec
from reconciler.rules.form import Compile, CompileError, Found, KindRules
from reconciler.rules.risks import Removal, Rule, differs, turned_off, turned_on
from reconciler.state import Resource

# Characters that turn the direction of text: what a reviewer sees is not what runs.
_TURNING = "[\u202a-\u202e\u2066-\u2069]"

_SCRIPT = ("spec", "script")
_CRLF = note(
    "SCRIPT-CRLF",
    "the script has Windows line ends (CRLF)",
    "They are sent as they are, so that a checkout with other line ends shows an update. Save the "
    "script with LF, and add `*.js text eol=lf` to .gitattributes.",
)


def _findings(resource: Resource, _: Spec, compiled: Compile) -> Iterator[Found]:
    name = resource.ref.name
    script = resource.spec.get("script")
    if script is None:
        return  # its file cannot be read, which the reader has reported
    verdict = compiled(script, name)
    if isinstance(verdict, CompileError):
        yield Found(_does_not_compile(verdict), _SCRIPT, verdict.line, verdict.column)
    elif not verdict:
        yield Found(_no_function(name), ("metadata", "name"))
    if "\r\n" in script:
        yield Found(_CRLF, _SCRIPT)
    hidden = None if script.isascii() else re.search(_TURNING, script)
    if hidden is not None:
        yield Found(_turned(hidden.group()), _SCRIPT)


def _does_not_compile(failure: CompileError) -> Diagnostic:
    return error(
        "ACTION-SCRIPT",
        f"the script does not compile: {cut(failure.message)}",
        "Correct the JavaScript here or in the line above.",
    )


def _no_function(name: str) -> Diagnostic:
    return warning(
        "ACTION-FUNCTION",
        f"the script defines no function named {cut(name)}",
        "The service calls the function that has the action's name. Rename the action or the "
        "function so that both have the same name.",
    )


def _turned(character: str) -> Diagnostic:
    return warning(
        "ACTION-DIRECTION",
        f"the script contains the direction mark U+{ord(character):04X}",
        "Code around it shows in another order than it runs: write an escape, such as \\u202e.",
    )


RULES = KindRules(
    guarded=frozenset({"script", "allowedToFail"}),
    removal=Removal("action-removed", 970, "what it enforced is no longer enforced"),
    risks=(
        Rule(
            "script-changed", 770, ("script",), differs,
            "other code runs while people sign in",
        ),
        Rule(
            "failure-allowed", 720, ("allowedToFail",), turned_on,
            "a check that fails no longer stops anything",
        ),
        Rule(
            "failure-stops", 490, ("allowedToFail",), turned_off,
            "if this script fails, what called it now fails, too",
        ),
    ),
    findings=_findings,
)  # fmt: skip
