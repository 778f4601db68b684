"""Fields before and after: every form of a plan shows the items that the plan tells."""

from __future__ import annotations

import unicodedata

import pytest

from reconciler.plan.diff import FieldChange
from reconciler.plan.model import Update
from reconciler.report.differences import (
    FileChange,
    Row,
    changes_as_text,
    field_lines,
    fields_as_json,
    item_lines,
    rows_of,
    unified,
    what_differs,
)
from reconciler.report.visible import PLAIN
from tests.builders import WEB, a_plan, declared, held
from tests.drawings import plan_as_json
from tests.rows import each_row

URIS = [f"https://a.test/{number}" for number in range(9)]
FIELD = FieldChange("redirectUris", URIS, [*URIS[:7], "https://b.test", URIS[8]])


def test_an_exchanged_item_is_the_same_in_every_form() -> None:
    """What lines, rows and JSON show comes from one difference."""
    lost, gained = URIS[7], "https://b.test"

    assert list(field_lines(FIELD, PLAIN, is_new=False)) == [
        "redirectUris:",
        f'  - "{lost}"',
        f'  + "{gained}"',
    ]
    assert [row for row in rows_of(FIELD) if not row.alike] == [
        Row(skipped=4),
        Row((8, f'"{lost}"'), (8, f'"{gained}"')),
    ]
    marks = [(mark, line) for mark, line in unified(rows_of(FIELD)) if mark != " "]
    assert marks == [("@", "4 more alike"), ("-", f'"{lost}"'), ("+", f'"{gained}"')]
    assert fields_as_json([FIELD])[0]["items"] == [
        {"position": 7, "value": lost, "added": False},
        {"position": 7, "value": gained, "added": True},
    ]


def test_a_plan_as_json_tells_the_items_of_lists_alone() -> None:
    """A key more beside those that were there; other values say all with before and after."""
    change = Update(
        declared(WEB, {"redirectUris": ["https://b.test"], "devMode": True}),
        held(WEB, declared(WEB, {"redirectUris": ["https://a.test", "https://b.test"]}).spec),
    )

    uris, mode = plan_as_json(a_plan(change), "s", ())["changes"][0]["fields"]

    assert uris["items"] == [{"position": 0, "value": "https://a.test", "added": False}]
    assert "items" not in mode


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    [
        ("ab", "ab", [(0, 0, 2)]),
        ("", "a", [(0, 1, 0)]),
        ("ab", "b", [(1, 0, 0), (2, 1, 0)]),
        ("b", "ab", [(0, 1, 0), (1, 2, 0)]),
        ("abcdefgh", "abcdefgX", [(0, 0, 4), (5, 5, 0), (6, 6, 0), (7, 7, 0), (8, 8, 0)]),
    ],
)
def test_rows_are_numbered_on_both_sides(
    before: str, after: str, rows: list[tuple[int, int, int]]
) -> None:
    """Three that are alike are left around each difference; 0 stands for a side without a line."""
    field = FieldChange("grantTypes", [*before], [*after])

    found = [
        (row.before[0] if row.before else 0, row.after[0] if row.after else 0, row.skipped)
        for row in rows_of(field)
    ]

    assert found == rows


@each_row(
    ("before", "after", "lines"),
    [
        (["a", "x"], ["b", "x"], ['u[0]: "a" -> "b"']),
        (["x", "a", "y"], ["x", "b", "y"], ['u[1]: "a" -> "b"']),
        (["x"], ["x", "a", "b"], ['u[1]: + "a"', 'u[2]: + "b"']),
        (["x", "a", "y"], ["x", "y"], ['u[1]: - "a"']),
        (["a"], [], ['u[0]: - "a"']),
        (["a", "a"], ["a"], ['u[1]: - "a"']),
        (["a", "b", "c"], ["d", "b", "e"], ['u[0]: "a" -> "d"', 'u[2]: "c" -> "e"']),
    ],
)
def test_items_that_differ_have_their_places(
    before: list[str], after: list[str], lines: list[str]
) -> None:
    """The places are those of the whole list; equal items around them change nothing but these."""
    field = FieldChange("u", before, after)
    between = FieldChange("u", ["0", *before, "9"], ["0", *after, "9"])
    start, *parts = what_differs(field)

    assert [*item_lines(field, PLAIN)] == lines
    assert what_differs(between) == (start + 1, *parts)


@each_row(
    ("width", "lines"),
    [
        (0, ['name: "from" -> "to"  # this server will not empty it']),
        (20, ['name: "from"', '  -> "to"  # this server will not empty it']),
    ],
)
def test_values_without_room_stand_below_each_other(width: int, lines: list[str]) -> None:
    field = FieldChange("name", "from", "to", kept=True)

    assert [*field_lines(field, PLAIN, is_new=False, width=width)] == lines


@each_row(
    ("name", "before", "after", "lines"),
    [
        ("name", "K\u00e4ufer", "Ka\u0308ufer", ['name: "Käufer" -> "Ka\\u{308}ufer"']),
        ("name", "10 \u03a9", "10 \u2126", ['name: "10 Ω" -> "10 \\u{2126}"']),
        ("name", "\ud55c", "\u1112\u1161\u11ab", [
            'name: "한" -> "\\u{1112}\\u{1161}\\u{11ab}"',
        ]),
        ("uris", ["\u00e4"], ["a\u0308"], ["uris:", '  - "ä"', '  + "a\\u{308}"']),
        ("script", "// \u00e4\nx", "// a\u0308\nx", [
            "script:", "  @@ -1,2 +1,2 @@", "  - // ä", "  + // a\\u{308}", "    x",
        ]),
        ("script", "\u26a0\ufe0f\nที่\n\u00e9", "\u26a0\ufe0f\nที่\ne\u0301", [
            "script:", "  @@ -1,3 +1,3 @@", "    \u26a0\\u{fe0f}", "    ที่",
            "  - \u00e9", "  + e\\u{301}",
        ]),
    ],
)  # fmt: skip
def test_two_values_that_are_not_the_same_do_not_look_so(
    name: str, before: object, after: object, lines: list[str]
) -> None:
    """Letters have several forms in Unicode that are drawn alike; NFC is the one that is typed."""
    field = FieldChange(name, before, after)

    assert [*field_lines(field, PLAIN, is_new=False)] == lines
    shown = [line for mark, line in unified(rows_of(field)) if mark in "-+"]
    assert all(unicodedata.is_normalized("NFC", line) for line in shown)
    assert len({*shown}) == 2


def test_a_character_differs_from_its_escape_in_a_script() -> None:
    """Both are drawn alike, but the lines are compared as they are."""
    field = FieldChange("script", "// a\u0308\nx", "// a\\u{308}\nx")
    lost, gained = "- // a\\u{308}", "+ // a\\u{308}"

    assert [*field_lines(field, PLAIN, is_new=False)] == [
        "script:", "  @@ -1,2 +1,2 @@", f"  {lost}", f"  {gained}", "    x",
    ]  # fmt: skip
    shown = [f"{mark} {line}" for mark, line in unified(rows_of(field))]
    assert shown == [lost, gained, "  x"]


def test_lines_of_a_file_that_are_not_the_same_do_not_look_so() -> None:
    """An accepted value can be in another form of Unicode than the declared one."""
    before, after = "kind: Project\nname: K\u00e4ufer\n", "kind: Project\nname: Ka\u0308ufer\n"

    assert changes_as_text([FileChange("a.yaml", before, after)]).splitlines() == [
        "--- a.yaml",
        "+++ a.yaml",
        "@@ -1,2 +1,2 @@",
        " kind: Project",
        "-name: K\u00e4ufer",
        "+name: Ka\\u{308}ufer",
    ]
