"""The pictures of the documents: text keeps its words, its places and its colours."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from docs.pictures import architecture
from docs.pictures.make import a_changed_tree
from docs.pictures.terminal import EDGE, WIDTH, as_svg
from tests.program import ROOT, program

PICTURES = ROOT / "docs" / "pictures"


def test_a_picture_has_the_words_where_the_terminal_has_them() -> None:
    """Indented words stay indented, and markup in them stays text."""
    picture = as_svg("\x1b[1mRisks\x1b[0m\n  \x1b[32m+\x1b[0m <a> & b\n", "a plan")

    assert words_in(picture) == ["Risks", "+", "<a> & b"]
    assert re.findall(r'<tspan x="([0-9.]+)"', picture) == [
        f"{EDGE + column * WIDTH:.1f}" for column in (0, 2, 4)
    ]
    assert 'style="font-weight:bold">Risks<' in picture


def test_the_picture_of_the_terminal_is_the_plan_of_today(tmp_path: Path) -> None:
    """Another wording, and the picture shows what nothing prints: then make it again."""
    a_changed_tree(tmp_path)
    plan = program(tmp_path)("plan", "--prune", "--allow-deletes", "1", "--quiet").out
    shown = " ".join(words_in((PICTURES / "plan.svg").read_text(encoding="utf-8")))
    wanted = f"$ reconciler plan --prune {plan}"

    assert words_of(shown) == words_of(wanted), "run: python -m docs.pictures.make"


def test_the_picture_of_the_parts_is_of_the_tables_of_today() -> None:
    """A part that may import another one is above it; every part has a box."""
    picture = (PICTURES / "architecture.svg").read_text(encoding="utf-8")

    assert picture == architecture.as_svg(), "run: python -m docs.pictures.architecture"
    for part in (*architecture.reconciler(), *architecture.service()):
        assert f">{part}</text>" in picture


def words_in(picture: str) -> list[str]:
    return [html.unescape(words) for words in re.findall(r"<tspan [^>]*>([^<]*)<", picture)]


def words_of(text: str) -> str:
    """Return a text without blanks, and without the ids and digests that differ in each run."""
    return "".join(re.sub(r"\b([0-9a-f]{32,64}|[0-9]{15,20})\b", "_", text).split())


@pytest.mark.parametrize("picture", sorted(PICTURES.glob("plan*.*")), ids=lambda path: path.name)
def test_a_picture_is_small_and_shown(picture: Path) -> None:
    """A clone carries each of them for ever."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]

    assert picture.stat().st_size < 150_000
    assert any(f"pictures/{picture.name}" in page.read_text(encoding="utf-8") for page in pages)
