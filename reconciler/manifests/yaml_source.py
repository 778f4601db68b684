"""YAML text becomes plain values. The only module that imports yaml.

Reading is a security boundary. One pass over the parser's events guards and builds at once:
no anchors, aliases, merge keys or tags, no key twice, and limits on everything that can grow.
The loaders of the library are never used: they share what an alias repeats, keep the last of
two equal keys, and end the process on 30 kB of ``[``.

Reading goes to the end and notes every finding. It remembers no places but the start of each
document. For the place of a later finding, the document that it is in is read again, as nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from yaml._yaml import CParser
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from reconciler.diagnostics import Diagnostic, SourceLocation, error
from reconciler.manifests.text import YamlMapping, YamlValue, syntax_fault, unreadable_character

MAX_DEPTH = 32  # a manifest needs four; the builder below recurses once per level
# As many as fit in the time a person waits for one file. Some 2 * MAX_DEPTH times as many may be
# read before it is noticed: mappings and lists that are not at their end yet are in no count.
MAX_NODES = 100_000
MAX_SCALAR = 64 * 1024  # a script may have 2,000 characters
MAX_DOCUMENTS = 10_000
MAX_FINDINGS = 100  # as many as a person fixes in one file at a time

_PLAIN_KEY = (
    "Write a plain word as key. For a variable, write ${name}, which reconciler.yaml declares, and "
    "not {{ name }}."
)

# A second first key begins a second manifest, if the first one already has its name.
_FIRST_KEY, _NAMING = "apiVersion", "metadata"

# Keys met before that are text, quoted or not: looked up instead of checked, and held once.
_usual_keys: dict[str, str] = {}
_MAX_USUAL_KEYS = 1000

_Event = Any


class _GiveUpError(Exception):
    """Reading cannot go on."""


class Start(NamedTuple):
    """Numbers of characters and lines before the line in which a document begins."""

    characters: int
    lines: int


class Trace(NamedTuple):
    """The documents of a text, and everything that is wrong with it.

    A document with a finding in it is None, like one without content. Each has its start.
    """

    documents: list[YamlValue]
    findings: list[Diagnostic]
    starts: list[Start]


def read_documents(text: str, file: str = "") -> Trace:
    """Return the documents of the text of a file with every finding."""
    reader = _Reader(text, file)
    try:
        reader.read()
    except _GiveUpError:
        pass
    except MarkedYAMLError as fault:
        reader.findings.append(syntax_fault(text, fault.problem or "", _place(fault, file)))
    except YAMLError:
        reader.findings.append(unreadable_character(text, file))
    return Trace(reader.documents, reader.findings, reader.starts)


Entry: TypeAlias = "tuple[Node | None, Node]"
"""A key and its value, or None and an item of a list."""


class Node(NamedTuple):
    """A value with the characters that it is written in.

    Attributes:
        start: Number of characters before it.
        end: Number of characters up to its end. A block ends with its last value, and a block of
            text before the line break that ends it.
        line: Line of its first character, from 1.
        column: Column of the same, from 1.
        style: Of a scalar: its quote, ``|``, ``>``, or empty. Of a list or mapping: ``[`` or ``{``
            between brackets, ``-`` or ``:`` in a block.
        items: Of a list or mapping, in order.
    """

    start: int
    end: int
    line: int
    column: int
    style: str
    value: YamlValue
    items: tuple[Entry, ...] = ()

    def entry(self, step: str | int) -> Entry | None:
        """Return the entry of a key or the item at a position, or None."""
        if isinstance(self.value, dict):
            return self.items[[*self.value].index(step)] if step in self.value else None
        has_item = isinstance(self.value, list) and step in range(len(self.items))
        return self.items[int(step)] if has_item else None

    def nearest(self, path: Sequence[str | int]) -> Entry:
        """Return the entry under a path, or the nearest one above it."""
        found: Entry = (None, self)
        for step in path:
            inner = found[1].entry(step)
            if inner is None:
                break
            found = inner
        return found


def node_of(text: str) -> Node:
    """Return the value of the first document of a text in which ``read_documents`` found no fault.

    It costs much more than reading, and nothing but rewriting needs it.
    """
    next_event = CParser(text).get_event
    next_event()
    next_event()
    return _node(text, next_event(), next_event)


def _node(text: str, event: _Event, next_event: Callable[[], _Event]) -> Node:
    kind, mark, end = type(event), event.start_mark, event.end_mark.index
    start, line, column = mark.index, mark.line + 1, mark.column + 1
    if kind is ScalarEvent:
        style = event.style or ""
        is_text = style or event.value[:1] not in MAY_BE_TYPED
        value = event.value if is_text else typed(event.value)
        end = _end_of_block(text, start, end) if style in _BLOCKS else end
        return Node(start, end, line, column, style, value)
    items: list[Entry] = []
    is_list = kind is SequenceStartEvent
    while type(inner := next_event()) not in _ENDS:
        key = None if is_list else _node(text, inner, next_event)
        items.append((key, _node(text, inner if is_list else next_event(), next_event)))
    values = [each.value for _, each in items]
    keys = [key.value for key, _ in items if key is not None]
    if text[start] in "[{":  # no key can begin so
        end, style = inner.end_mark.index, text[start]
    else:
        end, style = items[-1][1].end, "-" if is_list else ":"
    value = values if is_list else dict(zip(keys, values, strict=True))
    return Node(start, end, line, column, style, value, tuple(items))


_BLOCKS = ("|", ">")
_ENDS = (MappingEndEvent, SequenceEndEvent)
_HEADER = re.compile(r"[|>][-0-9]*\+")
_LAST_BREAK = re.compile(r"(?:\r\n|\r|\n)\Z")
_LAST_BREAKS = re.compile(r"[\r\n]+\Z")


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return where a block of text ends: empty lines after it are its own only if it keeps them."""
    breaks = _LAST_BREAK if _HEADER.match(text, start) else _LAST_BREAKS
    found = breaks.search(text, start, end)
    return found.start() if found else end


def _place(fault: MarkedYAMLError, file: str) -> SourceLocation:
    mark = fault.problem_mark or fault.context_mark
    if fault.context_mark is not None and "unexpected end" in (fault.problem or ""):
        mark = fault.context_mark  # where the quote was opened, not where the file ends
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    return SourceLocation(file, line + 1, column + 1)


class _Reader:
    """One pass over one text: recursive descent, no deeper than MAX_DEPTH."""

    __slots__ = (
        "_depth", "_file", "_joined", "_next", "_nodes", "documents", "findings", "starts",
    )  # fmt: skip

    def __init__(self, text: str, file: str) -> None:
        self.documents: list[YamlValue] = []
        self.findings: list[Diagnostic] = []
        self.starts: list[Start] = []
        self._file = file
        self._depth = 0
        self._joined = False  # two manifests stand in what is one document
        self._nodes = 0  # keys and values in mappings and lists that were read to their end
        self._next: Callable[[], _Event] = CParser(text).get_event

    def read(self) -> None:
        """Read every document."""
        next_event, documents, findings, starts = (
            self._next, self.documents, self.findings, self.starts,
        )  # fmt: skip
        next_event()  # the start of the stream
        while type(event := next_event()) is DocumentStartEvent:
            found = len(findings)
            if event.tags or event.version not in (None, (1, 2)):
                self._refuse(
                    event,
                    "YAML-DIRECTIVE",
                    "a directive other than %YAML 1.2",
                    "Remove the line that starts with %: manifests are YAML 1.2 without tags.",
                )
            if len(documents) == MAX_DOCUMENTS:
                self._stop(event, "YAML-DOCUMENTS", f"more than {MAX_DOCUMENTS} documents")
            mark: Any = event.start_mark
            starts.append(Start(mark.index - mark.column, mark.line))
            self._joined = False
            documents.append(None)
            value = self._value(next_event())
            if len(findings) == found:
                documents[-1] = value
            next_event()  # the end of the document

    def _value(self, event: _Event) -> YamlValue:
        kind = type(event)
        if kind is ScalarEvent and event.tag is event.anchor:  # they are only where both are None
            text: str = event.value
            if len(text) > MAX_SCALAR:
                self._stop_at_long(event)
            return text if event.style or text[:1] not in MAY_BE_TYPED else self._typed(event)
        if kind is AliasEvent:
            self._refuse(
                event,
                "YAML-ALIAS",
                f"alias *{event.anchor[:40]}",
                "Manifests have no anchors and aliases: write the value out.",
            )
            return None
        if event.tag is not event.anchor:
            self._refuse_property(event)
        if kind is ScalarEvent:
            return None
        if self._depth == MAX_DEPTH:
            self._stop(event, "YAML-DEPTH", f"values nested deeper than {MAX_DEPTH}")
        self._depth += 1
        is_mapping = kind is MappingStartEvent
        value = self._mapping() if is_mapping else self._sequence()
        self._depth -= 1
        self._nodes += len(value) * 2 if is_mapping else len(value)
        if self._nodes > MAX_NODES:
            self._stop_at_many(event)
        return value

    def _mapping(self) -> YamlMapping:
        next_event, usual_key = self._next, _usual_keys.get
        values: YamlMapping = {}
        lines: dict[str, int] = {}  # of the keys, from 0
        while (kind := type(event := next_event())) is not MappingEndEvent:
            key = usual_key(event.value) if kind is ScalarEvent else None
            if key is None or key in values or event.tag is not event.anchor:
                key = self._key(event, values, lines)
            values[key] = self._value(next_event())
            lines.setdefault(key, event.start_mark.line)
            if len(values) > MAX_NODES:  # one that is not at its end yet is in no count
                self._stop_at_many(event)
        return values

    def _sequence(self) -> list[YamlValue]:
        next_event = self._next
        values: list[YamlValue] = []
        while type(event := next_event()) is not SequenceEndEvent:
            values.append(self._value(event))
            if len(values) > MAX_NODES:  # one that is not at its end yet is in no count
                self._stop_at_many(event)
        return values

    def _key(self, event: _Event, known: YamlMapping, lines: Mapping[str, int]) -> str:
        if type(event) is not ScalarEvent:
            self._stop(event, "YAML-KEY", "a key that is not text", _PLAIN_KEY)
        if event.tag is not event.anchor:
            self._refuse_property(event)
        key: str = event.value
        if len(key) > MAX_SCALAR:
            self._stop_at_long(event)
        if not event.style:
            self._check_plain_key(event)
        if key in known:
            self._refuse_twice(event, known, lines)
        return key

    def _check_plain_key(self, event: _Event) -> None:
        key: str = event.value
        if key == "<<":
            self._refuse(
                event,
                "YAML-MERGE",
                "merge key <<",
                "Manifests have no merge keys: write the fields out.",
            )
        elif key[:1] in MAY_BE_TYPED and not isinstance(self._typed(event), str):
            self._refuse(
                event,
                "YAML-KEY",
                "a key that is not text",
                f'Write "{key[:40]}" in quotes if this is meant to be a key.',
            )
        elif len(_usual_keys) < _MAX_USUAL_KEYS:
            _usual_keys[key] = key

    def _typed(self, event: _Event) -> YamlValue:
        try:
            return typed(event.value)
        except ValueError as fault:
            self._refuse(
                event,
                "YAML-NUMBER",
                f"{fault}",
                "No field of a manifest takes such a number; write text in quotes.",
            )
            return None

    def _refuse_twice(self, event: _Event, known: YamlMapping, lines: Mapping[str, int]) -> None:
        begins_line = event.start_mark.column == 0  # nothing else can have a line above it
        if event.value == _FIRST_KEY and begins_line and _NAMING in known:
            self._joined = True
            self._refuse(
                event,
                "YAML-SEPARATOR",
                "a second manifest without a line of --- before it",
                "Write a line of --- above this one: it stands between two manifests.",
            )
            return
        if self._depth == 1 and self._joined:
            return  # it is a key of the second manifest
        first, line = lines[event.value] + 1, event.start_mark.line + 1
        self._refuse(
            event,
            "YAML-DUPLICATE-KEY",
            f"key {event.value[:40]} is written twice, first in line {first}",
            f"Keep one of the two{f': line {first} or line {line}' if line != first else ''}.",
        )

    def _refuse_property(self, event: _Event) -> None:
        if event.anchor is not None:
            self._refuse(
                event,
                "YAML-ANCHOR",
                f"anchor &{event.anchor[:40]}",
                "Manifests have no anchors and aliases: remove it and write the value out.",
            )
        if event.tag is not None:
            self._refuse(
                event,
                "YAML-TAG",
                f"tag {event.tag[:40]}",
                "Manifests have no tags: remove it, and write text in quotes.",
            )

    def _refuse(self, event: _Event, code: str, summary: str, remedy: str) -> None:
        mark = event.start_mark
        place = SourceLocation(self._file, mark.line + 1, mark.column + 1)
        self.findings.append(error(code, summary, remedy, place))
        if len(self.findings) >= MAX_FINDINGS:
            raise _GiveUpError

    def _stop(
        self, event: _Event, code: str, summary: str, remedy: str = "Split or simplify the file."
    ) -> None:
        self._refuse(event, code, summary, remedy)
        raise _GiveUpError

    def _stop_at_many(self, event: _Event) -> None:
        self._stop(event, "YAML-NODES", f"more than {MAX_NODES} values")

    def _stop_at_long(self, event: _Event) -> None:
        self._stop(event, "YAML-SCALAR", f"a text of {len(event.value)} characters")


MAX_NUMBER = 64  # characters; int() is quadratic in the length

# Plain scalars that start otherwise are text; most do, so this is asked before anything else.
MAY_BE_TYPED = frozenset({"", *"nNtTfF~+-.0123456789"})

_WORDS: dict[str, bool | None] = {
    "": None,
    **dict.fromkeys(("~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII
)
_ODD = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)


def typed(text: str) -> YamlValue:
    """Return what a plain scalar stands for by the core schema of YAML 1.2.

    ``no``, ``on``, ``12:30:00``, ``010``, ``1_000`` and dates, on which versions of YAML disagree,
    stay text. Nothing in a manifest is a number: numbers exist only to be told from text.

    Raises:
        ValueError: it is a number that no value can hold.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _ODD.fullmatch(text):
        raise ValueError("not a finite number")
    base = 10 if _INTEGER.fullmatch(text) else 0 if _BASED.fullmatch(text) else None
    if base is None and not _FLOAT.fullmatch(text):
        return text
    if len(text) > MAX_NUMBER:
        raise ValueError(f"a number of {len(text)} characters")
    number = float(text) if base is None else int(text, base)
    if number in (math.inf, -math.inf):
        raise ValueError("a number too large to hold")
    return number
