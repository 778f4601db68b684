"""The first line of every plan and report: the service, its instance and the tree."""

from __future__ import annotations

import pytest

from reconciler.report.place import (
    Place,
    place_as_code,
    place_as_json,
    place_as_text,
    without_credentials,
)


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
