"""Where a reader finds what a finding is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.manifest import Growth, Manifest, Root, SourceFile
from tests.rows import each_row

TEXT = """\
# A comment
apiVersion: reconciler/v1
kind: Action
metadata: {organization: acme, name: greet}
spec:
  timeout: 5s
  script: |
    function greet() {

      return (
    }
---
kind: Project
"""


def manifests_of(text: str) -> list[Manifest]:
    file = SourceFile("a.yaml", text, Root("tree"), ())
    return [Manifest(document, file, index) for index, document in enumerate(file.read()[0])]


@each_row(
    ("path", "value", "key"),
    [
        pytest.param((), (2, 1), (2, 1), id="the document"),
        pytest.param(("kind",), (3, 7), (3, 1), id="a field"),
        pytest.param(("metadata", "name"), (4, 38), (4, 32), id="a field in braces"),
        pytest.param(("spec",), (6, 3), (5, 1), id="a mapping"),
        pytest.param(("spec", "script"), (7, 11), (7, 3), id="a block"),
        pytest.param(("spec", "missing"), (6, 3), (5, 1), id="a field that is not there"),
        pytest.param(("missing", "deep"), (2, 1), (2, 1), id="a way that leads nowhere"),
    ],
)
def test_values_and_keys_have_places(
    path: tuple[str, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    manifest = manifests_of(TEXT)[0]

    assert manifest.place(*path) == SourceLocation("a.yaml", *value)
    assert manifest.place_of_key(*path) == SourceLocation("a.yaml", *key)


def test_each_document_has_its_own_places() -> None:
    assert manifests_of(TEXT)[1].place("kind") == SourceLocation("a.yaml", 13, 7)


def test_a_place_in_a_block_is_a_place_in_the_manifest() -> None:
    manifest = manifests_of(TEXT)[0]

    assert manifest.place_within(3, 10, "spec", "script") == SourceLocation("a.yaml", 10, 14)
    assert manifest.place_within(2, 1, "spec", "script") == SourceLocation("a.yaml", 9, 1)
    assert manifest.place_within(99, 1, "spec", "script") == SourceLocation("a.yaml", 7, 11)


@pytest.mark.parametrize(
    "written",
    [
        pytest.param('"a\\nb"', id="escaped line breaks"),
        pytest.param(">\n  a\n  b", id="folded line breaks"),
        pytest.param("abc", id="a plain text"),
    ],
)
def test_other_styles_give_the_place_of_the_whole(written: str) -> None:
    [manifest] = manifests_of(f"script: {written}\n")

    assert manifest.place_within(1, 2, "script") == SourceLocation("a.yaml", 1, 9)


@each_row(
    "text",
    [
        pytest.param(TEXT, id="a comment before the first, none before the second"),
        pytest.param(
            "%YAML 1.2\n---\na: 1\n...\n# x\n%YAML 1.2\n--- # y\nb: [2]\n", id="directives"
        ),
        pytest.param("  a: 1\n--- {b: 2}\n---\n- c: é\n", id="on the line of the dashes, indented"),
        pytest.param(
            "a: 😀\n---\nb:\n  c: 日本 # ü\n---\n  d: x\n", id="characters of several bytes"
        ),
        pytest.param("a: 1\r\n---\r\nb: 2\r\n---\r\nc: 3", id="line ends of Windows"),
        pytest.param("a: 1\r---\rb: 2\r", id="line ends of old"),
        pytest.param(
            'a: "x\n\n  y"\n---\nb: >\n  folded\n  text\n---\n---\nc: 1\n', id="texts over lines"
        ),
    ],
)
def test_a_document_read_alone_has_the_places_of_the_whole_file(text: str) -> None:
    manifests = manifests_of(text)
    nodes = list(yaml.compose_all(text, Loader=yaml.CSafeLoader))
    assert len(manifests) == len(nodes) > 1

    for manifest, node in zip(manifests, nodes, strict=True):
        for path in [(), *paths_in(manifest.document)]:
            key, value = entry_of(node, path)
            assert manifest.place(*path)[1:3] == place_of(value)
            assert manifest.place_of_key(*path)[1:3] == place_of(key)


@pytest.mark.parametrize("before", range(16_350, 16_390))
def test_what_stops_the_parser_behind_a_document_does_not_hide_its_places(before: int) -> None:
    """It takes characters in blocks, and stops at a bad one wherever that is in its block."""
    text = f"a: {'x' * before}\n---\nb: 1\n...\n---\nc: \x01\n"

    for manifest in manifests_of(text)[1:]:
        assert manifest.document is None or manifest.place("b") == SourceLocation("a.yaml", 3, 4)


def entry_of(node: Any, path: tuple[str | int, ...]) -> tuple[Any, Any]:
    """Return the library's nodes of the key and the value under a path."""
    key = node
    for step in path:
        if isinstance(step, int):
            key = node = node.value[step]
        else:
            key, node = next(each for each in node.value if each[0].value == step)
    return key, node


def place_of(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def test_a_document_after_a_wrong_one_has_places_of_its_own() -> None:
    """The wrong one has the same fields, and leaves its memory to those that follow."""
    wrong = "apiVersion: &x reconciler/v1\nkind: Action\nmetadata:\n  name: greet\n"
    right = "apiVersion: reconciler/v1\n# A comment\nkind: Action\nmetadata:\n\n  name: greet\n"

    manifest = manifests_of(f"{wrong}---\n{right}")[1]

    assert manifest.place("kind") == SourceLocation("a.yaml", 8, 7)
    assert manifest.place("metadata", "name") == SourceLocation("a.yaml", 11, 9)
    assert manifest.place_of_key("metadata") == SourceLocation("a.yaml", 9, 1)


def paths_in(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a document."""
    if not isinstance(value, dict | list):
        return
    steps: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for step, inner in steps:
        yield (step,)
        yield from ((step, *rest) for rest in paths_in(inner))


MANIFEST = Manifest({"spec": {"a": "b"}}, SourceFile("a.yaml", "spec: {a: b}\n", Root(""), ()))


def test_the_first_value_without_room_is_told_at_its_place() -> None:
    """One finding is enough: every later value has no room either."""
    growth = Growth(10)

    assert [growth.has_room(size, MANIFEST, ("spec", "a")) for size in (4, 6, 1, 1)] == [
        True,
        True,
        False,
        False,
    ]

    [found] = growth.findings
    assert (found.code, str(found.location)) == ("VARIABLE-SIZE", "a.yaml:1:11")
    assert found.is_error
