"""Care for a store: what a restore loses, and times of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli import store
from reconciler.service.eventstore.sql import Snapshot
from reconciler.service.restore import Entrance, Lost
from tests.builders import WEB


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0, ""), (1_700_000_000_999_999, "2023-11-14T22:13:20+00:00")]
)
def test_times_are_to_the_second(microseconds: int, text: str) -> None:
    assert store._time(microseconds) == text


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        (Lost(None), ["cannot be read"]),
        (Lost(3), ["Lost: 3 event(s)"]),
        (Lost(0, is_other=True), ["another instance", "Lost: 0 event(s)"]),
        (Lost(1, secrets=(WEB,)), ["Lost: 1 event(s)", "secret rotate", "acme/shop/storefront"]),
        (
            Lost(0, let_in_again=(Entrance("token", "ci", ""),)),
            ["Lost: 0 event(s)", "ended since the backup", "  reconciler token revoke ci"],
        ),
        (
            Lost(0, shut_out=(Entrance("machine", "m", ""),)),
            ["Lost: 0 event(s)", "made since the backup", "  machine m"],
        ),
    ],
)
def test_what_a_restore_loses_is_said_first(lost: Lost, words: list[str]) -> None:
    lines = list(store._lost_in_words(lost))

    assert len(lines) == len(words)
    assert [word for word, line in zip(words, lines, strict=True) if word not in line] == []


def test_a_list_of_tokens_reads_their_organizations_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store can hold a million objects: all of them were read for a few names."""
    service = f"--service=sqlite:{tmp_path}/identity.db"
    create = ["create", "--name", "ci", "--role", "viewer", service]
    assert CliRunner().invoke(store.token_group, create).exit_code == 0
    monkeypatch.delattr(Snapshot, "all_objects")

    listed = CliRunner().invoke(store.token_group, ["list", service])

    assert listed.stdout.startswith("ci  viewer  all  created ")
