"""One table has every code that the program prints, and the page of codes is written from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from reconciler.manifests import discovery, resolve
from reconciler.report.codes.table import CODES, NAME, PROBLEMS, RISKS, SECTIONS, codes_page
from tests.architecture.tree import MODULES, ROOT, nodes_of

CODE = re.compile(r"[A-Z]{2,}(?:-[A-Z0-9]+)+")
NOT_CODES = {"UTF-8"}
ELSEWHERE = ("service/", "report/codes/")


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
    """Whoever adds a code writes what it means, in reconciler/report/codes."""
    assert sorted(set(printed())) == sorted(CODES)


def test_every_code_has_one_entry() -> None:
    names = [code.name for codes in SECTIONS.values() for code in codes]

    assert sorted(names) == sorted(set(names))
    assert not set(names) & {*RISKS, *PROBLEMS}


@pytest.mark.parametrize("section", SECTIONS)
def test_an_entry_says_what_is_wrong_what_it_means_and_what_to_do(section: str) -> None:
    for code in SECTIONS[section]:
        assert re.fullmatch(r"\S.*[^\s.]", code.title), code.name
        for text in (code.meaning, code.remedy):
            assert re.fullmatch(r"\S.*[^\s.]\.", text), (code.name, text)


def test_the_page_is_written_from_the_table() -> None:
    """Run make codes after a change of the table."""
    page = (ROOT / "docs" / NAME).read_text(encoding="utf-8")

    assert page == codes_page()
    for name in (*CODES, *RISKS, *PROBLEMS):
        assert f"\n### {name}\n" in page
