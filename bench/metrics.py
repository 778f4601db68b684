"""Figures of the source itself: its size, its words, its types and where its tests are.

``python -m bench.metrics`` prints them as one table. They gate nothing: a good sentence may miss
a bound by one word. ``--time`` also runs the unit tests in one process and prints how long it took.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import time
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "reconciler"
UNIT = ROOT / "tests" / "unit"

# Code that must state its reasons, invariants and units: stores, batching of calls, wire code.
EXPLAINED = ("service/eventstore/", "service/transport/", "service_client/")
OPENERS = re.compile(r"(?:Whether|What|Who|Where|Which|How|Why|When)\b")
DIALECT = re.compile(
    r"\b(?:[Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hatever|is none|has not|[Ss]ay whether|where it)\b"
)


class Metric(NamedTuple):
    """One row of the table."""

    name: str
    figure: str


@dataclass(frozen=True)
class Module:
    """The source of one module."""

    path: Path
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """Return its path within the package."""
        return self.path.relative_to(PACKAGE).as_posix()

    @cached_property
    def tree(self) -> ast.Module:
        """Return its syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def comments(self) -> int:
        """Return the number of lines that hold a comment."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(token.type == tokenize.COMMENT for token in tokens)

    @cached_property
    def code_lines(self) -> int:
        """Return the number of lines that hold code: no blank line, comment or docstring."""
        in_texts = {
            line
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        }
        lines = enumerate(self.text.splitlines(), 1)
        return sum(
            bool(line.strip()) and not line.lstrip().startswith("#") and number not in in_texts
            for number, line in lines
        )

    def docstrings(self) -> Iterator[str]:
        """Yield the docstring of the module and of each class and function in it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node)
                if docstring:
                    yield docstring

    def functions(self) -> Iterator[int]:
        """Yield the number of lines of each function, its docstring included."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def modules() -> list[Module]:
    """Return every module of the package."""
    return [Module(path, path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))]


def metrics(source: Sequence[Module]) -> list[Metric]:
    """Return the figures of some modules."""
    docstrings = [text for module in source for text in module.docstrings()]
    odd = [text for text in docstrings if is_odd(text)]
    explained = [module for module in source if module.name.startswith(EXPLAINED)]
    comments = sum(module.comments for module in explained)
    code = sum(module.code_lines for module in explained)
    named = [module for module in source if module.path.name != "__init__.py"]
    mirrored = [module for module in named if test_of(module).exists()]
    anys = sum(len(re.findall(r"\bAny\b", module.text)) for module in source)
    lengths = sorted(length for module in source for length in module.functions())
    return [
        Metric("lines, docstrings and comments included", f"{_lines(source):,}"),
        Metric("lines of code", f"{sum(module.code_lines for module in source):,}"),
        Metric("modules", str(len(named))),
        Metric("lines of a function: median", str(lengths[len(lengths) // 2])),
        Metric(
            "lines of a function: 95 of 100 have at most", str(lengths[len(lengths) * 95 // 100])
        ),
        Metric("comments per code line, stores and wires", f"{comments / max(code, 1):.3f}"),
        Metric(
            "docstrings with odd openings or words",
            f"{100 * len(odd) / max(len(docstrings), 1):.1f} % of {len(docstrings)}",
        ),
        Metric("`Any`", str(anys)),
        Metric("modules with unit tests at the same place", f"{len(mirrored)} of {len(named)}"),
    ]


def _lines(source: Sequence[Module]) -> int:
    return sum(len(module.text.splitlines()) for module in source)


def is_odd(docstring: str) -> bool:
    """Return whether a docstring opens with a question word, or has a word of the old dialect."""
    opening = docstring.split("\n\n", maxsplit=1)[0]
    return bool(OPENERS.match(opening) or DIALECT.search(opening))


def test_of(module: Module) -> Path:
    """Return where the unit tests of a module belong."""
    inside = module.path.relative_to(PACKAGE)
    return UNIT / inside.with_name(f"test_{inside.name}")


def unit_tests() -> Metric:
    """Run the unit tests in one process, less the slow ones, as ``make unit`` does."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not slow", str(UNIT)],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return Metric(
        "unit tests less slow ones, one process",
        f"{time.perf_counter() - began:.0f} s",
    )


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    rows = metrics(modules())
    if "--time" in arguments:
        rows.append(unit_tests())
    print("| | |\n|---|--:|")
    for row in rows:
        print(f"| {row.name} | {row.figure} |")


if __name__ == "__main__":
    main(sys.argv[1:])
