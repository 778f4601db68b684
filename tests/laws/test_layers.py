"""The law of layers: variables, Defaults and an overlay plan what the tree written out plans."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import SourceLocation
from reconciler.manifests.loader import load
from reconciler.manifests.placeholders import Layers, VariableValue, escaped
from reconciler.plan.digest import plan_digest
from reconciler.state import DesiredState
from reconciler.validation.desired import judge
from tests.drawings import plan_as_json
from tests.effort import cases
from tests.generators import as_yaml, manifest_sets
from tests.laws.test_convergence import MANY, Bench, a_bench

Document = dict[str, Any]
Groups = dict[str, list[Document]]
_OTHER: dict[str, Any] = {"devMode": True, "clockSkew": "4s", "timeout": "7s", "headerName": "x-b"}


class Layering:
    """Takes a tree apart into base, Defaults, overlay and variables that give it again."""

    def __init__(self, documents: Sequence[Document], dice: random.Random) -> None:
        self.values: dict[str, Any] = {}
        self._dice = dice
        self._nulled: set[str] = set()
        self._base: Groups = {"": [], "a/": [], "a/b/": []}
        self._added: Groups = {"": []}
        for document in documents:
            added = dice.random() < 0.1
            group = self._added[""] if added else self._base[dice.choice([*self._base])]
            group.append(document)

    def write(self, folder: Path) -> Layers:
        """Write the parts beneath a folder, and return what is laid over the manifests."""
        patches = [each for group in self._base.values() for each in self._patched(group)]
        self._write(folder / "base", self._base, [])
        self._write(folder / "over", self._added, patches)
        values = {
            name: VariableValue(each, SourceLocation("r")) for name, each in self.values.items()
        }
        over, base = str(folder / "over"), str(folder / "base")
        return Layers("staging", values, overlay=over, root=base)

    def _write(self, folder: Path, groups: Groups, more: list[Document]) -> None:
        defaults = {name: self._defaults(name, groups) for name in groups}
        for name, group in groups.items():
            for document in group:
                self._leave_out(document, name, defaults)
        for name, group in groups.items():
            documents = [*group, defaults[name], *([] if name else more)]
            self._dice.shuffle(documents)
            (folder / name).mkdir(parents=True, exist_ok=True)
            text = as_yaml([self._with_variables(each) for each in documents])
            (folder / name / "x.yaml").write_text(text, encoding="utf-8")

    def _patched(self, group: list[Document]) -> list[Document]:
        """Change some documents of the base, and return the patches that take that back."""
        patches = [
            {**copy.deepcopy(document), "spec": patch}
            for document in group
            if self._dice.random() < 0.4 and (patch := self._changed(document))
        ]
        if self._dice.random() < 0.3:
            self._gone += 1
            gone = {"organization": "acme", "name": f"gone {self._gone}"}
            group.append(_document("Action", gone, {"script": "let q;"}))
            patches.append(_document("Action", {**gone, "absent": True}, None))
        return patches

    def _changed(self, document: Document) -> Document:
        """Change the spec of a document, and return the fields that take that back."""
        spec, patch = document.get("spec", {}), {}
        for name, other in _OTHER.items():
            if name in spec and spec[name] != other:
                patch[name], spec[name] = spec[name], other
        for name in ("redirectUris", "allowedToFail"):
            if name in spec and self._dice.random() < 0.5:
                patch[name] = spec.pop(name)
        if document["kind"] == "Action" and "allowedToFail" not in {*spec, *patch}:
            patch["allowedToFail"], spec["allowedToFail"] = None, True
            self._nulled.add("allowedToFail")
        return patch

    _gone = 0

    def _defaults(self, folder: str, groups: Groups) -> Document:
        """Return Defaults of what all documents of a kind in a folder and below it write."""
        within = [each for name in groups if name.startswith(folder) for each in groups[name]]
        owned = [each["metadata"] for each in within if "organization" in each["metadata"]]
        metadata = {"organization": self._dice.choice(owned)["organization"]} if owned else {}
        specs: Document = {}
        for kind in sorted({each["kind"] for each in within}):
            found = [each.get("spec") or {} for each in within if each["kind"] == kind]
            shared = set(found[0]).intersection(*found) - self._nulled
            if shared:
                specs[kind] = {name: self._dice.choice(found)[name] for name in sorted(shared)}
        return copy.deepcopy(_document("Defaults", metadata, specs))

    def _leave_out(self, document: Document, folder: str, defaults: dict[str, Document]) -> None:
        """Take what Defaults give out of a document, at random."""
        above = sorted((name for name in defaults if folder.startswith(name)), key=len)
        metadata: Document = {}
        given: Document = {}
        for name in above:
            metadata |= defaults[name]["metadata"]
            given |= defaults[name]["spec"].get(document["kind"], {})
        for values, nearest in ((document["metadata"], metadata), (document.get("spec"), given)):
            for name, value in nearest.items():
                if values and _same(values.get(name), value) and self._dice.random() < 0.7:
                    del values[name]

    def _with_variables(self, document: Document) -> Document:
        parts = {name: document[name] for name in ("metadata", "spec") if document.get(name)}
        return {**document, **{name: self._value(value) for name, value in parts.items()}}

    def _value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._value(inner, name) for name, inner in value.items()}
        if value is None or key in {"script", "absent"}:
            return value
        if self._dice.random() < 0.2:
            return "${" + self._variable(value) + "}"
        if isinstance(value, list):
            return [self._value(each) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        start, end = sorted((self._dice.randint(0, len(text)), self._dice.randint(0, len(text))))
        if self._dice.random() < 0.5 or text[:start].endswith("$"):
            return escaped(text)
        name = self._variable(text[start:end])
        return f"{escaped(text[:start])}${{{name}}}{escaped(text[end:])}"

    def _variable(self, value: Any) -> str:
        name = f"v{len(self.values)}"
        self.values[name] = value
        return name


def _document(kind: str, metadata: Document, spec: Document | None) -> Document:
    document = {"apiVersion": "reconciler/v1", "kind": kind, "metadata": metadata}
    return document if spec is None else {**document, "spec": spec}


def _same(one: Any, other: Any) -> bool:
    return one == other and type(one) is type(other)


def _desired(folder: Path, layers: Layers) -> DesiredState:
    judgement = judge(load([folder / "base"], None, layers))
    assert [str(each) for each in judgement.diagnostics if each.is_error] == []
    return judgement.desired


def _meaning(desired: DesiredState) -> Any:
    return {
        key: (each.ref, each.spec, each.written, each.pinned_id, each.prevent_delete)
        for key, each in desired.resources.items()
    }


def _shown(bench: Bench, desired: DesiredState) -> tuple[str, Any]:
    plan = bench.plan(desired)
    changes = plan_as_json(plan, "service", ())["changes"]
    return plan_digest(plan), changes


@settings(MANY, max_examples=cases(20))
@given(manifest_sets(), manifest_sets(), st.randoms(use_true_random=False))
def test_a_tree_in_layers_plans_what_it_plans_written_out(
    held: list[Document], documents: list[Document], dice: random.Random
) -> None:
    """Places of values aside, no reader of the plan can tell which of the two it was."""
    with a_bench() as bench:
        bench.apply(bench.declare(held))
        written_out = bench.declare(copy.deepcopy(documents))
        layering = Layering(copy.deepcopy(documents), dice)

        layered = _desired(bench.folder, layering.write(bench.folder))

        assert _meaning(layered) == _meaning(written_out)
        assert _shown(bench, layered) == _shown(bench, written_out)
