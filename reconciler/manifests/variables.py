"""Variables of an environment, put in their places in documents and scripts.

They stand in values of metadata and spec. A script has some only where its manifest says
``templated: true``, since ``${}`` belongs to JavaScript. What cannot be replaced is an error and
leaves its name behind, so that no second finding follows from it.

A few bytes can stand for many, so both the length of a text and all that is put in are limited.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from reconciler.diagnostics import Diagnostic, SourceLocation, error, note, warning
from reconciler.kinds.fields import KINDS
from reconciler.manifests.discovery import Discovery
from reconciler.manifests.manifest import SCRIPT_FILES, SCRIPTS, Growth, Manifest, Path, SourceFile
from reconciler.manifests.placeholders import (
    LITERAL,
    OPENING,
    TOKEN,
    Layers,
    Token,
    as_text,
    left_over,
    may_have_left_over,
    position,
    size_of,
    token_of,
    tokens,
)
from reconciler.manifests.text import YamlMapping, YamlValue
from reconciler.manifests.yaml_source import MAX_SCALAR
from reconciler.resources.nearest import NearNames

MAX_FAULTS = 100
"""Findings of one sort about one document: many placeholders of other tools hide no variable."""

_SECTIONS = frozenset({"metadata", "spec"})
# An escape that can spell what is looked for, or join two halves of it: ``"\\x24{name}"``.
_SPELLS = re.compile(r"\\[xuU\r\n\x85\u2028\u2029]")
_VARIABLE, _LEFT = "VARIABLE", "PLACEHOLDER-LEFT"  # sorts of findings
_ESCAPE = "Write $${ for the two characters ${."
_FLAGS = [flag.name.encode() for row in KINDS.values() for flag in row.reading]


class Variables:
    """Puts the variables of one run in their places, document by document."""

    def __init__(self, layers: Layers, growth: Growth) -> None:
        self.findings: list[Diagnostic] = []
        self.used: set[str] = set()
        self._file: SourceFile | None = None
        self._layers = layers
        self._growth = growth
        self._near = NearNames((None, name) for name in layers.variables)
        given = {name: each.value for name, each in layers.variables.items() if each is not None}
        # Each by the token that stands for the variable, such as ``${host}``. A size is counted
        # once: a list can have thousands of items, and be used thousands of times.
        self._whole = {
            f"{OPENING}{name}}}": (name, value, size_of(value)) for name, value in given.items()
        }
        texts = {token: as_text(value) for token, (_, value, _) in self._whole.items()}
        self._texts = {LITERAL: OPENING}
        self._texts |= {token: text for token, text in texts.items() if text is not None}

    def replace(self, manifest: Manifest) -> None:
        """Replace the variables in the metadata and spec of a document, where it stands."""
        if manifest.file is not self._file:
            self._look_through(manifest.file)
        document = manifest.document
        if isinstance(document, dict) and (self._may_be_left or self._has_opening):
            self._begin(manifest)
            self._sections(document)

    def in_script(self, manifest: Manifest, script: str, path: Path) -> str:
        """Return a script of a manifest with its variables replaced."""
        self._begin(manifest)
        return self._text(script, path)

    def unreplaced(self, script: str) -> Token | None:
        """Return the first variable of a script that is not templated, if it has any.

        JavaScript has ``${}`` of its own, between back-ticks: there only a declared name counts.
        """
        for token in tokens(script):
            if token.name and (token.name in self._layers.variables or "`" not in script):
                return token
        return None

    def _look_through(self, file: SourceFile) -> None:
        """See what a file can hold: once, for it may have thousands of documents."""
        self._file = file
        self._may_be_left = may_have_left_over(file.text) or bool(_SPELLS.search(file.text))
        self._has_opening = OPENING in file.text

    def _begin(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._told: Counter[str] = Counter()

    def _sections(self, document: YamlMapping) -> None:
        for key, value in document.items():
            if key in _SECTIONS:
                if type(value) is not str:
                    self._inside(value, (key,))
                else:
                    document[key] = self._leaf(value, (key,))
            elif isinstance(value, str) and _has_variable(value):
                self._refuse(key, self._manifest.place(key))
            if OPENING in key:
                self._key(key, (key,))

    def _inside(self, outer: YamlValue, path: Path) -> None:
        """Replace variables in what a mapping or list holds: on the path of every manifest."""
        if type(outer) is not dict and type(outer) is not list:
            return
        left = self._may_be_left
        for key, inner in outer.items() if type(outer) is dict else enumerate(outer):
            kind = type(inner)
            if kind is str:
                if OPENING in inner or (left and may_have_left_over(inner)):
                    outer[key] = self._leaf(inner, (*path, key))
            elif kind is dict or kind is list:
                self._inside(inner, (*path, key))
            if type(key) is str and OPENING in key:
                self._key(key, (*path, key))

    def _leaf(self, value: str, path: Path) -> YamlValue:
        """Return a value with its variables replaced."""
        if self._may_be_left and may_have_left_over(value):
            self._left_over(value, path)
        if OPENING not in value or path[-1] in SCRIPTS:
            return value
        if path[-1] in SCRIPT_FILES:
            if _has_variable(value):
                self._refuse(str(path[-1]), self._manifest.place(*path))
            return value
        if value not in self._whole:
            return self._text(value, path)
        name, put_in, size = self._whole[value]
        self.used.add(name)
        return put_in if self._growth.has_room(size, self._manifest, path) else name

    def _text(self, text: str, path: Path) -> str:
        """Return a text with its variables replaced; report what is wrong with them."""
        parts: list[str] = []
        end = 0
        for found in TOKEN.finditer(text):
            parts += (text[end : found.start()], self._put_in(found, text, path))
            end = found.end()
        parts.append(text[end:])
        length = sum(map(len, parts))
        if length <= MAX_SCALAR:  # asked first: a few characters can stand for a gigabyte
            more = max(length - len(text), 0)
            return "".join(parts) if self._growth.has_room(more, self._manifest, path) else text
        summary = f"the text is longer than {MAX_SCALAR} characters with its variables replaced"
        remedy = "Write shorter values, or use them less often."
        place = self._manifest.place(*path)
        self.findings.append(error("VARIABLE-SIZE", summary, remedy, place))
        return text

    def _put_in(self, found: re.Match[str], text: str, path: Path) -> str:
        """Return what stands for a variable or an escape; for one without a value, its name."""
        value = self._texts.get(found[0])
        if value is None:
            token = token_of(found)
            if self._is_told(_VARIABLE):
                place = self._place_in(text, token, path)
                self.findings.append(self._fault(token).at(place))
            return token.name
        if found[0] != LITERAL:
            self.used.add(found[1])
        return value

    def _fault(self, token: Token) -> Diagnostic:
        """Return why a variable cannot stand inside of a text."""
        name = token.name
        if not name:
            remedy = f"Write ${{name}}, with letters, digits and _ in the name. {_ESCAPE}"
            return error("VARIABLE-NAME", f"no name of a variable: {token.text[:40]}", remedy)
        if name not in self._layers.variables:
            return self._unknown(name)
        found = self._layers.variables[name]
        if found is None:
            return self._without_value(name)
        what = "a list" if isinstance(found.value, list) else "a mapping"
        return error(
            "VARIABLE-IN-TEXT",
            f"variable {name} is {what}, which cannot stand inside of a text",
            f'Write "${{{name}}}" alone, as the whole value.',
        )

    def _unknown(self, name: str) -> Diagnostic:
        meant = self._near.name_for(name, None)
        hint = f"Did you mean {meant}? " if meant else ""
        remedy = f"{hint}Variables are declared in reconciler.yaml, under variables. {_ESCAPE}"
        return error("VARIABLE-UNKNOWN", f"unknown variable {name[:40]}", remedy)

    def _without_value(self, name: str) -> Diagnostic:
        environment = self._layers.environment
        where = f" in the environment {environment}" if environment else ""
        key = f"environments.{environment}.variables" if environment else "variables, as default"
        option = f"with RECONCILER_VAR_{name}, or with --var {name}=VALUE"
        remedy = f"Give it one in reconciler.yaml under {key}, {option}."
        return error("VARIABLE-NO-VALUE", f"variable {name} has no value{where}", remedy)

    def _left_over(self, value: str, path: Path) -> None:
        token = left_over(value)
        if token is not None and self._is_told(_LEFT):
            place = self._place_in(value, token, path)
            in_script = path[:-1] == ("spec",) and path[-1] in SCRIPTS
            self.findings.append(left_over_finding(token, place, in_script=in_script))

    def _place_in(self, text: str, token: Token, path: Path) -> SourceLocation:
        if path[-1] not in SCRIPTS:
            return self._manifest.place(*path)
        return self._manifest.place_within(*position(text, token.start), *path)

    def _key(self, key: str, path: Path) -> None:
        if _has_variable(key):
            self._refuse("a key", self._manifest.place_of_key(*path))

    def _refuse(self, where: str, place: SourceLocation) -> None:
        summary = f"a variable in {where}"
        remedy = "Variables stand in values of metadata and spec only: write it out here."
        if self._is_told(_VARIABLE):
            self.findings.append(error("VARIABLE-PLACE", summary, remedy, place))

    def _is_told(self, sort: str) -> bool:
        """Return whether one more finding of a sort about this document is reported."""
        self._told[sort] += 1
        return self._told[sort] <= MAX_FAULTS


def _has_variable(text: str) -> bool:
    return any(not token.is_literal for token in tokens(text))


def left_over_finding(token: Token, place: SourceLocation, *, in_script: bool) -> Diagnostic:
    """Return the finding about a placeholder of another tool: in a script it may be meant."""
    sent = "It is sent as it stands. " if in_script else ""
    return (warning if in_script else error)(
        _LEFT,
        f"{token.text[:60]} looks like a placeholder of another tool",
        f"{sent}Declare a variable in reconciler.yaml and write ${{name}} instead.",
        place,
    )


def unreplaced_note(token: Token, place: SourceLocation, name: str, flag: str) -> Diagnostic:
    """Return the finding about a variable in a script that is not templated: field and flag."""
    return note(
        "SCRIPT-VARIABLE",
        f"{token.text[:60]} in a {name} that is not {flag}",
        f"It is sent as it stands. Write {flag}: true in metadata to have variables replaced, "
        f"or {flag}: false if this is meant.",
        place,
    )


def unused(layers: Layers, used: Collection[str]) -> list[Diagnostic]:
    """Return a warning for each declared variable that no environment uses."""
    left = [name for name in layers.variables if name not in used]
    for found in Discovery().files(layers.other_overlays if left else ()):
        if any(flag in found.data for flag in _FLAGS):
            return []  # the variables may be in its script
        left = [name for name in left if f"${{{name}}}".encode() not in found.data]
    return [
        warning(
            "VARIABLE-UNUSED",
            f"variable {name} is not used",
            f"Remove it, or write ${{{name}}} where its value belongs.",
            layers.declarations.get(name),
        )
        for name in left
    ]
