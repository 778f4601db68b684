"""The place for secrets is not one."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, World, own_store


def open_to_all(kept: Path) -> None:
    """Let everybody read the folder."""
    kept.mkdir()
    kept.chmod(0o755)


def a_file(kept: Path) -> None:
    """Let a file be where the folder should be."""
    kept.write_text("x", encoding="ascii")


def nowhere(kept: Path) -> None:
    """Let a link that leads nowhere be where the folder should be."""
    kept.symlink_to(kept.parent / "no" / "where")


def a_link_to_all(kept: Path) -> None:
    """Let the folder be a link to one that everybody can read."""
    other = kept.parent / "other"
    other.mkdir(mode=0o755, exist_ok=True)
    other.chmod(0o755)
    kept.symlink_to(other)


def at_the_probe(kept: Path) -> None:
    """Let no file be made there at all: it is a folder of the kernel's."""
    kept.symlink_to("/proc/self/task")


REFUSED: tuple[Callable[[Path], None], ...] = (
    open_to_all, a_file, nowhere, a_link_to_all, at_the_probe,
)  # fmt: skip


def not_a_place_for_secrets(dice: random.Random, folder: Path) -> int:
    """Apply with a sink that cannot be one: no create is sent. Then with one that can."""
    with own_store(dice, folder, "file") as world:
        world.tree.declare(*dice.choices(("secret", "action", "idp"), k=4), "secret")
        kept, before = folder / "kept", world.events()
        wrongs = dice.sample(REFUSED, 3)
        for wrong in wrongs:
            wrong(kept)
            ran = world.run(*APPLY)
            must(ran.code == 1, "I10", f"{wrong.__name__} {ran.all}")
            must(world.events() == before, "I8", f"{wrong.__name__} {ran.all}")
            _remove(kept)
        world.settle()
        _in_the_way(world, kept)
    return len(wrongs) + 1


def _in_the_way(world: World, kept: Path) -> None:
    """Put something where a secret's file will be: the secret goes beside all but a folder."""
    dice = world.dice
    world.tree.declare("secret")
    name = next(reversed(world.tree.declared)).removeprefix("app-").removesuffix(".yaml")
    target, elsewhere = kept / f"acme.shop.{name}.json", world.folder / "elsewhere.json"
    elsewhere.write_text("{}", encoding="ascii")
    thing = dice.choice(("link", "file", "folder"))
    match thing:
        case "link":
            target.symlink_to(elsewhere)
        case "file":
            target.write_text("{}", encoding="ascii")
            target.chmod(0o644)
        case _:
            target.mkdir()
            before = world.events()
            ran = world.run(*APPLY)
            must(ran.code == 1, "I10", ran.all)
            must(world.events() == before, "I8", ran.all)
            target.rmdir()
    world.settle()
    must(elsewhere.read_text(encoding="ascii") == "{}", "I11", "a secret went through a link")
    must(thing == "folder" or target.read_text(encoding="ascii") == "{}", "I11", "it is gone")


def _remove(kept: Path) -> None:
    if kept.is_dir() and not kept.is_symlink():
        shutil.rmtree(kept)
    else:
        kept.unlink()


ROWS = (Row("F15", "the place for secrets is not one", not_a_place_for_secrets, 1),)
