"""The first line of every plan and report: the service, its instance and the tree."""

from __future__ import annotations

import pytest

from reconciler.report.place import (
    Place,
    place_as_code,
    place_as_json,
    place_as_marker,
    place_as_text,
    without_credentials,
)
from reconciler.resources.shard import Shard


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (
            Place("https://id.example.com", "12", "web"),
            "Service https://id.example.com (instance 12), tree web",
        ),
        (
            Place("sqlite:new.db", "", "default"),
            "Service sqlite:new.db (new: there is no store yet), tree default",
        ),
        (
            Place("https://id.example.com", "12", "web", "staging"),
            "Environment staging: service https://id.example.com (instance 12), tree web",
        ),
        (
            Place("sqlite:a\x1b[2J.db", "12", "##[error]"),
            "Service sqlite:a\\u{1b}[2J.db (instance 12), tree ##\\u{5b}error]",
        ),
    ],
)
def test_a_place_is_one_line(place: Place, text: str) -> None:
    """Nothing in it is obeyed by a terminal or a runner."""
    assert place_as_text(place) == text


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://id.example.com/x", "https://id.example.com/x"),
        ("sqlite:a@b:c.db", "sqlite:a@b:c.db"),
        ("https://ana:s3cret@id.example.com", "https://ana:***@id.example.com"),
        ("postgresql://ana:s3@cret@db/x", "postgresql://ana:***@db/x"),
        ("postgresql://ana@db/x", "postgresql://ana@db/x"),
        (
            "postgresql://db/x?user=ana&password=s3cret&sslmode=require",
            "postgresql://db/x?user=ana&password=***&sslmode=require",
        ),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    """Reports are kept by CI for a long time."""
    assert without_credentials(address) == shown
    assert place_as_json(Place(address, "1", "t"))["service"] == shown


@pytest.mark.parametrize(
    ("tree", "code"),
    [
        ("web", "`Service s (instance 1), tree web`"),
        ("a`b``c", "``` Service s (instance 1), tree a`b``c ```"),
    ],
)
def test_a_place_in_markdown_stays_code(tree: str, code: str) -> None:
    """Back-ticks in a name do not end it."""
    assert place_as_code(Place("s", "1", tree)) == code


def test_a_long_place_is_cut_in_markdown() -> None:
    """The head of a comment has a limit."""
    assert len(place_as_code(Place("s", "1", "`x" * 5_000))) < 500


def test_a_service_that_is_not_there_yet_has_no_instance_in_json() -> None:
    """Null, and not an empty text."""
    assert place_as_json(Place("sqlite:x.db", "", "t")) == {
        "service": "sqlite:x.db",
        "instance": None,
        "tree": "t",
    }
    assert place_as_json(Place("s", "1", "t", "staging"))["environment"] == "staging"


@pytest.mark.parametrize(
    ("place", "shard", "marker"),
    [
        (
            Place("https://id.example.com", "12", "web"),
            None,
            "<!-- reconciler-plan service=https://id.example.com tree=web -->",
        ),
        (
            Place("https://id.example.com", "12", "web"),
            Shard(2, 4),
            "<!-- reconciler-plan service=https://id.example.com tree=web shard=2/4 -->",
        ),
        (
            Place("https://me:pw@h", "12", "--> <b>`\n"),
            None,
            "<!-- reconciler-plan service=https://me:%2A%2A%2A@h tree=-%2D%3E%20%3Cb%3E%60%0A -->",
        ),
        (Place("s", "", "a---b"), None, "<!-- reconciler-plan service=s tree=a-%2D-b -->"),
        (
            Place("s", "1", "web", "staging"),
            None,
            "<!-- reconciler-plan environment=staging service=s tree=web -->",
        ),
    ],
)
def test_a_comment_is_found_again_by_its_service_and_tree(
    place: Place, shard: Shard | None, marker: str
) -> None:
    """No name ends the HTML comment, and two services never share one."""
    assert place_as_marker(place, shard) == marker


def test_a_long_name_is_cut_and_still_its_own() -> None:
    """A comment has a limit."""
    first, second = (place_as_marker(Place("s", "", "x" * 900 + end), None) for end in "ab")

    assert first != second
    assert len(first) < 250
