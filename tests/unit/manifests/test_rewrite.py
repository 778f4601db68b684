"""A value is replaced where it stands, and no other byte of its file differs."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kinds.fields import KINDS
from reconciler.manifests.accept import as_written
from reconciler.manifests.rewrite import GONE, Edit, RewriteError, rewritten
from reconciler.manifests.text import decode
from reconciler.manifests.yaml_source import read_documents
from reconciler.resources.normal import SHORT, TYPES
from reconciler.resources.ref import Kind
from tests.effort import cases
from tests.layouts import LAYOUTS, OBJECTS, OF_ZITADEL, Layout, values_of
from tests.rows import each_row


def words_of(kind: str) -> dict[str, str]:
    """Return the short spellings of the long words of a kind."""
    spelled = SHORT[Kind(kind)].values()
    return {long: short for words in spelled for short, long in words.items()}


@pytest.mark.slow
@each_row("layout", LAYOUTS)
def test_in_each_layout_each_field_of_each_kind_changes_alone(layout: Layout) -> None:
    """What another program draws with the new value is what rewriting gives, to the byte."""
    for kind, metadata, fields in OBJECTS:
        words, old = words_of(kind), values_of(layout, fields, is_new=False)
        before = decode(layout.draw(kind, metadata, old, words).encode())
        document = read_documents(before).documents[0]
        for name, value in values_of(layout, fields, is_new=True).items():
            wanted = layout.draw(kind, metadata, {**old, name: value}, words).removeprefix("\ufeff")
            written = document["spec"][name]
            new = as_written(Kind(kind), name, written, written, value)
            edit = Edit(0, ("spec", name), new, [*TYPES[Kind(kind)]])

            assert rewritten(before, [edit], is_json=layout.ending == ".json") == wanted
            assert (before == wanted) == (name == "version")


def test_the_layouts_have_each_field_of_each_kind() -> None:
    drawn = {(kind, name) for kind, _, fields in OBJECTS for name in (*fields, *OF_ZITADEL)}

    assert {
        (kind.value, each.name) for kind, row in KINDS.items() for each in row.fields
    } - drawn == set(), "give tests/layouts.py an object with two values of the field"


LINES = """\
spec:
  uris: # why
    # about a
    - https://a # a
    - https://b # b

    - https://c
  flag: true
"""


@each_row(
    ("text", "path", "value", "wanted"),
    [
        pytest.param(
            LINES,
            ("spec", "uris"),
            ["https://b", "https://c"],
            LINES.replace("    - https://a # a\n", "    # a\n"),
            id="a comment stays where its item goes",
        ),
        pytest.param(
            LINES,
            ("spec", "uris"),
            ["https://x", "https://a", "https://b", "https://y", "https://c", "https://z"],
            LINES.replace("# why\n", "# why\n    - https://x\n")
            .replace("# b\n", "# b\n    - https://y\n")
            .replace("c\n", "c\n    - https://z\n"),
            id="new items stand in their order",
        ),
        pytest.param(
            LINES,
            ("spec", "uris"),
            [],
            "spec:\n  uris: [] # why\n    # about a\n    # a\n    # b\n\n  flag: true\n",
            id="a list that is empty",
        ),
        pytest.param("spec: {}\n", ("spec", "flag"), True, "spec: {flag: true}\n", id="empty"),
        pytest.param("a: 'b #c'", ("a",), "d", "a: 'd'", id="no comment"),
        pytest.param("a: [ # c\n]\n", ("a",), ["b"], "a: [b # c\n]\n", id="a comment in no list"),
        pytest.param(
            "a: { # c\n}\n", ("a", "b"), 1, "a: {b: 1 # c\n}\n", id="a comment in no mapping"
        ),
        pytest.param("spec:\n", ("spec", "flag"), True, "spec: {flag: true}\n", id="nothing"),
        pytest.param(
            "kind: b\n", ("spec", "flag"), True, "kind: b\nspec:\n  flag: true\n", id="missing"
        ),
        pytest.param(
            "kind: b", ("spec", "flag"), True, "kind: b\nspec:\n  flag: true", id="no end"
        ),
        pytest.param('{"a": 1}', ("b",), "c", '{"a": 1, "b": "c"}', id="between brackets"),
        pytest.param(
            '{\n\t"a": [\n\t\t1\n\t]\n}',
            ("b",),
            ["c"],
            '{\n\t"a": [\n\t\t1\n\t],\n\t"b": ["c"]\n}',
            id="between brackets on lines",
        ),
        pytest.param("a: [x, y, z]", ("a",), ["z"], "a: [z]", id="first items"),
        pytest.param("a: [x, y, z]", ("a",), ["x"], "a: [x]", id="last items"),
        pytest.param("a: [x, y,]", ("a",), [], "a: []", id="a comma after the last item"),
        pytest.param("a: [x, y,]", ("a",), ["x", "y", "v"], "a: [x, y, v,]", id="a comma stays"),
        pytest.param(
            "a: [ # 1\n  x, # 2, ]\n  y # 3\n  , z\n]",
            ("a",),
            ["z"],
            "a: [ # 1\n  # 2, ]\n  # 3\n   z\n]",
            id="comments between brackets stay",
        ),
        pytest.param("a: b # c", ("a",), "yes", 'a: "yes" # c', id="a word that YAML 1.1 reads"),
        pytest.param("a: b", ("a",), "12:30:00", 'a: "12:30:00"', id="a number of YAML 1.1"),
        pytest.param("a: b", ("a",), "", 'a: ""', id="an empty text"),
        pytest.param("a: 'b'", ("a",), "it's", "a: 'it''s'", id="a quote in its own"),
        pytest.param("a: 'b'", ("a",), "\u202e", 'a: "\\u202e"', id="what turns text is escaped"),
        pytest.param("a: b # c\n", ("a",), "1\n2\n", "a: | # c\n  1\n  2\n", id="more lines"),
        pytest.param("a: b # c", ("a",), "1\n2", "a: |- # c\n  1\n  2", id="more lines at the end"),
        pytest.param("a: |\n x", ("a",), "y\n", "a: |\n y\n", id="a block at the end"),
        pytest.param("a: >-\n  x\n  y\nb: 1", ("a",), "z", "a: >-\n  z\nb: 1", id="folded"),
        pytest.param(
            "a: >\n  x\n",
            ("a",),
            "1\n 2\n\n3\n",
            "a: >\n  1\n   2\n\n  3\n",
            id="lines with blanks",
        ),
        pytest.param("a: | # c\n  x\nb: 1", ("a",), "\r\n", 'a: "\\r\\n" # c\nb: 1', id="no block"),
        pytest.param("a: |+\n  x\n\nb: 1", ("a",), "y", "a: |-\n  y\nb: 1", id="kept lines go"),
        pytest.param("a: {x: 1}", ("a",), {"z": {}}, "a: {z: {}}", id="a name in place of one"),
        pytest.param(
            "a:\n  x: # c\n    y: z", ("a", "x"), {}, "a:\n  x: {} # c", id="an empty one"
        ),
        pytest.param("a: 1\nb:\n  c: 2\nd: 3", ("b",), GONE, "a: 1\nd: 3", id="a field goes"),
        pytest.param("? a\n: b\n", ("a",), "c", "? a\n: c\n", id="a key of its own line"),
    ],
)
def test_only_the_value_changes(text: str, path: Any, value: Any, wanted: str) -> None:
    """Also where an item, an entry or a line of its own must come or go."""
    edit = Edit(0, path, value, ["uris", "flag"])

    assert rewritten(text, [edit]) == wanted
    if "\n" in text:
        assert rewritten(text.replace("\n", "\r\n"), [edit]) == wanted.replace("\n", "\r\n")


def test_a_new_field_stands_where_the_order_has_it() -> None:
    """After the nearest one before it, whatever the order in the file."""
    text, order = "spec:\n  # last\n  d: 4\n  b: 2 # b\n", ["a", "b", "c", "d"]

    assert rewritten(text, [Edit(0, ("spec", "c"), "x", order)]) == f"{text}  c: x\n"
    first = rewritten(text, [Edit(0, ("spec", "a"), "x", order)])
    assert first == text.replace("spec:\n", "spec:\n  a: x\n")


def test_documents_are_changed_and_removed_apart() -> None:
    """What stands before the first one stays."""
    text = "# head\na: 1 # a\n---\na: 2\n...\n# c\n---\na: 3\n"

    assert rewritten(text, [Edit(2, ("a",), "x")], [1]) == "# head\na: 1 # a\n---\na: x\n"
    assert rewritten(text, [], [0]) == "# head\n---\na: 2\n...\n# c\n---\na: 3\n"


def test_a_pair_of_escapes_of_json_moves_nothing() -> None:
    """Reading takes it for one character, and its place is counted as it is written."""
    text = '{"a": "\\ud83d\\ude00", "b": "\\ud83d\\ude00 x", "c": ["\\\\ud83d"]}'
    wanted = '{"a": "\\ud83d\\ude00", "b": "y", "c": ["\\\\ud83d", "\\u202e\\ud83d\\ude00"]}'
    edits = [Edit(0, ("b",), "y"), Edit(0, ("c",), ["\\ud83d", "\u202e\U0001f600"])]

    assert rewritten(text, edits, is_json=True) == wanted


def test_what_cannot_be_written_in_its_place_is_refused() -> None:
    """Two fields of a mapping in one line of a block have no room for a third."""
    edit = Edit(0, ("a", "c"), "x", ["b", "c"])

    with pytest.raises(RewriteError) as refused:
        rewritten("a:\n  ? b\n  : c\n", [edit])

    assert refused.value.edit is edit


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\ufeff\x85\u2028\u2029")
    | st.sampled_from("\n ")
)
VALUES = TEXTS | st.booleans() | st.lists(TEXTS, max_size=5)
DRAWN = [
    "a: 1\nb: {}\nc: 2 # c\n",
    "- a: 1\n  b: {}\n",
    '{{"b": {}}}',
    "a: [1]\nb: # b\n  {}\nd: x",
]
STYLES = [
    "x",
    "'x'",
    '"x"',
    "|\n    x\n    y",
    ">-\n    x",
    "[x, 'y', \"z\"]",
    "\n  - x # c\n  - y",
]


@settings(max_examples=cases(300), deadline=None)
@given(VALUES, st.sampled_from(DRAWN), st.sampled_from(STYLES), st.sampled_from(["\n", "\r\n"]))
def test_whatever_is_written_reads_back(value: Any, text: str, style: str, newline: str) -> None:
    """And all that is not the value is as it was, comments as well."""
    text = text.format(style).replace("\n", newline)
    before = read_documents(text).documents
    if not before or not isinstance(before[0], dict):
        return  # a block between brackets
    after = rewritten(text, [Edit(0, ("b",), value)])

    assert read_documents(after).documents == [{**before[0], "b": value}]
    assert yaml.safe_load(after)["b"] == value  # a reader of YAML 1.1
    is_alike = isinstance(value, list) == isinstance(before[0]["b"], list)
    assert "# b" not in text or "# b" in after
    assert not is_alike or "# c" not in text or "# c" in after
