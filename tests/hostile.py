"""What somebody might write to deceive the reader of a report, or whatever shows it.

Every text carries a mark, so that a test can ask where it ended up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from reconciler.diagnostics import Diagnostic, SourceLocation, error, warning
from reconciler.plan.model import (
    Adopt,
    Create,
    Delete,
    Plan,
    Scope,
    Summary,
    Unmanaged,
    Update,
    ref_of,
)
from reconciler.resources.ref import Kind
from tests.builders import (
    FakeSource,
    a_jwt_config,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)

MARK = "zqxj"

FENCES = ("```", "````", "~~~", "`", "```diff\n- x", "\n```\n", "\n~~~\n", "`" * 500, "   ```")
MARKDOWN = (
    "# No changes", "\n## No changes\n", "**bold**", "[click](https://evil.example)",
    "![x](https://evil.example/x.png)", "<https://evil.example>", "https://evil.example",
    "@everyone", "@org/team", "#1", "GH-1", "a|b\n-|-\n", "- [ ] x", "1. x", "> quoted", "***",
    "[x]: https://evil.example", "\n[x]: javascript:alert(1)\n", "&lt;script&gt;", "\\`", "$x$",
    "<!-- reconciler-plan -->", "-->", "<!--", ":tada:", "closes #1", "\n\n\n", "    indented",
)  # fmt: skip
HTML = (
    "<script>document.documentElement.dataset.pwned=1</script>", "</script>", "</style>",
    "<img src=x onerror=alert(1)>", "</details>", "</summary>", "</code></td></tr></table>",
    "\n</details>\n\n# No changes\n\n<details>\n", "<svg onload=alert(1)>", "<b>", "</main>",
    '" onmouseover="alert(1)', "' onmouseover='alert(1)", "<a href=javascript:alert(1)>x</a>",
    "<iframe src=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<!--slot:policy-->", "{{7*7}}", "]]>", "<![CDATA[", "<?xml?>", "&#60;script&#62;", "&amp;",
)  # fmt: skip
COMMANDS = (
    "::error::x", "::add-mask::x", "::stop-commands::x", "::set-output name=x::y", "##[error]x",
    "##vso[task.setvariable]x", "\n::error file=a,line=1::x", "\r::error::x", "  ::error::x", "%0A",
    "%0A::error::x",
)  # fmt: skip
INVISIBLE = (
    "\x1b[31m", "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\x1b[2J", "\x9b31m", "\x07",
    "\x00", "\b\b\b", "\rNo changes.", "\x0b", "\x0c", "\x85",
    "\u2028", "\u2029", "\u202e", "\u202d",
    "\u2066", "\u2067", "\u2069", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u061c", "\U000e0041",
    "\ufff9", "\ud800", "\udfff", "\uffff", "\u3164", "\u2800", "\ufe0f",
    "שלום", "مرحبا", "e\u0301", "\u00a0", "\t", "👩\u200d👧",
)  # fmt: skip

PAYLOADS: tuple[str, ...] = (*FENCES, *MARKDOWN, *HTML, *COMMANDS, *INVISIBLE)


def payloads(*most_likely: str) -> list[ParameterSet]:
    """Return every text as a case of a test, slow ones but for those most likely to do harm."""
    return [
        pytest.param(text, marks=() if text in most_likely else pytest.mark.slow)
        for text in PAYLOADS
    ]


def marked(text: str) -> str:
    """Return a text with the mark before and after it."""
    return f"{MARK}{text}{MARK}"


def hostile_findings(text: str) -> list[Diagnostic]:
    """Return findings whose every part is this text."""
    place = SourceLocation(f"{text}.yaml", 3, 7)
    return [
        error("SOME-CODE", text, text, place),
        warning("OTHER-CODE", text, text),
        warning("OTHER-CODE", text, text, SourceLocation(text)),
    ]


def hostile_plan(texts: Sequence[str]) -> Plan:
    """Return a plan with every kind of change, in which these texts stand wherever they can."""
    said = [hostile for text in texts for hostile in (text, marked(text))]
    changes = [change for at, text in enumerate(said) for change in _changes(at, text)]
    findings = [finding for text in said for finding in hostile_findings(text)]
    return Plan(
        scope=Scope(tree=said[0], target=(said[0],), exclude=(said[0],)),
        instance=said[0],
        organizations=tuple(said),
        changes=tuple(changes),
        unmanaged=tuple(
            Unmanaged(a_ref(Kind.ACTION, text, organization=text), "1", text) for text in said
        ),
        blocks=tuple(findings),
        warnings=tuple(findings),
        needed=tuple(map(ref_of, changes)),
        left_out=Summary(*[10**6] * len(Summary._fields)),
    )


def _changes(at: int, text: str) -> list[Create | Update | Adopt | Delete]:
    name = f"{text}{at}"
    source = FakeSource(f"{text}.yaml")
    application = an_application(
        redirectUris=[text, f"https://a.example.com/{text}"], additionalOrigins=[text], devMode=True
    )
    app = a_ref(name=name, organization=text, project=text)
    action = a_ref(Kind.ACTION, name, organization=text)
    provider = a_ref(Kind.IDP_JWT_CONFIG, name, organization=text)
    config = a_jwt_config(jwtEndpoint=text, issuer=text, keysEndpoint=text, headerName=text)
    object_id = text
    by: dict[str, Any] = {"changed_by": text, "changed_at": text, "changed_in": text}
    return [
        Create(declared(app, application, source=source)),
        Create(declared(action, an_action(script=f"{text}\n{text}"), source=source)),
        Update(
            declared(action, an_action(script=f"a\n{text}\nb"), source=source),
            held(action, an_action(script=f"a\nx\n{text}"), object_id=object_id, **by),
        ),
        Adopt(declared(provider, config), held(provider, trees=(), object_id=object_id, **by)),
        Update(declared(app, application), held(app, object_id=object_id, critical=True, **by)),
        Delete(held(app, application, object_id=object_id, client_id=text)),
    ]
