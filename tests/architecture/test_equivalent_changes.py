"""The list of changes that make no difference: what code no longer has must not stay in it."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache

from tests.architecture.tree import ROOT
from tests.mutation.survivors import EQUIVALENT


@cache
def lines_of(module: str) -> frozenset[str]:
    """Return the lines of a module as the list has them: no layout, no names of functions."""
    return frozenset(_lines_of(ast.parse((ROOT / module).read_text(encoding="utf-8"))))


def _lines_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.name = "it"
    for line in ast.unparse(tree).splitlines():
        yield line.strip()


def test_each_change_is_of_code_that_is_there() -> None:
    """A later change of the same look would be taken for one that was judged."""
    listed = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]

    stale = [
        (one["module"], line)
        for one in listed
        for line in one["was"].splitlines()
        if line.strip() not in lines_of(one["module"])
    ]

    assert stale == []
