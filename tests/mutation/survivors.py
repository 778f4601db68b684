"""What mutmut left behind, read back: which change of which function no test noticed."""

from __future__ import annotations

import ast
import difflib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

EQUIVALENT = Path(__file__).with_name("equivalent.toml")
SURVIVED, UNTESTED, UNKNOWN = 0, 33, None


@dataclass(frozen=True)
class Mutant:
    """One small change of a function.

    Attributes:
        change: The lines that differ.
        is_words: Only a sentence for people is written otherwise, such as in capitals.
        is_equivalent: It is listed as one that changes nothing, or takes out only that lists of
            one length are checked to be so.
    """

    name: str
    noticed: bool
    change: tuple[str, ...]
    is_words: bool
    is_equivalent: bool


def mutants(tree: Path) -> Iterator[Mutant]:
    """Yield every mutant that was tried in a tree.

    Raises:
        ValueError: mutmut did not come to its end.
    """
    known = {
        (one["module"], one["was"], one["becomes"])
        for one in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]
    }
    for meta in sorted((tree / "mutants").rglob("*.py.meta")):
        functions = _functions(meta.with_suffix(""))
        module = meta.with_suffix("").relative_to(tree / "mutants").as_posix()
        told = json.loads(meta.read_text(encoding="utf-8"))
        for name, code in told["exit_code_by_key"].items():
            if code is UNKNOWN:
                raise ValueError(f"{name} was not tried")
            short = name.rpartition(".")[2]
            before = functions[f"{short.rpartition('__mutmut_')[0]}__mutmut_orig"]
            after = functions[short]
            change = _change(before, after)
            was, becomes = ("\n".join(_signed(change, sign)) for sign in "-+")
            yield Mutant(
                name,
                code not in {SURVIVED, UNTESTED},
                change,
                _without_words(before) == _without_words(after),
                _unchecked(before) == _unchecked(after) or (module, was, becomes) in known,
            )


def _functions(path: Path) -> dict[str, str]:
    """Return every function of a module, as text without its name."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, kinds) and "__mutmut_" in node.name:
            name, node.name = node.name, "it"
            found[name] = ast.unparse(node)
    return found


def _change(before: str, after: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _signed(change: tuple[str, ...], sign: str) -> list[str]:
    return [line[1:].strip() for line in change if line.startswith(sign)]


@cache
def _without_words(function: str) -> str:
    tree = ast.parse(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return ast.dump(tree)


@cache
def _unchecked(function: str) -> str:
    tree = ast.parse(function)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = []
    return ast.dump(tree)
