"""The service answers with what no service of ours would answer."""

from __future__ import annotations

import copy
import json
import random
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.faults.catalogue import Row, ViolationError, must
from tests.faults.world import APPLY, World, a_server

MEGABYTE = 1 << 20
MORE_MEMORY = 64 * MEGABYTE
ENDS_WITHIN = 90.0
REFUSED = frozenset({1, 3, 4, 5})
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n%scontent-length: %d\r\n\r\n"
LISTING = b"/objects"
Json = dict[str, Any]
Spoil = Callable[[bytes, bytes], bytes]


def answer(content: bytes, *, kind: bytes = b"application/json", more: bytes = b"") -> bytes:
    """Return an answer with a content."""
    return HEAD % (kind, more, len(content)) + content


def _content(whole: bytes) -> bytes:
    return whole.partition(b"\r\n\r\n")[2]


# Contents that are no answer at all.

LARGER = HEAD % (b"application/json", b"", 1 << 31)
SAID = (
    b"",
    b"<html>sign in</html>",
    b"[" * 200_000,
    b'{"objects": [' + b"{}," * 200_000 + b'{}], "next": ""}',
    b'{"objects": [' + b"{}," * 4_000_000 + b'{}], "next": ""}',
    b'{"objects": "' + b"x" * 8_000_000 + b'"}',
    b"{}" + b" " * 40_000_000,
)
CHANGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda content: answer(content[:-30]),
    lambda content: answer(b'{"next": "", "objects": [], ' + content[1:]),
    lambda content: answer(b"[" + content + b"]"),
    lambda content: answer(content, kind=b"text/plain"),
    lambda content: answer(content.replace(b'"', b'"\\ud800', 3)),
    lambda content: LARGER + content,
)


def no_answer(dice: random.Random) -> Spoil:
    """Answer with something that is not a JSON object."""
    change = dice.choice(CHANGES)
    said = answer(dice.choice(SAID), kind=dice.choice((b"application/json", b"text/html")))
    bomb = answer(b"\x1f\x8b" + dice.randbytes(500), more=b"content-encoding: gzip\r\n")
    return dice.choice((lambda _, whole: change(_content(whole)), _always(said), _always(bomb)))


def _always(spoiled: bytes) -> Spoil:
    return lambda *_: spoiled


# Listings that cannot be true.


def _twice(page: Json, dice: random.Random) -> None:
    page["objects"].append(dice.choice(page["objects"]))


def _no_id(page: Json, dice: random.Random) -> None:
    del dice.choice(page["objects"])["id"]


def _odd_id(page: Json, dice: random.Random) -> None:
    odd = ("../../admin", "a/b", "", ".", "..", "%2e%2e", "1?x=1", "x" * 300, 7, None, "1\n2")
    dice.choice(page["objects"])["id"] = dice.choice(odd)


def _one_id(page: Json, dice: random.Random) -> None:
    first, second = dice.sample(page["objects"], 2)
    first["id"] = second["id"]


def _no_kind(page: Json, dice: random.Random) -> None:
    dice.choice(page["objects"])["kind"] = dice.choice(("Robot", "", None, 3, []))


def _other_owner(page: Json, dice: random.Random) -> None:
    dice.choice(page["objects"])["organizationId"] = dice.choice(("77", "", None))


def _no_spec(page: Json, dice: random.Random) -> None:
    one = dice.choice(page["objects"])
    one[dice.choice(("spec", "details"))] = dice.choice((None, [], "x", 1))


def _no_sequence(page: Json, dice: random.Random) -> None:
    wrong = (None, -1, "-1", "1e3", "x", 1.5, "9" * 30, 5)
    dice.choice(page["objects"])["details"]["sequence"] = dice.choice(wrong)


def _no_list(page: Json, dice: random.Random) -> None:
    page["objects"] = dice.choice((None, {}, "x", 0, [1], [[]], ["x"]))


def _no_next(page: Json, dice: random.Random) -> None:
    page["next"] = dice.choice((None, 3, [], {}))


def _same_again(page: Json, dice: random.Random) -> None:
    page["next"] = dice.choice(("1", page["objects"][-1]["id"]))


def _ever_on(page: Json, dice: random.Random) -> None:
    page["next"] = str(dice.randrange(1 << 60))


def _ever_new(page: Json, dice: random.Random) -> None:
    extra = copy.deepcopy(page["objects"][-1])
    extra["id"] = str(dice.randrange(1 << 60))
    extra["name"] = f"n{extra['id']}"
    page["objects"] = [extra]
    _ever_on(page, dice)


UNTRUE: tuple[Callable[[Json, random.Random], None], ...] = (
    _twice, _no_id, _odd_id, _one_id, _no_kind, _other_owner, _no_spec, _no_sequence, _no_list,
    _no_next, _same_again, _ever_on, _ever_new,
)  # fmt: skip


def untrue(dice: random.Random) -> Spoil:
    """Answer the listing with a page that contradicts itself, or the interface."""
    change, kept = dice.choice(UNTRUE), list[bytes]()

    def spoil(first: bytes, whole: bytes) -> bytes:
        del first
        kept.append(_content(whole))
        page = json.loads(kept[0])  # further on, the true service has no more
        change(page, dice)
        return answer(json.dumps(page).encode())

    return spoil


def _spoil_listing(spoil: Spoil) -> Spoil:
    return lambda first, whole: spoil(first, whole) if LISTING in first else whole


def listings_are_untrue(dice: random.Random, folder: Path) -> int:
    """Apply, over and over, against listings that contradict themselves."""
    return _spoiled(dice, folder, [untrue(dice) for _ in range(5)])


def listings_are_garbage(dice: random.Random, folder: Path) -> int:
    """Apply against a listing that cannot be read; it is asked for until time is up."""
    return _spoiled(dice, folder, [no_answer(dice)])


def _spoiled(dice: random.Random, folder: Path, spoils: Sequence[Spoil]) -> int:
    """Apply against each listing: nothing is written. Then apply against the true one."""
    with a_server(dice, folder) as world:
        assert world.proxy
        assert world.server
        world.tree.declare("secret", "public", "action", "idp")
        world.settle()
        usual = _memory(world, APPLY)[1]
        world.tree.edit(4)
        world.tree.declare("action")
        before = world.server.event_count()
        for spoil in spoils:
            world.proxy.spoil = _spoil_listing(spoil)
            code, memory, said = _memory(world, APPLY)
            tale = f"{code} {said}"
            must(code in REFUSED, "I10", tale)
            must("Traceback" not in said, "I13", tale)
            must(world.server.event_count() == before, "I8", tale)
            must(memory < usual + MORE_MEMORY, "I14", f"{memory - usual} bytes: {tale}")
        world.proxy.spoil = _as_it_was
        world.settle()
    return len(spoils)


def _as_it_was(first: bytes, whole: bytes) -> bytes:
    del first
    return whole


def _memory(world: World, arguments: tuple[str, ...]) -> tuple[int, int, str]:
    """Run the program; return its exit code, the most memory it took, and what it said."""
    with world.started(*arguments) as process:
        try:
            said = "".join(process.communicate(ENDS_WITHIN))
        except subprocess.TimeoutExpired as endless:
            raise ViolationError("I9", "the program does not end") from endless
    return process.wait(), process.peak, said


ROWS = (
    Row("F7", "listings contradict themselves", listings_are_untrue, 1),
    Row("F7b", "listings are garbage", listings_are_garbage, 0),
)
