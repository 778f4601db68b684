"""Text of a YAML file: its encoding, the places of its values, and words for what is not YAML.

Only UTF-8 is read, and nothing that an editor would not show.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from reconciler.diagnostics import Diagnostic, SourceLocation, error

YamlValue: TypeAlias = Any
"""A text, a number, true, false, None, a list of values, or a mapping of texts to values."""

YamlMapping: TypeAlias = dict[str, YamlValue]


class Mark(NamedTuple):
    """Line and column, from 1, and the style in which the scalar there is written."""

    line: int
    column: int
    style: str = ""


NOWHERE = Mark(0, 0)


@dataclass(slots=True)
class Trace:
    """Findings of a second, slower pass over a file, and the place of every value.

    Attributes:
        file: Name of the file as it is shown.
        lines_before: Number of lines of the file before what was read.
        documents: The documents of the file, in order; None where there is nothing to judge.
        keys: Places of keys, by the identity of their mapping (kept alive by ``documents``).
        values: Places of values, by the identity of their mapping or list.
    """

    file: str
    lines_before: int = 0
    findings: list[Diagnostic] = field(default_factory=list)
    documents: list[YamlValue] = field(default_factory=list)
    keys: dict[tuple[int, str | int], Mark] = field(default_factory=dict)
    values: dict[tuple[int, str | int], Mark] = field(default_factory=dict)

    def refuse(self, code: str, summary: str, remedy: str, mark: Mark = NOWHERE) -> None:
        """Note a finding that stops the run."""
        place = SourceLocation(self.file, mark.line, mark.column)
        self.findings.append(error(code, summary, remedy, place))

    def value_mark(self, document: int, path: Sequence[str | int]) -> Mark:
        """Return the place of a value, or of the nearest one above it."""
        container, key = self._nearest(document, path)
        return self.values.get((id(container), key), NOWHERE)

    def written(self, document: int, path: Sequence[str | int]) -> YamlValue:
        """Return the value under a path as it is written, or the nearest one above it."""
        container, key = self._nearest(document, path)
        return container[key]

    def key_mark(self, document: int, path: Sequence[str | int]) -> Mark:
        """Return the place of the key of a value, or of the value itself if it has no key."""
        container, key = self._nearest(document, path)
        place = (id(container), key)
        return self.keys.get(place) or self.values.get(place, NOWHERE)

    def _nearest(self, document: int, path: Sequence[str | int]) -> tuple[YamlValue, str | int]:
        container: YamlValue = self.documents
        key: str | int = document
        for step in path:
            inner = container[key]
            if not _has(inner, step):
                break
            container, key = inner, step
        return container, key


def _has(container: YamlValue, step: str | int) -> bool:
    if isinstance(container, dict):
        return step in container
    return isinstance(container, list) and isinstance(step, int) and 0 <= step < len(container)


_WIDE = ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def holds_text(data: bytes, text: str) -> bool:
    """Return whether bytes hold an ASCII text as UTF-8, UTF-16 or UTF-32."""
    if text.encode() in data:
        return True
    return b"\0" in data and any(text.encode(encoding) in data for encoding in _WIDE)


_BOM = "\ufeff"
_WIDE_BOMS = {  # the mark of UTF-32 in one order begins as that of UTF-16 does
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}

# The parser takes them, three as line breaks, which they are not to editors, Git or YAML 1.2.
_HIDDEN = "[\x85\u2028\u2029\ufeff]"
_UNREADABLE = (
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

Fault = tuple[str, str, str, Mark]


def mapping_in(document: YamlValue, name: str) -> YamlMapping:
    """Return the mapping that a document has under a name; an empty one where it has none."""
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def is_same(one: YamlValue, other: YamlValue) -> bool:
    """Return whether two values are equal as YAML; in Python 1 equals true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


class TextError(Exception):
    """The bytes are no text we read; ``fault`` says code, summary, remedy and place."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault[1])
        self.fault = fault

    def finding(self, file: str) -> Diagnostic:
        """Return the finding about a file of this name."""
        code, summary, remedy, mark = self.fault
        return error(code, summary, remedy, SourceLocation(file, mark.line, mark.column))


def decode(data: bytes) -> str:
    """Return the text of a file, without a leading byte order mark.

    Raises:
        TextError: it is not UTF-8, or has a character that must be written as an escape.
    """
    for encoding, marks in _WIDE_BOMS.items():
        if data.startswith(marks):
            raise TextError(_wide(encoding))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = data[: fault.start].decode("utf-8")
        summary = f"byte 0x{data[fault.start]:02x} is not UTF-8"
        remedy = "Save the file as UTF-8."
        raise TextError(("YAML-ENCODING", summary, remedy, place_at_end(before))) from None
    if text.isascii():
        return text
    text = text.removeprefix(_BOM)
    if re.search(_HIDDEN, text):
        raise TextError(unreadable_character(text))
    return text


# Every escape of JSON is matched: only so is it known which backslash begins one.
_JSON_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def with_whole_escapes(text: str) -> str:
    """Return JSON with one escape of YAML for each pair: JSON escapes UTF-16, YAML characters."""
    return _JSON_ESCAPE.sub(_whole, text)


def escaped_pairs(text: str) -> tuple[str, list[int]]:
    """Return JSON with one escape for each pair, and the ends of these, by characters.

    Each is two characters shorter than the pair.
    """
    pairs = [found.end() for found in _JSON_ESCAPE.finditer(text) if found[1]]
    return with_whole_escapes(text), [end - 2 * count for count, end in enumerate(pairs, 1)]


def _whole(escape: re.Match[str]) -> str:
    high, low = escape.groups()
    if high is None:
        return escape[0]
    return f"\\U{0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00:08x}"


def _wide(encoding: str) -> Fault:
    """Return code, summary, remedy and place for a file in another encoding of Unicode."""
    remedy = (
        "Save the file as UTF-8. In PowerShell, write | Out-File -Encoding utf8 FILE instead of "
        f"> FILE; elsewhere, iconv -f {encoding.upper()} -t UTF-8 FILE > NEW converts it."
    )
    return ("YAML-ENCODING", f"the file is {encoding.upper()}", remedy, Mark(1, 1))


def unreadable_character(text: str) -> Fault:
    """Return code, summary, remedy and place for the first character that YAML does not take."""
    found = re.search(_UNREADABLE, text)
    if found is None:
        return ("YAML-SYNTAX", "the file cannot be read as YAML", "Check the file.", Mark(1, 1))
    code_point = ord(found.group())
    escape = f"\\x{code_point:02x}" if code_point < 0x100 else f"\\u{code_point:04x}"
    return (
        "YAML-CHARACTER",
        f"the invisible character U+{code_point:04X}",
        f'Remove it; where it is meant, write {escape} between double quotes ("...").',
        place_at_end(text[: found.start()]),
    )


def place_at_end(before: str) -> Mark:
    """Return the place right after a text."""
    before = before.removeprefix(_BOM)
    return Mark(before.count("\n") + 1, len(before) - before.rfind("\n"))


# The start of the parser's sentence, our summary, our remedy; the first that fits counts.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "mapping values are not allowed",
        "a colon followed by a space in a place where no key can stand",
        "Put the text in quotes if the colon belongs to it; otherwise check the indentation.",
    ),
    (
        "found unexpected end of stream",
        "a quote that is never closed",
        "Close the quote that is opened here.",
    ),
    (
        "found unexpected document indicator",
        "a quote that is never closed before the next document",
        "Close the quote before the line with --- or ....",
    ),
    (
        "did not find expected ',' or ']'",
        "a list in brackets that is not closed",
        "Separate items by commas and close the list with ].",
    ),
    (
        "did not find expected ',' or '}'",
        "a mapping in braces that is not closed",
        "Separate fields by commas and close the mapping with }.",
    ),
    (
        "did not find expected key",
        "a line that does not belong to the mapping around it",
        "Indent it like the other keys; put a text wholly in quotes if it starts with one.",
    ),
    (
        "did not find expected '-' indicator",
        "a line that does not belong to the list around it",
        "Start each item with - in the same column.",
    ),
    (
        "block sequence entries are not allowed",
        "a list item in a place where no list can start",
        "Put the first - on a line of its own beneath the key.",
    ),
    (
        "could not find expected ':'",
        "a key without a colon",
        "Write the key, a colon and a space, then the value.",
    ),
    (
        "found unknown escape character",
        "an unknown escape in a text in double quotes",
        "Write \\\\ for a backslash, or put the text in single quotes.",
    ),
    (
        "found invalid Unicode character escape",
        "an escape that stands for no character",
        "Write the character itself, or the escape of one that exists.",
    ),
    (
        "did not find expected hexdecimal number",
        "an escape with too few digits",
        "Write two digits after \\x, four after \\u, eight after \\U.",
    ),
    (
        "found undefined tag handle",
        "a tag",
        "Manifests have no tags: remove it, and put texts that start with ! in quotes.",
    ),
    ("found a tab character", "a tab in the indentation", "Indent with spaces."),
    (
        "did not find expected <document start>",
        "text after the end of the document",
        "Start another document with a line of ---, or indent the text.",
    ),
    ("found unknown directive name", "an unknown directive", "Remove the line that starts with %."),
    (
        "found duplicate %",
        "a directive that is written twice",
        "Remove the lines that start with %.",
    ),
    (
        "found incompatible YAML document",
        "a YAML version other than 1.2",
        "Remove the line that starts with %YAML.",
    ),
    (
        "did not find expected alphabetic or numeric character",
        "a value that starts with & or *",
        "Put a text that starts with & or * in quotes.",
    ),
    (
        "did not find expected node content",
        "a bracket, brace or comma where a value is expected",
        "Put it in quotes if it is text; otherwise remove it.",
    ),
    (
        "did not find expected comment or line break",
        "text behind the | or > that starts a block",
        "Start the text in the next line, indented.",
    ),
)
_ANY = (
    "this is not YAML",
    "Check indentation, quotes and brackets here and in the line above.",
)
_RESERVED = {
    "@": "Put a text that starts with @ in quotes.",
    "`": "Put a text that starts with ` in quotes.",
    "%": "Put a text that starts with % in quotes.",
}


def syntax_fault(text: str, problem: str, mark: Mark) -> tuple[str, str, str, Mark]:
    """Return code, summary, remedy and place for a sentence of the parser."""
    if problem.startswith("found character that cannot start any token"):
        return ("YAML-SYNTAX", *_character_words(text, mark), mark)
    words = next((words for start, *words in _WORDS if problem.startswith(start)), _ANY)
    return ("YAML-SYNTAX", words[0], words[1], mark)


def _character_words(text: str, mark: Mark) -> tuple[str, str]:
    lines = text.split("\n", mark.line)
    line = lines[mark.line - 1] if len(lines) >= mark.line else ""
    character = line[mark.column - 1 : mark.column]
    if character in _RESERVED:
        return f"a value that starts with {character}", _RESERVED[character]
    if "\t" in line[: mark.column]:
        return "a tab in the indentation", "Indent with spaces."
    return _ANY
