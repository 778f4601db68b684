"""One change as HTML: foreign text is text in it, and long ones are cut."""

from __future__ import annotations

import pytest

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.model import Cause, CauseKind, Change, Create, Delete, Update
from reconciler.plan.risk import MEANINGS, Risk, is_severe
from reconciler.report.html import LINES, changed, tag, tags
from reconciler.report.page import LINE, shown_text, words
from tests.builders import ACME, GREET, SHOP, WEB, a_plan, an_action, declared, held
from tests.drawings import shown

LESS = next(name for name in MEANINGS if not is_severe(name))
SEVERE, MILD = Risk("client-id-lost", "", "s"), Risk(LESS, "", "s")
BLOCK = error("GUARD-X", "s", "Allow <it>.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#x27;"),
        ("a\u202eb", "a\\u{202e}b"),
        ("x" * (LINE + 3), "x" * LINE + " [3 more characters]"),
    ],
)
def test_foreign_text_is_shown_and_never_obeyed(text: str, expected: str) -> None:
    assert words(text) == expected
    assert shown_text(text) == f"<code>{expected}</code>"


@pytest.mark.parametrize(
    ("change", "name", "sign"),
    [
        (Create(declared(GREET)), "create", "+"),
        (Update(declared(GREET), held(GREET, an_action(timeout="1s"))), "update", "~"),
        (Delete(held(GREET)), "delete", "-"),
    ],
)
def test_a_card_says_its_change_its_kind_and_its_sign(change: Change, name: str, sign: str) -> None:
    card = changed(shown(change, risks=()), 3, is_open=False)

    assert f'id="c3" data-c="{name}" data-k="Action" data-r=""><summary>' in card
    assert f'<span class="sign {name}">{sign}</span>' in card


@pytest.mark.parametrize(
    ("risks", "blocks", "look"),
    [((), (), "c"), ((MILD,), (), "c risk"), ((MILD, SEVERE), (), "c severe"),
     ((), (BLOCK,), "c stop")],
)  # fmt: skip
def test_a_card_has_the_look_of_the_worst_that_is_said_of_it(
    risks: tuple[Risk, ...], blocks: tuple[Diagnostic, ...], look: str
) -> None:
    card = changed(shown(Create(declared(GREET)), risks=risks, blocks=blocks), 1, is_open=True)

    assert card.startswith(f'<details class="{look}" id="c1"')
    assert " open><summary>" in card


def test_blocks_risks_and_causes_are_told() -> None:
    causes = {GREET: {"script": Cause(CauseKind.SERVICE, "<ana>")}}
    plan = a_plan(causes=causes)
    each = shown(Create(declared(GREET)), plan=plan, risks=(SEVERE, SEVERE), blocks=(BLOCK,))

    card = changed(each, 1, is_open=False)

    assert tags(each).count("tag severe") == 1, "each class of risk once"
    assert "Allow &lt;it&gt;." in card
    assert "by &lt;ana&gt;" in card
    assert tag(LESS, "text") == '<span class="tag">text</span>'


def test_a_delete_says_what_is_lost_for_good() -> None:
    assert "lost for good: client id" in changed(shown(Delete(held(WEB))), 1, is_open=False)


def test_an_object_without_fields_says_so() -> None:
    assert "it has no fields" in changed(shown(Create(declared(ACME))), 1, is_open=False)
    assert "it sets no fields" in changed(shown(Create(declared(SHOP))), 1, is_open=False)


def test_a_long_script_is_cut_by_lines() -> None:
    script = "\n".join(f"// {number}" for number in range(LINES + 5))
    card = changed(shown(Create(declared(GREET, an_action(script=script)))), 1, is_open=False)

    assert "5 more lines" in card
    assert f"// {LINES - 1}<" in card
    assert f"// {LINES}<" not in card
