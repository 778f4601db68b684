"""Manifests in many layouts, drawn without the code that rewrites them.

A layout draws the same fields with other values so that nothing differs but the characters of the
values: what rewriting must give, to the byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Layout:
    """A way to write a manifest.

    Attributes:
        syntax: ``block``, ``flow`` on one line, ``lines`` (brackets over many lines) or ``json``.
        quote: Of texts: empty, ``'`` or ``"``.
        script: Header of the block of a script; empty for double quotes.
        dash: Blanks before the dash of an item; None for lists between brackets.
        words: Whether words have their long spelling.
        comments: Whether there are comments wherever one can be.
        newline: What ends a line.
        ends: Whether the last line has an end.
        before: What stands before the document.
        after: What stands after it.
        is_reversed: Whether fields stand in the opposite order.
        step: Blanks of one level.
    """

    name: str
    syntax: str = "block"
    quote: str = ""
    script: str = "|"
    dash: str | None = "  "
    words: bool = True
    comments: bool = False
    newline: str = "\n"
    ends: bool = True
    before: str = ""
    after: str = ""
    is_reversed: bool = False
    step: str = "  "

    @property
    def ending(self) -> str:
        return ".json" if self.syntax == "json" else ".yaml"

    def draw(self, kind: str, metadata: Fields, spec: Fields, words: Mapping[str, str]) -> str:
        """Return a manifest; ``words`` are the short spellings of long words."""
        spec = {name: self._spelled(value, words) for name, value in spec.items()}
        if self.is_reversed:
            spec = dict(reversed(spec.items()))
        document = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata}
        if spec:
            document["spec"] = spec
        lines = self._lines(document)
        text = f"{self.before}{lines}{self.after}"
        text = text if self.ends else text.rstrip("\n")
        return text.replace("\n", self.newline)

    def _spelled(self, value: Any, words: Mapping[str, str]) -> Any:
        if isinstance(value, list):
            return [self._spelled(each, words) for each in value]
        return value if self.words or not isinstance(value, str) else words.get(value, value)

    def _lines(self, document: Fields) -> str:
        if self.syntax == "json":
            return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        if self.syntax == "flow":
            return self._flow(document) + "\n"
        if self.syntax == "lines":
            return self._brackets(document, "") + "\n"
        return "".join(f"{line}\n" for line in self._block(document, ""))

    def _note(self, text: str) -> str:
        return f'  # {text}: [it\'s], "here"' if self.comments else ""

    def _scalar(self, value: Any, *, in_flow: bool = False) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        if "\n" in value or self.quote == '"' or (not self.quote and not _is_plain(value)):
            return json.dumps(value, ensure_ascii=False)
        return f"'{value}'" if self.quote else value

    def _flow(self, value: Any) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(self._flow, value))}]"
        if isinstance(value, dict):
            inner = ", ".join(f"{key}: {self._flow(each)}" for key, each in value.items())
            return f"{{{inner}}}"
        return self._scalar(value, in_flow=True)

    def _brackets(self, value: Any, indent: str) -> str:
        inner = indent + self.step
        if isinstance(value, list) and value:
            first, *rest = [self._scalar(each) for each in value]
            items = [first + ("," if rest else "") + self._note("first")]
            items += [each + "," for each in rest[:-1]] + rest[-1:]
            return "[\n" + "".join(f"{inner}{each}\n" for each in items) + f"{indent}]"
        if isinstance(value, dict) and value:
            entries = [f"{key}: {self._brackets(each, inner)}" for key, each in value.items()]
            return "{\n" + "".join(f"{inner}{each},\n" for each in entries) + f"{indent}}}"
        return self._flow(value)

    def _block(self, values: Fields, indent: str) -> Iterator[str]:
        for key, value in values.items():
            if self.comments:
                yield f"{indent}# about {key}"
            yield from self._entry(key, value, indent)
            if self.comments:
                yield ""

    def _entry(self, key: str, value: Any, indent: str) -> Iterator[str]:
        inner = indent + self.step
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:{self._note(key)}"
            yield from self._block(value, inner)
        elif isinstance(value, list) and value and self.dash is not None:
            yield f"{indent}{key}:{self._note(key)}"
            first, *rest = [self._scalar(each) for each in value]
            yield f"{indent}{self.dash}- {first}{self._note('first')}"
            yield from (f"{indent}{self.dash}- {each}" for each in rest)
        elif key == "script" and self.script:
            yield f"{indent}{key}: {self.script}{self._note(key)}"
            yield from self._script(value, indent)
        else:
            text = self._flow(value) if isinstance(value, (list, dict)) else self._scalar(value)
            yield f"{indent}{key}: {text}{self._note(key)}"

    def _script(self, value: str, indent: str) -> Iterator[str]:
        inner = indent + self.step
        lines = value.removesuffix("\n").split("\n")
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            yield inner + line if line else ""
            if self.script[0] == ">" and line and following:  # a break is drawn as two
                yield ""
            if self.script[0] == ">" and not line:
                yield ""


def _is_plain(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_ ./]*(?:://[A-Za-z0-9./]+)?", value) is not None


BLOCK = Layout("block")
SCRIPTS = ("|", "|-", "|+", "|2", ">", ">-", "")


def script_of(layout: Layout, call: str) -> str:
    """Return a script that the layout can hold as a block of text."""
    lines = ["function greet(ctx, api) {", f"api.{call}();", "", "// more", "}"]
    if layout.script == "|2":
        lines[0] = f"  {lines[0]}"
    ends = {"-": "", "+": "\n\n"}
    return "\n".join(lines) + ends.get(layout.script[-1:], "\n")


def layouts() -> Sequence[Layout]:
    """Return sixty layouts."""
    base = [
        replace(BLOCK, name="block"),
        replace(BLOCK, name="block-single", quote="'"),
        replace(BLOCK, name="block-double", quote='"'),
        replace(BLOCK, name="block-short", words=False),
        replace(BLOCK, name="indentless", dash=""),
        replace(BLOCK, name="brackets-in-block", dash=None),
        replace(BLOCK, name="wide", step="    ", dash="    "),
        replace(BLOCK, name="reversed", is_reversed=True),
        *(replace(BLOCK, name=f"script-{each}", script=each) for each in SCRIPTS[1:]),
        Layout("flow", "flow"),
        Layout("flow-single", "flow", "'", words=False),
        Layout("flow-double", "flow", '"'),
        Layout("lines", "lines"),
        Layout("lines-double", "lines", '"', step="\t"),
        Layout("json", "json", '"'),
        Layout("json-short", "json", '"', words=False),
    ]
    yaml = [each for each in base if each.syntax != "json"]
    found = list(base)
    found += [replace(each, name=f"{each.name}-crlf", newline="\r\n") for each in base]
    found += [
        replace(each, name=f"{each.name}-comments", comments=True)
        for each in yaml
        if each.syntax in {"block", "lines"} and each.script != "|+"
    ]
    found += [
        replace(BLOCK, name="no-end", ends=False, script=""),
        replace(BLOCK, name="no-end-script", ends=False, script="|-"),
        replace(BLOCK, name="dashes", before="---\n"),
        replace(BLOCK, name="directive", before="# head\n%YAML 1.2\n---\n", after="...\n# tail\n"),
        replace(BLOCK, name="bom", before="\ufeff# head\n", comments=True, newline="\r\n"),
        replace(BLOCK, name="crlf-comments", newline="\r\n", comments=True, quote="'"),
        Layout("flow-no-end", "flow", ends=False),
        Layout("json-no-end", "json", '"', ends=False),
    ]
    return found


_SCRIPT = object()
_ACME = {"organization": "acme"}
_SHOP = {**_ACME, "project": "shop"}

# Of each kind: its metadata, and a value of each field before and after. Lists keep their first
# item, at which layouts have a comment. The last two fields of an application are a ZITADEL's.
OBJECTS: Sequence[tuple[str, Fields, Mapping[str, tuple[Any, Any]]]] = [
    (
        "Project",
        {**_ACME, "name": "shop"},
        {
            "projectRoleAssertion": (False, True),
            "projectRoleCheck": (True, False),
            "hasProjectCheck": (False, True),
            "privateLabelingSetting": (
                "PRIVATE_LABELING_SETTING_UNSPECIFIED",
                "PRIVATE_LABELING_SETTING_ENFORCE_PROJECT_RESOURCE_OWNER_POLICY",
            ),
        },
    ),
    (
        "IdpJwtConfig",
        {**_ACME, "name": "partner", "active": True},
        {
            "jwtEndpoint": ("https://a.example.com/jwt", "https://b.example.com/jwt"),
            "issuer": ("https://a.example.com", "https://b.example.com"),
            "keysEndpoint": ("https://a.example.com/keys", "https://b.example.com/keys"),
            "headerName": ("authorization", "partner"),
            "audience": ("https://a.example.com/shop", "https://a.example.com/api"),
        },
    ),
    (
        "OidcApplication",
        {**_SHOP, "name": "web", "active": True},
        {
            "redirectUris": (
                ["https://a.example.com/cb", "https://b.example.com/cb"],
                [
                    "https://a.example.com/cb",
                    "https://c.example.com/cb",
                    "https://d.example.com/cb",
                ],
            ),
            "responseTypes": (
                ["OIDC_RESPONSE_TYPE_CODE"],
                ["OIDC_RESPONSE_TYPE_CODE", "OIDC_RESPONSE_TYPE_ID_TOKEN"],
            ),
            "grantTypes": (
                ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_REFRESH_TOKEN"],
                ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE", "OIDC_GRANT_TYPE_IMPLICIT"],
            ),
            "appType": ("OIDC_APP_TYPE_WEB", "OIDC_APP_TYPE_NATIVE"),
            "authMethodType": ("OIDC_AUTH_METHOD_TYPE_BASIC", "OIDC_AUTH_METHOD_TYPE_POST"),
            "postLogoutRedirectUris": (
                ["https://a.example.com/bye", "https://b.example.com/bye"],
                ["https://a.example.com/bye", "https://d.example.com/bye"],
            ),
            "version": ("OIDC_VERSION_1_0", "OIDC_VERSION_1_0"),
            "devMode": (False, True),
            "accessTokenType": ("OIDC_TOKEN_TYPE_BEARER", "OIDC_TOKEN_TYPE_JWT"),
            "accessTokenRoleAssertion": (True, False),
            "idTokenRoleAssertion": (False, True),
            "idTokenUserinfoAssertion": (False, True),
            "clockSkew": ("1s", "3.5s"),
            "additionalOrigins": (
                ["https://a.example.com"],
                ["https://a.example.com", "https://z.example.com"],
            ),
            "skipNativeAppSuccessPage": (False, True),
            "backChannelLogoutUri": ("https://a.example.com/out", "https://b.example.com/out"),
            "loginVersion": (
                {"loginV2": {"baseUri": "https://a.example.com"}},
                {"loginV2": {"baseUri": "https://b.example.com"}},
            ),
        },
    ),
    (
        "Action",
        {**_ACME, "name": "greet", "active": True},
        {"script": (_SCRIPT, _SCRIPT), "timeout": ("5s", "7.5s"), "allowedToFail": (True, False)},
    ),
    (
        "ActionFlow",
        {**_ACME, "name": "EXTERNAL_AUTHENTICATION"},
        {
            "POST_AUTHENTICATION": (["greet", "second"], ["greet", "third"]),
            "PRE_CREATION": (["greet"], ["greet", "second", "third"]),
            "POST_CREATION": (["greet", "third"], ["greet", "second"]),
        },
    ),
    (
        "ActionFlow",
        {**_ACME, "name": "COMPLEMENT_TOKEN"},
        {
            "PRE_USERINFO_CREATION": (["greet", "second"], ["greet", "third"]),
            "PRE_ACCESS_TOKEN_CREATION": (["greet"], ["greet", "second", "third"]),
        },
    ),
    (
        "ActionFlow",
        {**_ACME, "name": "COMPLEMENT_SAML_RESPONSE"},
        {"PRE_SAML_RESPONSE_CREATION": (["greet", "second"], ["greet", "third"])},
    ),
    (
        "ProjectRole",
        {**_SHOP, "name": "manager"},
        {"displayName": ("Order manager", "Manager of orders"), "group": ("Orders", "Shop")},
    ),
]
OF_ZITADEL = ("backChannelLogoutUri", "loginVersion")
LAYOUTS = layouts()


def values_of(layout: Layout, fields: Mapping[str, tuple[Any, Any]], *, is_new: bool) -> Fields:
    """Return the fields of an object, before or after."""
    script = script_of(layout, "second" if is_new else "first")
    chosen = {name: pair[is_new] for name, pair in fields.items()}
    return {name: script if value is _SCRIPT else value for name, value in chosen.items()}
