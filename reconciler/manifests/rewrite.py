"""Values of a text of YAML or JSON are replaced where they stand; nothing else of it changes.

Comments, order, quotes and line ends stay. A new text keeps the quotes or the block of the old one
where that style can hold it, and stands in double quotes otherwise. Each document is read again
after its change: where it does not read as the old one with the new value in it, the next style is
tried, and in the end the change is refused.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import pairwise
from typing import Any, NamedTuple

from reconciler.manifests.export import STEP, emit, quoted, scalar
from reconciler.manifests.manifest import Path
from reconciler.manifests.paired import paired
from reconciler.manifests.text import YamlMapping, YamlValue, escaped_pairs, is_same
from reconciler.manifests.yaml_source import Entry, Node, node_of, read_documents

GONE: Any = object()
"""In place of a value: the field is taken out."""

ENVELOPE = ("apiVersion", "kind", "metadata", "spec")


class Edit(NamedTuple):
    """A new value for a field of a document.

    Attributes:
        document: Position of the document in the text.
        path: Keys down to the field. Those that are missing are added.
        value: A plain value, as it is to be written.
        order: Names of the fields of its section, which say where a new one is added.
    """

    document: int
    path: Path
    value: YamlValue
    order: Sequence[str] = ()


class RewriteError(Exception):
    """No way was found to write a value in its place; ``edit`` is the change."""

    def __init__(self, edit: Edit) -> None:
        super().__init__(f"{edit.path} cannot be written in its place")
        self.edit = edit


def rewritten(
    text: str, edits: Iterable[Edit], removed: Collection[int] = (), *, is_json: bool = False
) -> str:
    """Return a text with new values in its documents, and without some of them.

    The text is one in which reading found nothing wrong; it has no byte order mark. ``is_json``
    writes nothing that JSON does not know.

    Raises:
        RewriteError: a value cannot be written in its place.
    """
    if is_json:
        for edit in edits:
            text = _edited(text, edit, is_json=True)
        return "" if removed else text
    bounds = [start.characters for start in read_documents(text).starts] + [len(text)]
    documents = [text[start:end] for start, end in pairwise(bounds)]
    for edit in edits:
        documents[edit.document] = _edited(documents[edit.document], edit)
    kept = (each for index, each in enumerate(documents) if index not in removed)
    return text[: bounds[0]] + "".join(kept)


class _Style(Enum):
    """Styles in which a new text is tried, one after the other."""

    KEPT = auto()
    LITERAL = auto()
    QUOTED = auto()


def _edited(text: str, edit: Edit, *, is_json: bool = False) -> str:
    """Return a text of one document with one edit made."""
    before = _read(text, is_json=is_json)
    wanted = _with_value(before, edit.path, edit.value)
    if is_same(before, wanted):
        return text
    for style in _Style:
        editor = _Editor(text, style, is_json=is_json)
        try:
            editor.edit(edit)
            after = editor.result()
            if is_same(_read(after, is_json=is_json), wanted):
                return after
        except (_NoWayError, ValueError):
            continue
    raise RewriteError(edit)


def _read(text: str, *, is_json: bool) -> YamlValue:
    """Return the document of a text.

    Raises:
        ValueError: it is not exactly one, or no JSON.
    """
    if is_json:
        json.loads(text)
        text, _ = escaped_pairs(text)
    documents, findings, _ = read_documents(text)
    if findings or len(documents) != 1:
        raise ValueError("not one document")
    return documents[0]


def _with_value(document: YamlValue, path: Path, value: YamlValue) -> YamlValue:
    if not path:
        return value
    name, *rest = path
    inner = document if isinstance(document, dict) else {}
    new = _with_value(inner.get(name), tuple(rest), value)
    kept = {key: each for key, each in inner.items() if new is not GONE or key != name}
    return kept if new is GONE else {**kept, name: new}


class _NoWayError(Exception):
    """A value cannot be written in a style."""


class _Place(NamedTuple):
    """The surroundings of a value.

    Attributes:
        indent: Column of the block that it is in.
        colon: Characters up to the end of the colon before it; None in a list.
        in_flow: Whether it is between brackets.
    """

    indent: int
    colon: int | None
    in_flow: bool


class _Splice(NamedTuple):
    start: int
    end: int
    text: str


@dataclass
class _Editor:
    """Collects the splices of one edit of a document, in one style."""

    text: str
    style: _Style
    is_json: bool
    splices: list[_Splice] = field(default_factory=list)
    known: dict[int, list[tuple[int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found = _BREAK.search(self.text)
        self.newline = found[0] if found else "\n"

    def result(self) -> str:
        """Return the text with the splices in it. Cuts may overlap, and nothing else."""
        parts: list[str] = []
        end = 0
        for splice in sorted(self.splices, key=lambda each: each[:2]):
            if splice.start < end:
                if splice.text:
                    raise _NoWayError
                end = max(end, splice.end)
                continue
            parts += (self.text[end : splice.start], splice.text)
            end = splice.end
        return "".join(parts) + self.text[end:]

    def edit(self, edit: Edit) -> None:
        """Collect the splices of an edit."""
        node = self._root()
        place = _Place(0, None, in_flow=False)
        orders = {0: ENVELOPE, len(edit.path) - 1: edit.order}
        for depth, name in enumerate(edit.path):
            if node.style not in {"{", ":"}:
                self._change(node, _nested(edit.path[depth:], edit.value), place)
                return
            found = node.entry(name)
            if found is None:
                value = _nested(edit.path[depth + 1 :], edit.value)
                self._add(node, {str(name): value}, orders.get(depth, ()), place)
                return
            if edit.value is GONE and depth == len(edit.path) - 1:
                self._remove(node, [node.items.index(found)], place)
                return
            place, node = self._place_in(node, found), found[1]
        self._change(node, edit.value, place)

    def _root(self) -> Node:
        if not self.is_json:
            return node_of(self.text)
        text, ends = escaped_pairs(self.text)
        return _moved(node_of(text), ends)

    # What stands around a value.

    def _line_start(self, position: int) -> int:
        return max(self.text.rfind("\n", 0, position), self.text.rfind("\r", 0, position)) + 1

    def _line_end(self, position: int) -> int:
        found = _BREAK.search(self.text, position)
        return found.start() if found else len(self.text)

    def _column(self, position: int) -> int:
        return position - self._line_start(position)

    def _next(self, mark: str, position: int) -> int | None:
        """Return where a mark stands if it is next after blanks and comments."""
        found = _BETWEEN.match(self.text, position)
        at = found.end() if found else position
        return at if self.text.startswith(mark, at) else None

    def _place_in(self, node: Node, item: Entry) -> _Place:
        key = item[0]
        if key is None:
            return _Place(self._column(node.start), None, in_flow=node.style == "[")
        colon = self._next(":", key.end)
        after = None if colon is None else colon + 1
        return _Place(self._column(key.start), after, in_flow=node.style == "{")

    # Changes of a value.

    def _splice(self, start: int, end: int, text: str) -> None:
        self.splices.append(_Splice(start, end, text))

    def _change(self, node: Node, value: YamlValue, place: _Place) -> None:
        if is_same(node.value, value):
            return
        if isinstance(value, list) and isinstance(node.value, list) and node.items:
            self._change_list(node, value, place)
        elif isinstance(value, dict) and isinstance(node.value, dict) and node.items:
            self._change_mapping(node, value, place)
        elif node.style in {"|", ">"}:
            self._change_block(node, value, place)
        elif self._fits_literal(node, value, place):
            self._splice(node.start, node.end, _header("|", "", value, STEP))
            body = self._body(value.rstrip("\n"), value, place.indent + len(STEP))
            end = self._line_end(node.end)
            self._splice(end, end, self.newline + body + self._last_break(end, value))
        else:
            space = " " if node.start == node.end == place.colon else ""
            self._replace(node, space + self._inline(value, node.style or _FLOW[place.in_flow]))

    def _replace(self, node: Node, text: str) -> None:
        """Write a text in place of a value; a comment between empty brackets stays."""
        start, end = node.start, node.end
        if node.style in {"[", "{"} and text[0] == node.style and "#" in self.text[start:end]:
            self._splice(start + 1, start + 1, text[1:-1])
        else:
            self._splice(start, end, text)

    def _change_list(self, node: Node, value: list[YamlValue], place: _Place) -> None:
        if not value:
            self._remove(node, range(len(node.items)), place)
            return
        inner = self._place_in(node, node.items[0])
        removed: list[int] = []
        added: dict[int, list[str]] = {}
        start = first = 0
        for end, last in (*paired(node.value, value), (len(node.items), len(value))):
            both = min(end - start, last - first)
            for index in range(both):
                self._change(node.items[start + index][1], value[first + index], inner)
            removed += range(start + both, end)
            if more := value[first + both : last]:
                beside = node.items[min(start + both, len(node.items) - 1)][1].style
                style = beside or _FLOW[node.style == "["]
                added[end] = [self._inline(each, style) for each in more]
            start, first = end + 1, last + 1
        self._remove(node, removed, place)
        for before, texts in added.items():
            self._insert(node, before, texts, place)

    def _change_mapping(self, node: Node, value: YamlMapping, place: _Place) -> None:
        """Change what both mappings have; a key that is new takes the place of one that is gone."""
        names = list(node.value)
        gone = [index for index, name in enumerate(names) if name not in value]
        new = [name for name in value if name not in node.value]
        for key, inner in node.items:
            if key is not None and key.value in value:
                self._change(inner, value[key.value], self._place_in(node, (key, inner)))
        for index, name in zip(gone, new, strict=False):
            key, inner = node.items[index]
            if key is not None:
                self._splice(key.start, key.end, self._inline(name, key.style))
                self._change(inner, value[name], self._place_in(node, (key, inner)))
        self._remove(node, gone[len(new) :], place)
        if more := new[len(gone) :]:
            self._add(node, {name: value[name] for name in more}, (), place)

    # Texts.

    def _inline(self, value: YamlValue, style: str = "") -> str:
        """Return a value on one line, a text in a style if that can hold it."""
        if self.is_json:
            is_shown = str(value).isprintable()
            return json.dumps(value, ensure_ascii=isinstance(value, str) and not is_shown)
        if isinstance(value, list):
            return f"[{', '.join(self._inline(each, style or _FLOW[True]) for each in value)}]"
        if isinstance(value, dict):
            inner = (
                f"{scalar(key)}: {self._inline(each, _FLOW[True])}" for key, each in value.items()
            )
            return f"{{{', '.join(inner)}}}"
        return self._text(value, style) if isinstance(value, str) else scalar(value)

    def _text(self, value: str, style: str) -> str:
        if self.style is _Style.QUOTED or style == '"':
            return quoted(value)
        if style == "'" and value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        if style == _FLOW[True] and _ODD_IN_FLOW.search(value):
            return quoted(value)
        return scalar(value)

    def _fits_literal(self, node: Node, value: YamlValue, place: _Place) -> bool:
        """Return whether a text of several lines becomes a block, which it was not before."""
        return (
            isinstance(value, str)
            and "\n" in value
            and node.style in {"", "'"}
            and not place.in_flow
            and self.style is not _Style.QUOTED
            and _is_block_text(value)
        )

    def _change_block(self, node: Node, value: YamlValue, place: _Place) -> None:
        found = _HEADER.match(self.text, node.start)
        if found is None:
            raise _NoWayError
        mark, given, rest = found.groups()
        content = found.end()
        if self.style is _Style.QUOTED or not isinstance(value, str):
            head = found.start(3)
            self._splice(node.start, head, self._inline(value, '"'))
            self._splice(head + len(rest), max(node.end, head + len(rest)), "")
            return
        if not _is_block_text(value) or node.end < content:
            raise _NoWayError
        indent = self._content_indent(node, place, given)
        mark = mark if self.style is _Style.KEPT else "|"
        stripped = value.rstrip("\n")
        lines = _folded(stripped) if mark == ">" else stripped
        header = _header(mark, given, value, " " * (indent - place.indent))
        self._splice(node.start, found.start(3), header)
        body = self._body(lines, value, indent)
        self._splice(content, node.end, body + self._last_break(node.end, value))

    def _content_indent(self, node: Node, place: _Place, given: str) -> int:
        """Return the column at which the lines of a block begin."""
        if digit := given.strip("+-"):
            return place.indent + int(digit)
        lines = _BREAK.split(self.text[node.start : node.end])[1:]
        first = next((line for line in lines if line.strip()), None)
        return len(first) - len(first.lstrip(" ")) if first else place.indent + len(STEP)

    def _body(self, lines: str, value: str, indent: int) -> str:
        """Return the lines of a block, without the break that ends the last one."""
        kept = lines + "\n" * (len(value) - len(value.rstrip("\n")) - 1)
        return self.newline.join(
            f"{' ' * indent}{line}" if line else "" for line in kept.split("\n")
        )

    def _last_break(self, end: int, value: str) -> str:
        """Return the line break that a text needs after it, at the end of a file without one."""
        return self.newline if end == len(self.text) and value.endswith("\n") else ""

    # Items and entries.

    def _spans(self, node: Node) -> list[tuple[int, int]]:
        """Return start and end of each item or entry; in a block an item begins with its dash."""
        if node.start in self.known:  # a long list is changed in many places
            return self.known[node.start]
        spans, position = [], node.start
        for key, value in node.items:
            start = (key or value).start
            if node.style == "-":
                dash = self._next("-", position)
                if dash is None:
                    raise _NoWayError
                start = dash
            spans.append((start, value.end))
            position = value.end
        self.known[node.start] = spans
        return spans

    def _remove(self, node: Node, indices: Iterable[int], place: _Place) -> None:
        """Remove items or entries; a list or mapping that has none left is written empty."""
        gone = sorted(indices)
        if not gone:
            return
        spans = self._spans(node)
        if node.style in {"[", "{"}:
            self._remove_between_brackets(spans, gone)
            return
        for index in gone:
            self._cut(*spans[index])
        if len(gone) == len(spans):
            if place.colon is None:
                raise _NoWayError
            self._splice(place.colon, place.colon, " []" if node.style == "-" else " {}")

    def _cut(self, start: int, end: int) -> None:
        """Cut a part out, with its line if nothing else is on it; a comment stays."""
        first, last = self._line_start(start), self._line_end(end)
        if self.text[first:start].strip() or self.text[end:last].strip():
            blank = _BLANKS.match(self.text, end)
            self._splice(start, blank.end() if blank else end, "")
            return
        found = _BREAK.match(self.text, last)
        if found:
            self._splice(first, found.end(), "")
        else:  # the last line has no end: the one before loses its own
            before = len(self.text[:first].removesuffix("\n").removesuffix("\r"))
            self._splice(before, last, "")

    def _remove_between_brackets(
        self, spans: Sequence[tuple[int, int]], gone: Sequence[int]
    ) -> None:
        commas = [self._next(",", end) for _, end in spans]
        kept = sorted({*range(len(spans))}.difference(gone))
        for index in gone:
            start, end = spans[index]
            comma, before = commas[index], commas[index - 1] if index else None
            if kept and index < kept[-1]:
                if comma is None:
                    raise _NoWayError
                if self.text[end:comma].strip():  # a comment is between them
                    self._splice(comma, comma + 1, "")
                    comma = end - 1
                self._cut(start, comma + 1)
            elif before is not None and not self.text[before + 1 : start].strip(" "):
                self._splice(before, end, "")
            else:
                if before is not None:
                    self._splice(before, before + 1, "")
                self._cut(start, end)
        if not kept and commas[-1] is not None:
            self._splice(commas[-1], commas[-1] + 1, "")

    def _add(self, node: Node, entries: YamlMapping, order: Sequence[str], place: _Place) -> None:
        """Add entries to a mapping, after the nearest one before them in the order."""
        if not node.items:
            self._replace(node, self._inline(entries))
            return
        names = [key.value for key, _ in node.items if key is not None]
        before, new = len(names), next(iter(entries))
        if new in order:
            earlier = [each for each in order[: order.index(new)] if each in names]
            before = names.index(earlier[-1]) + 1 if earlier else 0
        if node.style == "{":
            beside = node.items[0][0]
            quote = (beside.style if beside else "") or _FLOW[True]
            pairs = entries.items()
            texts = [
                f"{self._inline(name, quote)}: {self._inline(each, quote)}" for name, each in pairs
            ]
        elif self.style is _Style.QUOTED:
            texts, before = [f"{name}: {self._inline(each)}" for name, each in entries.items()], 0
        else:
            texts = emit(entries).removesuffix("\n").split("\n")
        self._insert(node, before, texts, place)

    def _insert(self, node: Node, before: int, texts: Sequence[str], place: _Place) -> None:
        """Insert texts of items, or lines of entries, before an item or entry of this number."""
        spans = self._spans(node)
        if node.style in {"[", "{"}:
            self._insert_between_brackets(node, spans, before, texts)
            return
        mark = "- " if node.style == "-" else ""
        space = " " * self._column(spans[0][0])
        lines = [f"{space}{mark}{each}" if each else "" for each in texts]
        if before:
            end = self._line_end(max(spans[before - 1][1], self._after_key(node, before - 1)))
        elif self.style is not _Style.QUOTED and self._is_below(place, spans[0][0]):
            end = self._line_end(place.colon or 0)
        else:
            start = spans[0][0]
            ahead = self.newline.join(lines).removeprefix(space)
            self._splice(start, start, f"{ahead}{self.newline}{space}")
            return
        self._splice(end, end, "".join(f"{self.newline}{each}" for each in lines))

    def _after_key(self, node: Node, index: int) -> int:
        """Return where the colon of an entry ends: its value may be nothing at all."""
        return self._place_in(node, node.items[index]).colon or 0

    def _is_below(self, place: _Place, position: int) -> bool:
        """Return whether a value begins below the line of its key."""
        return place.colon is not None and self._line_end(place.colon) < position

    def _insert_between_brackets(
        self, node: Node, spans: Sequence[tuple[int, int]], before: int, texts: Sequence[str]
    ) -> None:
        index = min(before, len(spans) - 1)
        start = spans[index][0]
        indent = self.text[self._line_start(start) : start]  # of tabs, perhaps
        has_lines = not indent.strip()
        space = self.newline + indent if has_lines else " "
        if before < len(spans):
            self._splice(start, start, "".join(f"{each},{space}" for each in texts))
            return
        end, comma = spans[-1][1], self._next(",", spans[-1][1])
        after = end if comma is None else comma + 1
        below = has_lines and self._line_end(after) < node.end
        at = self._line_end(after) if below else after
        if comma is not None:
            self._splice(at, at, "".join(f"{space}{each}," for each in texts))
        elif below:
            self._splice(end, end, ",")
            self._splice(at, at, ",".join(f"{space}{each}" for each in texts))
        else:
            self._splice(end, end, "".join(f",{space}{each}" for each in texts))


_FLOW = ("", "[")  # stand for a text without quotes: in a block, and between brackets
_ODD_IN_FLOW = re.compile(r"\?|:(?!//)")  # some readers end a text there
_BREAK = re.compile(r"\r\n|\r|\n")
_BLANKS = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\r\n]|(?<=[ \t\r\n])#[^\r\n]*)*")
_HEADER = re.compile(r"([|>])([-+0-9]*)([^\r\n]*)(?:\r\n|\r|\n|\Z)")


def _nested(path: Path, value: YamlValue) -> YamlValue:
    for name in reversed(path):
        value = {name: value}
    return value


def _moved(node: Node, ends: Sequence[int]) -> Node:
    """Return a node of JSON by the characters of its text before pairs were written as one."""
    start, end = (each + 2 * bisect_right(ends, each) for each in (node.start, node.end))
    items = tuple(
        (None if key is None else _moved(key, ends), _moved(inner, ends))
        for key, inner in node.items
    )
    return node._replace(start=start, end=end, items=items)


def _is_block_text(value: str) -> bool:
    """Return whether a block of text can hold a value so that an editor shows all of it."""
    lines = value.split("\n")
    return value.strip() != "" and all(line.replace("\t", "").isprintable() for line in lines)


def _header(mark: str, given: str, value: str, indent: str) -> str:
    """Return the start of a block of text: what was given, where that still fits the value."""
    breaks = len(value) - len(value.rstrip("\n"))
    keep = "" if breaks == 1 else "+" if breaks else "-"
    digit = given.strip("+-")
    if not digit and value[0] in " \t\n":
        digit = str(len(indent))
    return mark + digit + ("+" if "+" in given and breaks else keep)


def _folded(text: str) -> str:
    """Return the lines of a folded block that stand for a text: breaks are doubled between lines.

    Lines that begin with a blank keep theirs as they are.
    """
    lines = text.split("\n")
    folded = [lines[0]]
    filled = lines[0]
    for line in lines[1:]:
        if line and filled and filled[0] not in " \t" and line[0] not in " \t":
            folded.append("")
        folded.append(line)
        filled = line or filled
    return "\n".join(folded)
