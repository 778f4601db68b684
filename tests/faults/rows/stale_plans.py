"""A plan is applied that is no longer, or never was, what somebody approved."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from reconciler.cli.connection import DEFAULT_SERVICE
from reconciler.cli.main import run
from reconciler.plan.integrity import SEAL, sealed
from reconciler.plan.planfile import FORMAT, FORMAT_VERSION
from tests.acceptance.conftest import an_action, write
from tests.faults.catalogue import Row, must
from tests.faults.world import APPLY, EVERYTHING, World, a_server, own_store

DAMAGES = 80
PLAN = "plan.json"
OUT = ("plan", "--out", PLAN, *EVERYTHING)
STALE = 4


def something_moved(dice: random.Random, folder: Path) -> int:
    """Save a plan, move one thing it was made of, and try to apply it."""
    make = dice.choice((own_store, a_server))
    with make(dice, folder) as world:
        world.tree.edit(6)
        world.settle()
        moves = dice.sample(MOVES, 2)
        for move in moves:
            world.tree.edit(2)
            if move is empty_the_service:  # it needs something to remove
                world.tree.declare("action")
                _in_line_again(world)
            world.tree.declare("action")
            saved = world.run(*OUT)
            must(saved.code == 0, "I7", saved.all)
            options = move(world)
            before = world.events()
            ran = world.run("apply", PLAN, *(options or EVERYTHING))
            must(ran.code == STALE, "I10", f"{move.__name__} {ran.all}")
            must(world.events() == before, "I8", move.__name__)
            _in_line_again(world)
        world.settle()
    return len(moves)


def _in_line_again(world: World) -> None:
    ran = world.run(*OUT)
    must(ran.code == 0, "I7", ran.all)
    ran = world.run("apply", PLAN, *EVERYTHING)
    must(ran.code == 0, "I7", ran.all)


def edit_a_manifest(world: World) -> None:
    """Declare one thing more."""
    world.tree.declare(world.dice.choice(("secret", "action", "idp")))


def drop_a_manifest(world: World) -> None:
    """Declare one thing less."""
    world.tree.drop(1)


def change_the_service(world: World) -> None:
    """Let another tree change what is planned, or in step."""
    file, text = world.dice.choice(sorted(world.tree.declared.items()))
    manifest = json.loads(text)
    spec = manifest["spec"]
    match manifest["kind"]:
        case "Action":
            spec["allowedToFail"] = True
        case "OidcApplication":
            spec["redirectUris"] = ["https://theirs.example.com/cb"]
        case _:
            spec["headerName"] = "x-theirs"
    _theirs(world, {file: json.dumps(manifest)})


def take_a_name(world: World) -> None:
    """Let another tree make what is planned to be made."""
    file = next(reversed(world.tree.declared))
    name = json.loads(world.tree.declared[file])["metadata"]["name"]
    _theirs(world, {file: an_action(name, allowedToFail=True)})


def empty_the_service(world: World) -> None:
    """Let another folder of the same tree remove everything: no other tree may."""
    _theirs(world, {}, "--tree", "default", "--prune")


def go_elsewhere(world: World) -> tuple[str, ...]:
    """Give another service."""
    elsewhere = "sqlite:elsewhere/identity.db"
    kept = {"RECONCILER_SECRETS_TO": f"file:{world.folder / 'elsewhere' / 'kept'}"}
    made = world.run(*APPLY, RECONCILER_SERVICE=elsewhere, **kept)
    must(made.code == 0, "I7", made.all)
    return (*EVERYTHING, "--service", elsewhere)


def use_other_options(world: World) -> tuple[str, ...]:
    """Apply it as another tree, or with other rights."""
    given = world.dice.choice((("--tree", "other"), ("--prune-unmanaged",)))
    return (*EVERYTHING, *given)


def let_time_pass(world: World) -> None:
    """Let its time be over, or not yet come."""
    made, expires = world.dice.choice(((1, 2), (2**40, 2**41)))
    _altered(world.folder / PLAN, made_at=made, expires_at=expires)


def be_of_another_version(world: World) -> None:
    """Let another version of the program have made it."""
    _altered(world.folder / PLAN, tool_version=f"0.0.{world.dice.randrange(100)}")


MOVES: tuple[Callable[[World], tuple[str, ...] | None], ...] = (
    edit_a_manifest,
    drop_a_manifest,
    change_the_service,
    take_a_name,
    empty_the_service,
    go_elsewhere,
    use_other_options,
    let_time_pass,
    be_of_another_version,
)


def _theirs(world: World, manifests: dict[str, str], *options: str) -> None:
    """Apply other manifests of the same organization, from somewhere else."""
    theirs = world.folder / "theirs"
    write(theirs / "acme.yaml", (world.folder / "manifests" / "acme.yaml").read_text("utf-8"))
    for file, text in manifests.items():
        write(theirs / file, text)
    rights = ("--allow-updates", "1000", "--allow-deletes", "1000")
    ran = world.run("apply", "theirs", "--tree", "theirs", "--auto-approve", *rights, *options)
    must(ran.code == 0, "I7", ran.all)


def _altered(path: Path, **fields: Any) -> None:
    """Write other fields into a plan file, with an integrity digest that is right."""
    known = json.loads(path.read_text(encoding="utf-8"))
    rest = {name: known[name] for name in known if name not in {"format", "format_version", SEAL}}
    path.write_bytes(sealed(FORMAT, FORMAT_VERSION, {**rest, **fields}))


def bits_flip(dice: random.Random, folder: Path) -> int:
    """Apply a plan file, over and over, that is damaged another way each time."""
    with own_store(dice, folder, "file") as world:
        world.tree.edit(6)
        world.settle()
        world.tree.edit(4)
        world.tree.declare("action")
        saved = world.run(*OUT)
        must(saved.code == 0, "I7", saved.all)
        before, whole = world.events(), (folder / PLAN).read_bytes()
        for _ in range(DAMAGES):
            (folder / PLAN).write_bytes(damaged(whole, dice))
            code, said = _applied(folder, dice.choice(((), ("--auto-approve",))))
            must(code in {1, STALE}, "I10", f"{code} {said}")
            must("Traceback" not in said, "I13", said)
        must(world.events() == before, "I8", "a damaged plan was applied")
        (folder / PLAN).write_bytes(whole)
        must(_applied(folder, ())[0] == 0, "I7", "the plan is good as it was written")
        world.settle()
    return DAMAGES


def damaged(content: bytes, dice: random.Random) -> bytes:
    """Return a content with some damage; never the same as it was."""
    at = dice.randrange(len(content))
    end = min(len(content), at + dice.randint(1, 40))
    bit = bytes([content[at] ^ 1 << dice.randrange(8)])
    found = dice.choice(
        (
            content[:at] + bit + content[at + 1 :],
            content[:at] + bit + content[at + 1 :],
            content[:at],
            content[:at] + content[end:],
            content[:end] + content[at:],
            content[:at] + dice.randbytes(end - at) + content[end:],
        )
    )
    return found if found != content else content[1:]


HERE = ("--service", DEFAULT_SERVICE, "--secrets-to", "file:kept")


def _applied(folder: Path, options: tuple[str, ...]) -> tuple[int, str]:
    """Apply the plan file within this process: a start of the program takes far longer."""
    said = io.StringIO()
    with chdir(folder), redirect_stdout(said), redirect_stderr(said):
        code = run(["apply", PLAN, *EVERYTHING, *HERE, *options])
    return code, said.getvalue()


ROWS = (
    Row("F9", "a plan is applied after something moved", something_moved, 1),
    Row("F9b", "a plan file is damaged", bits_flip, 1),
)
