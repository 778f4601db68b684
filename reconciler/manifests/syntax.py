"""Words for what the YAML parser could not read: what is wrong, and what to write instead."""

from __future__ import annotations

from reconciler.manifests.trace import Mark

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
    (
        "found a tab character",
        "a tab in the indentation",
        "Indent with spaces.",
    ),
    (
        "did not find expected <document start>",
        "text after the end of the document",
        "Start another document with a line of ---, or indent the text.",
    ),
    (
        "found unknown directive name",
        "an unknown directive",
        "Remove the line that starts with %.",
    ),
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
