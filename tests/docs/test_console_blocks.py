"""Every console block of README.md and docs shows what its commands print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.session import Command, blocks_of, matches, run_session
from tests.docs.setups import BLOCKS, SERVED, NotRun
from tests.program import ROOT
from tests.release import put_into_checkout
from tests.running import running_server

PAGES = ["README.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))]
TRIED = [
    page for page, blocks in BLOCKS.items() if not all(isinstance(one, NotRun) for one in blocks)
]


def blocks_in(page: str) -> list[list[Command]]:
    return blocks_of((ROOT / page).read_text(encoding="utf-8"))


def test_every_block_is_in_the_table() -> None:
    """A block that is in no class would be shown and never tried."""
    found = {page: len(blocks_in(page)) for page in PAGES}

    assert {page: len(blocks) for page, blocks in BLOCKS.items()} == {
        page: count for page, count in found.items() if count
    }


@pytest.mark.parametrize("page", TRIED)
def test_every_block_shows_what_its_commands_print(page: str, tmp_path: Path) -> None:
    """The blocks of a page run one after the other in one shell."""
    folder = tmp_path / "work"
    folder.mkdir()
    put_into_checkout()  # README.md says to run make dist
    commands = planned(page)
    with service_of(page, tmp_path) as given:
        printed = run_session(folder, [command.words for command in commands], given)

    assert len(printed) == len(commands), printed
    for command, seen in zip(commands, printed, strict=True):
        if command.shown is not None and not matches(command.shown, seen):
            assert seen == command.shown, f"$ {command.words}"


@contextmanager
def service_of(page: str, folder: Path) -> Iterator[Mapping[str, str]]:
    """Yield the environment that a page is about: a server for some, nothing for the others."""
    if page not in SERVED:
        yield {}
        return
    place = folder / "server"
    place.mkdir()
    with running_server(place) as server:
        yield {
            "RECONCILER_SERVICE": server.address,
            "RECONCILER_TOKEN": server.token("viewer"),
            "RECONCILER_SECRETS_TO": "file:secrets",
        }


def planned(page: str) -> Sequence[Command]:
    """Return what a page runs: for each block what comes before it, then its commands."""
    commands = []
    for before, block in zip(BLOCKS[page], blocks_in(page), strict=True):
        if not isinstance(before, NotRun):
            commands += [Command(before or ":", None), *block]
    return commands


@pytest.mark.parametrize(
    ("shown", "seen", "same"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "b", False),
        ("a\n[...]\nc", "a\nb\nb\nc\n", True),
        ("a\n[...]\nc", "a\nc\n", True),
        ("a\n[...]\nx\n[...]\nc", "a\nb\nc\n", False),
        ("[...]\nc", "a\nc\nd\n", False),
        ("a\n[...]", "b\na\n", False),
        ("id 1001613242755138007", "id 1001613242755138008", True),
        ("exit 2", "exit 3", False),
        ("[...]", "", True),
    ],
)
def test_an_output_is_compared_line_by_line(shown: str, seen: str, *, same: bool) -> None:
    """Any lines stand for any lines, ids for ids; nothing else is let pass."""
    assert matches(shown, seen) is same
