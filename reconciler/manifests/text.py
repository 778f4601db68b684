"""Bytes of a file become text: UTF-8 alone, and nothing an editor would not show."""

from __future__ import annotations

import codecs
import re

from reconciler.manifests.trace import Mark

_BOM = "\ufeff"
_OTHER_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)

# The parser takes them, three as line breaks, which they are not to editors, Git or YAML 1.2.
_HIDDEN = "[\x85\u2028\u2029\ufeff]"
_UNREADABLE = (
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)

Fault = tuple[str, str, str, Mark]


class TextError(Exception):
    """The bytes are no text we read; ``fault`` says code, summary, remedy and place."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault[1])
        self.fault = fault


def decode(data: bytes) -> str:
    """Return the text of a file, without a leading byte order mark.

    Raises:
        TextError: it is not UTF-8, or has a character that must be written as an escape.
    """
    if data.startswith(_OTHER_BOMS):
        remedy = "Save the file as UTF-8."
        raise TextError(("YAML-ENCODING", "the file is UTF-16 or UTF-32", remedy, Mark(1, 1)))
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
