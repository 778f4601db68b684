"""The source of the package, parsed once for every rule that looks at it."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "reconciler"
MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]


@cache
def text_of(module: str) -> str:
    """Return the source of a module."""
    return (PACKAGE / module).read_text(encoding="utf-8")


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    gc.disable()  # a tree is no garbage, and to look for some in it takes as long as to parse
    try:
        return ast.parse(text_of(module))
    finally:
        gc.enable()


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    """Return every node of a module, in no order."""
    found: list[ast.AST] = [tree_of(module)]
    for node in found:  # which grows; ``ast.walk`` takes twice as long
        for value in vars(node).values():
            if isinstance(value, list):
                found += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return tuple(found)


@cache
def imports(module: str) -> tuple[str, ...]:
    """Return every name that a module imports, anywhere in it, in full."""
    return tuple(_imported(module, nodes_of(module)))


@cache
def imports_at_the_top(module: str) -> tuple[str, ...]:
    """Return the names that are imported as soon as the module is."""
    return tuple(_imported(module, tree_of(module).body))


def _imported(module: str, nodes: tuple[ast.AST, ...] | list[ast.stmt]) -> Iterator[str]:
    for found in nodes:
        if isinstance(found, ast.Import):
            yield from (alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0, f"{module}:{found.lineno}: name the module in full"
            yield from (f"{found.module}.{alias.name}" for alias in found.names)


@cache
def module_of(name: str) -> str | None:
    """Return the file of ours that an imported name is in, or None."""
    parts = name.split(".")
    if parts[0] != "reconciler":
        return None
    for end in range(len(parts), 0, -1):
        stem = "/".join(parts[1:end])
        for candidate in (f"{stem}.py", f"{stem}/__init__.py".lstrip("/")):
            if candidate in MODULES:
                return candidate
    return None


def needed_by(module: str) -> set[str]:
    """Return the modules of ours that a module imports."""
    return {found for name in imports(module) if (found := module_of(name))}
