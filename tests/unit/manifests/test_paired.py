"""The items of two lists that stay: few of them move, and thousands are quick."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifests.accept import as_written
from reconciler.manifests.paired import paired
from reconciler.manifests.rewrite import Edit, rewritten
from reconciler.manifests.text import YamlValue
from reconciler.resources.ref import Kind
from tests.rows import each_row


@each_row(
    ("old", "new", "stays"),
    [
        ("abc", "abc", "abc"),
        ("abc", "xabyc", "abc"),
        ("abcd", "bcda", "bcd"),
        ("aab", "ab", "ab"),
        ("aba", "ba", "ba"),
        ("aaa", "aaaa", "aaa"),
        ("", "a", ""),
    ],
)
def test_the_most_items_stay(old: str, new: str, stays: str) -> None:
    """Those that are moved are the fewest; one of several equal ones is as good as another."""
    assert "".join(old[index] for index, _ in paired([*old], [*new])) == stays


def test_what_is_equal_to_yaml_alone_is_not_the_same() -> None:
    """Python takes true for one, and a manifest does not."""
    assert paired([1, "1"], [True, "1"]) == [(1, 1)]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_pairs_are_equal_and_in_order(old: list[str], new: list[str]) -> None:
    """Whatever repeats; both ends are as long as they can be."""
    pairs = paired(old, new)

    assert all(old[before] == new[after] for before, after in pairs)
    for side in (0, 1):
        assert [pair[side] for pair in pairs] == sorted({pair[side] for pair in pairs})
    assert (pairs == [(index, index) for index in range(len(old))]) or old != new


def test_the_time_of_repeated_items_grows_with_their_number() -> None:
    """Comparing each item with each would be 400 million comparisons, and more for each block."""
    compared, many = 0, 20_000

    class Counted(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

    old: list[YamlValue] = [Counted("ab"[index % 2]) for index in range(many)]
    new: list[YamlValue] = [Counted("aab"[index % 3]) for index in range(many)]

    assert len(paired(old, new)) >= many // 2
    assert compared < 40 * many


def test_thousands_of_items_are_written() -> None:
    """In a block and between brackets, beside a variable that stays."""
    old = ["x", *("ab" * 2000)]
    new = [*("aab" * 1500), "x"]
    for text in ("a:\n" + "".join(f"- {each}\n" for each in old), f"a: [{', '.join(old)}]\n"):
        value = as_written(Kind("OidcApplication"), "redirectUris", old, old, new)
        changed = rewritten(text, [Edit(0, ("a",), value)])
        assert changed.replace("\n- ", ", ").count("b") == 1500
