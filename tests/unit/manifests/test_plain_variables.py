"""The quick way to replace variables gives what the close look gives, or leaves it to that."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.manifest import Growth, Manifest, Root, SourceFile
from reconciler.manifests.placeholders import Layers, VariableValue
from reconciler.manifests.plain_variables import PlainVariables, UnusualError
from reconciler.manifests.variables import Variables

VALUES: dict[str, Any] = {
    "host": "shop.example.com",
    "empty": "",
    "number": 5,
    "flag": True,
    "items": ["a", 1],
    "hosts": ["${host}"],
    "dollar": "$",
    "brace": "{host}",
    "mark": "##X##",
}
PIECES = (
    "a", "b: ", "$", "{", "}", " ", "$$", "$${", "${", "${host}", "${empty}", "${number}",
    "${flag}", "${items}", "${hosts}", "${dollar}", "${brace}", "${mark}", "${none}", "${ host }",
    "${{ x }}",
)  # fmt: skip
WHERE = SourceLocation("reconciler.yaml", 1, 1)
LAYERS = Layers(variables={name: VariableValue(value, WHERE) for name, value in VALUES.items()})


def a_manifest(seed: int) -> Manifest:
    """Return a document of random texts, keys included, as JSON, which is YAML."""
    dice = random.Random(seed)

    def text() -> str:
        return "".join(dice.choices(PIECES, k=dice.randint(0, 4)))

    def quoted(value: str) -> str:
        return "'" + value + "'"

    key = quoted(text()) if dice.random() < 0.1 else "field"
    lines = [
        f"apiVersion: {quoted(text()) if dice.random() < 0.1 else 'reconciler/v1'}",
        f"metadata: {{name: {quoted(text())}}}",
        f"spec: {{{key}: [{quoted(text())}, [{quoted(text())}], {{inner: {quoted(text())}}}]}}",
    ]
    if dice.random() < 0.2:
        lines.append(f"script: {quoted(text())}")
    file = SourceFile("a.yaml", "\n".join(lines), Root(""), (), LAYERS.variables)
    documents = file.read()
    assert documents is not None
    return Manifest(documents[0], file)


def outcome(seed: int) -> tuple[Any, ...]:
    growth = Growth()
    variables = Variables(LAYERS, growth)
    manifest = a_manifest(seed)
    variables.replace(manifest)
    room = growth.is_room_for
    left = next(size for size in range(32 << 20, 0, -1) if room(size))
    return manifest.document, variables.findings, variables.used, left


def test_both_ways_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, findings, variables that count as used, and the room that is left."""
    quick = [outcome(seed) for seed in range(300)]
    monkeypatch.setattr(PlainVariables, "of", lambda *_: None)

    assert quick == [outcome(seed) for seed in range(300)]


def replaced(document: dict[str, Any], text: str) -> dict[str, Any]:
    plain = PlainVariables(LAYERS.variables, set()).of(text, text.count("${"))
    assert plain is not None
    plain.replace(document)
    return document


def test_values_of_every_type_stand_in_their_places() -> None:
    spec = {"a": "https://${host}/", "b": ["${number}", "${flag}"], "c": {"d": "${items}"}}

    assert replaced({"kind": "X", "spec": spec}, str(spec))["spec"] == {
        "a": "https://shop.example.com/",
        "b": [5, True],
        "c": {"d": ["a", 1]},
    }


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$${host}", id="an escape"),
        pytest.param("${none}", id="not declared"),
        pytest.param("${host", id="not closed"),
        pytest.param("${ host }", id="no name"),
        pytest.param("${dollar}{host}", id="a value that could begin another"),
        pytest.param("$${brace}", id="a value that could go on"),
        pytest.param("${hosts}", id="a list with a variable, which stays as it is"),
    ],
)
def test_a_file_with_anything_unusual_is_left_to_the_close_look(text: str) -> None:
    text += " ${host}"

    assert PlainVariables(LAYERS.variables, set()).of(text, text.count("${")) is None


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"kind": "${host}"}, id="the kind"),
        pytest.param({"spec": {"${host}": "a"}}, id="a key"),
        pytest.param({"spec": {"script": "${host}"}}, id="a script"),
        pytest.param({"spec": {"scriptFile": "${host}"}}, id="a file"),
        pytest.param({"spec": {"a": "x${items}"}}, id="a list in a text"),
        pytest.param({"spec": {"a": "${host}" * 5_000}}, id="a text that grows too long"),
    ],
)
def test_a_document_with_anything_unusual_is_left_to_the_close_look(
    document: dict[str, Any],
) -> None:
    with pytest.raises(UnusualError):
        replaced(document, str(document))


def test_a_variable_in_a_comment_is_not_used(tmp_path: Path) -> None:
    file = SourceFile("a.yaml", "# ${host}\nspec: {a: '${flag}'}", Root(""), ())
    variables = Variables(LAYERS, Growth())
    [document] = file.read() or []

    variables.replace(Manifest(document, file))

    assert variables.used == {"flag"}
