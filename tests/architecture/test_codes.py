"""One table has every code that the program prints, and the page of codes is written from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from reconciler.manifests import discovery, resolve
from reconciler.report.codes import CODES
from tests.architecture.tree import MODULES, nodes_of

CODE = re.compile(r"POLICY|[A-Z]{2,}(?:-[A-Z0-9]+)+")
NOT_CODES = {"UTF-8"}
ELSEWHERE = ("service/", "report/codes.py")


def printed() -> Iterator[str]:
    """Yield every code in the source; those of files end with the reason why one is not read."""
    for module in MODULES:
        if module.startswith(ELSEWHERE):
            continue
        for node in nodes_of(module):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and CODE.fullmatch(text) and text not in NOT_CODES:
                yield text
    for prefix, reasons in (("FILE", discovery.REMEDIES), ("SCRIPT", resolve.REMEDIES)):
        yield from (f"{prefix}-{reason.name.replace('_', '-')}" for reason in reasons)


def test_every_code_that_is_printed_is_in_the_table_and_no_other() -> None:
    """Whoever adds a code writes what it means, in reconciler/report/codes.toml."""
    assert sorted(set(printed())) == sorted(CODES)
