"""Text of a YAML file: its encoding, and words for what is not YAML.

Only UTF-8 is read, and nothing that an editor would not show.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any, TypeAlias

from reconciler.diagnostics import Diagnostic, FindingError, SourceLocation, error

YamlValue: TypeAlias = Any
"""A text, a number, true, false, None, a list of values, or a mapping of texts to values."""

YamlMapping: TypeAlias = dict[str, YamlValue]


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


def mapping_in(document: YamlValue, name: str) -> YamlMapping:
    """Return the mapping that a document has under a name; an empty one where it has none."""
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def is_same(one: YamlValue, other: YamlValue) -> bool:
    """Return whether two values are equal as YAML; in Python 1 equals true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def decode(data: bytes, file: str = "") -> str:
    """Return the text of a file, without a leading byte order mark. Findings name the file.

    Raises:
        FindingError: it is not UTF-8, or has a character that must be written as an escape.
    """
    for encoding, marks in _WIDE_BOMS.items():
        if data.startswith(marks):
            raise FindingError(_wide(encoding, file))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        before = data[: fault.start].decode("utf-8")
        summary = f"byte 0x{data[fault.start]:02x} is not UTF-8"
        remedy = "Save the file as UTF-8."
        place = place_at_end(before, file)
        raise FindingError(error("YAML-ENCODING", summary, remedy, place)) from None
    if text.isascii():
        return text
    text = text.removeprefix(_BOM)
    if re.search(_HIDDEN, text):
        raise FindingError(unreadable_character(text, file))
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


def _wide(encoding: str, file: str) -> Diagnostic:
    """Return the finding about a file in another encoding of Unicode."""
    remedy = (
        "Save the file as UTF-8. In PowerShell, write | Out-File -Encoding utf8 FILE instead of "
        f"> FILE; elsewhere, iconv -f {encoding.upper()} -t UTF-8 FILE > NEW converts it."
    )
    summary = f"the file is {encoding.upper()}"
    return error("YAML-ENCODING", summary, remedy, SourceLocation(file, 1, 1))


def unreadable_character(text: str, file: str) -> Diagnostic:
    """Return the finding about the first character that YAML does not take."""
    found = re.search(_UNREADABLE, text)
    if found is None:
        summary, place = "the file cannot be read as YAML", SourceLocation(file, 1, 1)
        return error("YAML-SYNTAX", summary, "Check the file.", place)
    code_point = ord(found.group())
    escape = f"\\x{code_point:02x}" if code_point < 0x100 else f"\\u{code_point:04x}"
    return error(
        "YAML-CHARACTER",
        f"the invisible character U+{code_point:04X}",
        f'Remove it; where it is meant, write {escape} between double quotes ("...").',
        place_at_end(text[: found.start()], file),
    )


def readable_part(text: str) -> str:
    """Return a text up to the first character that YAML does not take."""
    found = re.search(_UNREADABLE, text)
    return text[: found.start()] if found else text


def place_at_end(before: str, file: str) -> SourceLocation:
    """Return the place right after a text."""
    before = before.removeprefix(_BOM)
    return SourceLocation(file, before.count("\n") + 1, len(before) - before.rfind("\n"))


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


def syntax_fault(text: str, problem: str, place: SourceLocation) -> Diagnostic:
    """Return the finding for a sentence of the parser."""
    if problem.startswith("found character that cannot start any token"):
        words = _character_words(text, place)
    else:
        fitting = ((told, remedy) for start, told, remedy in _WORDS if problem.startswith(start))
        words = next(fitting, _ANY)
    return error("YAML-SYNTAX", *words, place)


def _character_words(text: str, place: SourceLocation) -> tuple[str, str]:
    lines = text.split("\n", place.line)
    line = lines[place.line - 1] if len(lines) >= place.line else ""
    character = line[place.column - 1 : place.column]
    if character in _RESERVED:
        return f"a value that starts with {character}", _RESERVED[character]
    if "\t" in line[: place.column]:
        return "a tab in the indentation", "Indent with spaces."
    return _ANY
