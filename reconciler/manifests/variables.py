"""Variables of an environment, put in their places in documents and scripts.

They stand in values of metadata and spec. A script has some only where its manifest says
``templated: true``, since ``${}`` belongs to JavaScript. What cannot be replaced is told and leaves
its name behind, so that no second finding follows from it.

A few bytes can stand for many, so both the length of a text and all that is put in are limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.diagnostics import Diagnostic, Severity, SourceLocation, error, warning
from reconciler.manifests.discovery import Discovery
from reconciler.manifests.manifest import Growth, Manifest, Path
from reconciler.manifests.placeholders import (
    OPENING,
    Layers,
    Token,
    TooLongError,
    as_text,
    expanded,
    has_variables,
    left_over,
    may_have_left_over,
    position,
    size_of,
    sole_name,
    tokens,
    value_text,
)
from reconciler.manifests.plain_variables import (
    SECTIONS,
    PlainVariables,
    UnusualError,
)
from reconciler.manifests.text import YamlMapping, YamlValue
from reconciler.manifests.yaml_source import MAX_SCALAR
from reconciler.resources.nearest import MOST_HINTS, nearest

MAX_FAULTS = 100
"""Findings of one severity about the variables of one document."""

SCRIPT = ("spec", "script")
_ESCAPE = "Write $${ for the two characters ${."


class Variables:
    """Puts the variables of one run in their places."""

    def __init__(self, layers: Layers, growth: Growth) -> None:
        self.findings: list[Diagnostic] = []
        self.used: set[str] = set()
        self._layers = layers
        self._growth = growth
        self._text_of = value_text(layers.variables)
        self._plain = PlainVariables(layers.variables, self.used)
        self._sizes: dict[str, int] = {}
        self._near: dict[str, str | None] = {}

    def replace(self, manifest: Manifest) -> None:
        """Replace the variables in the metadata and spec of a document, where it stands."""
        document, text = manifest.document, manifest.file.text
        has_escapes = "\\" in text  # which can spell what is looked for
        may_be_left = has_escapes or may_have_left_over(text)
        number = text.count(OPENING)
        if not (may_be_left or number) or not isinstance(document, dict):
            return
        if may_be_left or not self._replaced_plainly(document, text, number):
            walk = _Walk(self, manifest, may_be_left=may_be_left)
            self.findings += walk.findings(document)

    def _replaced_plainly(self, document: YamlMapping, text: str, number: int) -> bool:
        """Replace what needs no closer look; return whether that was all there is."""
        plain = self._plain.of(text, number)
        if plain is None or not self._growth.is_room_for(number * plain.largest):
            return False
        before = plain.put_in
        try:
            plain.replace(document)
        except UnusualError:
            return False
        finally:
            self._growth.take(plain.put_in - before)
        return True

    def in_script(self, manifest: Manifest, script: str) -> str:
        """Return the script of a manifest with its variables replaced."""
        walk = _Walk(self, manifest, may_be_left=False)
        value = walk.text(script, SCRIPT)
        self.findings += walk.found
        return value

    def value_of(self, name: str) -> YamlValue:
        """Return the value of a variable, and note that it is used.

        Raises:
            LookupError: it is not declared, or has no value here.
        """
        self.used.add(name)
        found = self._layers.variables[name]
        if found is None:
            raise LookupError(name)
        return found.value

    def text_of(self, token: Token) -> str:
        """Return the text of a variable, or its name where it has none."""
        return self._text_of(token)

    def plain(self, text: str) -> str | None:
        """Return a text in which nothing but plain variables are to be replaced, or None.

        Nearly every text is of that kind, and this takes a fifth of the time of looking closely.
        """
        found = self._plain.of(text, text.count(OPENING))
        if found is None or text in found.values or len(text) > MAX_SCALAR:
            return None
        try:
            return found.text(text)
        except UnusualError:
            return None

    def has_room(self, size: int, manifest: Manifest, path: Path) -> bool:
        """Return whether there is room for more characters at a place."""
        return self._growth.has_room(size, manifest, path)

    def size(self, name: str, value: YamlValue) -> int:
        """Return about how many characters the value of a variable takes."""
        if name not in self._sizes:
            self._sizes[name] = size_of(value)
        return self._sizes[name]

    def fault(self, token: Token) -> tuple[str, str, str] | None:
        """Return code, summary and remedy where a variable cannot stand inside of a text."""
        name = token.name
        if not name:
            return _no_name(token)
        if name not in self._layers.variables:
            return self._unknown(name)
        try:
            value = self.value_of(name)
        except LookupError:
            return self._without_value(name)
        return _no_text(name, value) if as_text(value) is None else None

    def _unknown(self, name: str) -> tuple[str, str, str]:
        if name not in self._near and len(self._near) < MOST_HINTS:
            self._near[name] = nearest(name, self._layers.variables)
        meant = self._near.get(name)
        hint = f"Did you mean {meant}? " if meant else ""
        where = "Variables are declared in reconciler.yaml, under variables."
        return "VARIABLE-UNKNOWN", f"unknown variable {name[:40]}", f"{hint}{where} {_ESCAPE}"

    def _without_value(self, name: str) -> tuple[str, str, str]:
        environment = self._layers.environment
        where = f" in the environment {environment}" if environment else ""
        key = f"environments.{environment}.variables" if environment else "variables, as default"
        option = f"with RECONCILER_VAR_{name}, or with --var {name}=VALUE"
        remedy = f"Give it one in reconciler.yaml under {key}, {option}."
        return "VARIABLE-NO-VALUE", f"variable {name} has no value{where}", remedy


def _no_name(token: Token) -> tuple[str, str, str]:
    remedy = f"Write ${{name}}, with letters, digits and _ in the name. {_ESCAPE}"
    return "VARIABLE-NAME", f"no name of a variable: {token.text[:40]}", remedy


def _no_text(name: str, value: YamlValue) -> tuple[str, str, str]:
    what = "a list" if isinstance(value, list) else "a mapping"
    return (
        "VARIABLE-IN-TEXT",
        f"variable {name} is {what}, which cannot stand inside of a text",
        f'Write "${{{name}}}" alone, as the whole value.',
    )


class _Walk:
    """One document, and what is wrong with its variables."""

    def __init__(self, variables: Variables, manifest: Manifest, *, may_be_left: bool) -> None:
        self.found: list[Diagnostic] = []
        self._variables = variables
        self._manifest = manifest
        self._may_be_left = may_be_left

    def findings(self, document: YamlMapping) -> list[Diagnostic]:
        """Replace the variables of a document, and return what is wrong."""
        for key, value in document.items():
            if key in SECTIONS:
                document[key] = self._value(value, (key,))
            elif isinstance(value, str) and _first_variable(value):
                self._refuse(key, self._manifest.place(key))
            if OPENING in key:
                self._key(key, (key,))
        return self.found

    def _value(self, value: YamlValue, path: Path) -> YamlValue:
        kind = type(value)
        if kind is str:
            return self._leaf(value, path) if self._is_suspect(value) else value
        if kind is dict:
            self._items(value, value.items(), path)
        elif kind is list:
            self._items(value, enumerate(value), path)
        return value

    def _items(
        self, values: YamlValue, items: Iterable[tuple[YamlValue, YamlValue]], path: Path
    ) -> None:
        """Replace variables in what a mapping or list holds: on the path of every manifest."""
        for key, inner in items:
            kind = type(inner)
            if kind is str:
                if OPENING in inner or (self._may_be_left and may_have_left_over(inner)):
                    values[key] = self._leaf(inner, (*path, key))
            elif kind is dict or kind is list:
                self._value(inner, (*path, key))
            if type(key) is str and OPENING in key:
                self._key(key, (*path, key))

    def _is_suspect(self, value: str) -> bool:
        return OPENING in value or (self._may_be_left and may_have_left_over(value))

    def _leaf(self, value: str, path: Path) -> YamlValue:
        if self._may_be_left and may_have_left_over(value):
            self._left_over(value, path)
        if OPENING not in value or path[-1] == "script":
            return value
        if path[-1] == "scriptFile":
            if _first_variable(value):
                self._refuse("scriptFile", self._manifest.place(*path))
            return value
        name = sole_name(value)
        return self._whole(value, name, path) if name else self.text(value, path)

    def _whole(self, text: str, name: str, path: Path) -> YamlValue:
        variables = self._variables
        try:
            value = variables.value_of(name)
        except LookupError:
            return self.text(text, path)  # which says why
        room = variables.has_room(variables.size(name, value), self._manifest, path)
        return value if room else name

    def text(self, text: str, path: Path) -> str:
        """Return a text with its variables replaced."""
        variables = self._variables
        value = variables.plain(text)
        if value is None:
            value = self._closely(text, path)
        more = max(len(value) - len(text), 0)
        return value if variables.has_room(more, self._manifest, path) else text

    def _closely(self, text: str, path: Path) -> str:
        variables = self._variables
        for token in tokens(text):
            fault = None if token.is_literal else variables.fault(token)
            if fault and self._is_told(Severity.ERROR):
                place = self._place_in(text, token, path)
                self.found.append(error(*fault, place))
        try:
            return expanded(text, variables.text_of, MAX_SCALAR)
        except TooLongError:
            self.found.append(_too_long(self._manifest, path))
            return text

    def _left_over(self, value: str, path: Path) -> None:
        token = left_over(value)
        if token is not None and self._is_told(Severity.WARNING):
            self.found.append(left_over_warning(token, self._place_in(value, token, path)))

    def _place_in(self, text: str, token: Token, path: Path) -> SourceLocation:
        if path[-1] != "script":
            return self._manifest.place(*path)
        return self._manifest.place_within(*position(text, token.start), *path)

    def _key(self, key: str, path: Path) -> None:
        if _first_variable(key):
            self._refuse("a key", self._manifest.place_of_key(*path))

    def _refuse(self, where: str, place: SourceLocation) -> None:
        summary = f"a variable in {where}"
        remedy = "Variables stand in values of metadata and spec only: write it out here."
        if self._is_told(Severity.ERROR):
            self.found.append(error("VARIABLE-PLACE", summary, remedy, place))

    def _is_told(self, severity: Severity) -> bool:
        """Return whether one more finding is told; many warnings hide no error."""
        return sum(each.severity is severity for each in self.found) < MAX_FAULTS


def _first_variable(text: str) -> bool:
    return has_variables(text) and any(not token.is_literal for token in tokens(text))


def _too_long(manifest: Manifest, path: Path) -> Diagnostic:
    return error(
        "VARIABLE-SIZE",
        f"the text is longer than {MAX_SCALAR} characters with its variables replaced",
        "Write shorter values, or use them less often.",
        manifest.place(*path),
    )


def left_over_warning(token: Token, place: SourceLocation) -> Diagnostic:
    """Return the finding about a placeholder of another tool."""
    return warning(
        "PLACEHOLDER-LEFT",
        f"{token.text[:60]} looks like a placeholder of another tool",
        "It is sent as it stands. Declare a variable in reconciler.yaml and write ${name} instead.",
        place,
    )


def unused(layers: Layers, used: Iterable[str]) -> Iterator[Diagnostic]:
    """Yield a warning for each declared variable that neither this environment nor another uses."""
    names = {name: layers.declarations.get(name) for name in layers.variables}
    for name in used:
        names.pop(name, None)
    for name, place in _not_elsewhere(names, layers.other_overlays).items():
        summary = f"variable {name} is not used"
        remedy = "Remove it, or write ${" + name + "} where its value belongs."
        yield warning("VARIABLE-UNUSED", summary, remedy, place)


def _not_elsewhere(
    names: Mapping[str, YamlValue], overlays: tuple[str, ...]
) -> Mapping[str, YamlValue]:
    left = dict(names)
    if not left:
        return left
    for found in Discovery().files(overlays):
        if b"templated" in found.data:
            return {}  # the variables may be in its script
        for name in [name for name in left if f"${{{name}}}".encode() in found.data]:
            del left[name]
    return left
