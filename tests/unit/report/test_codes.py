"""Every code has one entry that a reader understands, and the page is written from them."""

from __future__ import annotations

import re

from docs.codes.make import PAGE, codes_page
from reconciler.plan.risk import MEANINGS, PROBLEMS
from reconciler.report.codes import CODES, SECTIONS
from tests.architecture.tree import ROOT
from tests.rows import each_row


def test_every_code_has_one_entry() -> None:
    names = [code.name for codes in SECTIONS.values() for code in codes]

    assert sorted(names) == sorted(set(names))
    assert not set(names) & {*MEANINGS, *PROBLEMS}


@each_row("section", SECTIONS)
def test_an_entry_says_what_is_wrong_what_it_means_and_what_to_do(section: str) -> None:
    for code in SECTIONS[section]:
        assert re.fullmatch(r"\S.*[^\s.]", code.title), code.name
        for text in (code.meaning, code.remedy):
            assert re.fullmatch(r"\S.*[^\s.]\.", text), (code.name, text)


def test_the_page_is_written_from_the_table() -> None:
    """Run make codes after a change of the table."""
    page = PAGE.read_text(encoding="utf-8")

    assert page == codes_page()
    for name in (*CODES, *MEANINGS, *PROBLEMS):
        assert f"\n### {name}\n" in page


def test_every_guard_is_a_row_of_its_page() -> None:
    page = (ROOT / "docs/guards.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| `(GUARD-[A-Z-]+)` \|", page, re.MULTILINE)) == {
        code.name for code in SECTIONS["Guards"]
    }
