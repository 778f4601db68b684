"""Plan files: read back as they were written, and refused when anything about them is wrong."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconciler.diagnostics import SourceLocation, error, warning
from reconciler.plan.digest import essence, plan_digest
from reconciler.plan.integrity import SEAL, SavedFileError, sealed
from reconciler.plan.model import Adopt, Create, Delete, DeletedBy, Scope, Unmanaged, Update, ref_of
from reconciler.plan.planfile import (
    FORMAT,
    FORMAT_VERSION,
    PlanFile,
    Snapshot,
    looks_like_plan_file,
    plan_file_content,
    read_plan_file,
)
from reconciler.resources.ref import Kind, Shard
from reconciler.state import completed
from tests.builders import (
    ACME,
    GREET,
    PARTNER,
    SHOP,
    WEB,
    a_plan,
    a_ref,
    an_action,
    an_application,
    declared,
    held,
)
from tests.drawings import plan_as_json, plan_as_text
from tests.rows import each_row

PLACE = SourceLocation("shop.yaml", 3, 5)
PLAN = a_plan(
    Create(declared(WEB, critical=True)),
    Update(declared(GREET), held(GREET, an_action(timeout="1s"), changed_by="ana", critical=None)),
    Adopt(
        declared(a_ref(name="spa"), prevent_delete=True, pinned_id="77"),
        held(a_ref(name="spa"), an_application(devMode=True), object_id="77", trees=()),
    ),
    Delete(held(PARTNER, prevent_delete=None, carried={"new": {"a": [1]}}, uncarried=("old",))),
    scope=Scope(tree="shop", prune=True, shard=Shard(2, 4)),
    unmanaged=(
        Unmanaged(a_ref(name="x/y \u202e"), "9", "other"),
        Unmanaged(a_ref(name="z"), "10", None, DeletedBy.PRUNE),
    ),
    blocks=(error("GUARD-X", "s", "r", PLACE, WEB),),
    warnings=(warning("W", "s", "r"),),
)
FILE = PlanFile(
    plan=PLAN,
    tool_version="1.2.3",
    service="sqlite:a.db",
    paths=("manifests",),
    declared="sha256:" + "a" * 64,
    made_at=1_800_000_000,
    expires_at=1_800_086_400,
    warnings=(warning("W2", "\U0001f600", "r", PLACE),),
    revision="c" * 40,
)
CONTENT = plan_file_content(FILE)


def test_a_place_is_longer_only_where_a_variable_is_in_the_value() -> None:
    """Few values have one."""
    sourced = SourceLocation("shop.yaml", 3, 5, "host from reconciler.yaml:4:9")
    file = replace(FILE, warnings=(warning("W2", "s", "r", sourced),))

    assert b'["shop.yaml",3,5]' in CONTENT.translate(None, b" \n")
    assert read_plan_file(plan_file_content(file)).warnings == file.warnings


def resealed(fields: dict[str, Any]) -> bytes:
    """Return a changed file with a digest that is right: what a clever hand would do."""
    rest = {k: v for k, v in fields.items() if k not in {"format", "format_version", SEAL}}
    return sealed(FORMAT, FORMAT_VERSION, rest)


def test_what_is_written_is_read_back() -> None:
    """What was approved is what is compared."""
    file = read_plan_file(CONTENT)

    assert plan_digest(file.plan) == plan_digest(PLAN)
    assert plan_file_content(file) == CONTENT
    assert replace(file, plan=PLAN) == FILE
    assert file.plan.summary == PLAN.summary
    assert file.plan.blocks == PLAN.blocks


def test_a_plan_from_a_file_is_shown_as_it_was() -> None:
    """Show tells in every form what plan told."""
    again = read_plan_file(CONTENT).plan

    assert plan_as_text(again, "sqlite:x.db") == plan_as_text(PLAN, "sqlite:x.db")
    assert plan_as_json(again, "s", ()) == plan_as_json(PLAN, "s", ())


def test_an_undo_is_read_back_and_named_in_its_first_line() -> None:
    """The run that it undoes, and what it keeps, are part of what is approved."""
    plan = replace(PLAN, scope=Scope(undo="r1", keep=(GREET.key,)))
    file = read_plan_file(plan_file_content(replace(FILE, plan=plan)))

    assert file.plan.scope == plan.scope
    assert plan_as_text(file.plan, "s").splitlines()[0].endswith("tree default, undo of run r1")
    assert plan_as_json(file.plan, "s", ())["undo"] == "r1"


def test_the_same_plan_gives_the_same_bytes() -> None:
    """A file that changes without a reason cannot be compared."""
    assert plan_file_content(replace(FILE)) == CONTENT


def test_every_flipped_bit_is_noticed() -> None:
    """Whatever a disk, a network or a hand does to the file."""
    dice = random.Random(1)
    accepted = []
    for _ in range(200):
        position, bit = dice.randrange(len(CONTENT)), dice.randrange(8)
        flipped = bytearray(CONTENT)
        flipped[position] ^= 1 << bit
        try:
            read_plan_file(bytes(flipped))
        except SavedFileError:
            continue
        accepted.append((position, bit))

    assert accepted == []


@each_row("length", [0, 1, 2, 100, len(CONTENT) // 2, len(CONTENT) - 1])
def test_a_file_that_was_cut_short_is_refused(length: int) -> None:
    """Half a plan is none."""
    with pytest.raises(SavedFileError):
        read_plan_file(CONTENT[:length])


def twice(content: bytes) -> bytes:
    return content.replace(b'"tool_version"', b'"made_at": 1,\n "tool_version"', 1)


@each_row(
    ("content", "why"),
    [
        pytest.param(b"", "is not JSON", id="empty"),
        pytest.param(b"[]", "is not a JSON object", id="a list"),
        pytest.param(b"{}", "is not a reconciler-plan file", id="another object"),
        pytest.param(CONTENT + b" ", "integrity", id="something behind it"),
        pytest.param(b"\xef\xbb\xbf" + CONTENT, "JSON", id="a byte order mark"),
        pytest.param(CONTENT.decode().encode("utf-16"), "is not UTF-8", id="UTF-16"),
        pytest.param(twice(CONTENT), "names a field twice", id="a field twice"),
        pytest.param(b'{"a":' * 100_000, "nested too deep", id="deep nesting"),
        pytest.param(b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", "nested too deep", id="deep lists"),
        pytest.param(b'{"a": NaN}', "number", id="a number that is none"),
        pytest.param(b'{"a": 1e999}', "number", id="a number beyond all"),
        pytest.param(b'{"a": "\\u0000"}', "NUL", id="NUL"),
        pytest.param(b'{"a": "\\ud800"}', "an incomplete character", id="a lone surrogate"),
        pytest.param(
            CONTENT.replace(b'"format_version": "1.0"', b'"format_version": "2.0"'),
            "'2.0'",
            id="a later format",
        ),
        pytest.param(
            CONTENT.replace(b'"format_version": "1.0"', b'"format_version": "0.9"'),
            "'0.9'",
            id="an earlier format",
        ),
        pytest.param(
            CONTENT.replace(b'"format": "reconciler-plan"', b'"format": "reconciler-snapshot"'),
            "is not a reconciler-plan file",
            id="a snapshot",
        ),
        pytest.param(CONTENT.replace(b"\n ", b"\n  "), "integrity", id="other blanks"),
        pytest.param(json.dumps(json.loads(CONTENT)).encode(), "integrity", id="on one line"),
    ],
)
def test_what_is_no_plan_file_is_refused_with_the_reason(content: bytes, why: str) -> None:
    """Who reads the reason knows what to do."""
    with pytest.raises(SavedFileError, match=why):
        read_plan_file(content)


def paths_of(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value within a value."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in inside:
        yield (*here, key)
        yield from paths_of(inner, (*here, key))


WRONG: tuple[Any, ...] = (None, True, 0, -1, 2**64, 1.5, "", "x", [], ["x"], {}, {"x": 1})


def with_value(fields: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    """Return the fields with another value; what is off its path is shared, not copied."""
    changed = copy.copy(fields)
    inner: Any = changed
    for key in path[:-1]:
        inner[key] = copy.copy(inner[key])
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.slow
def test_whatever_a_clever_hand_writes_is_refused_or_can_be_shown() -> None:
    """The integrity digest is no signature, so nothing behind it is trusted either."""
    fields = json.loads(CONTENT)
    refused = accepted = 0
    for at, path in enumerate(paths_of(fields)):
        for value in WRONG[at % 2 :: 2]:  # each value in half of the places
            try:
                file = read_plan_file(resealed(with_value(fields, path, value)))
            except SavedFileError:
                refused += 1
                continue
            plan_as_text(file.plan, file.service)
            json.dumps(plan_as_json(file.plan, file.service, file.warnings))
            accepted += 1

    assert refused > 1000
    assert accepted < refused / 5, "labels may be anything, the rest may not"


@each_row(
    ("path", "value", "place"),
    [
        (("made_at",), -1, "made_at"),
        (("expires_at",), 10**16, "expires_at"),
        (("owed_left",), -1, "owed_left"),
        (("changes", 1, "held", "sequence"), -1, r"changes\[1\].held.sequence"),
        (("changes", 0, "resource", "place", 1), 10**16, r"changes\[0\].resource.place\[1\]"),
        (("blocks", 0, "place", 2), -1, r"blocks\[0\].place\[2\]"),
    ],
)
def test_a_number_out_of_range_is_refused(
    path: tuple[str | int, ...], value: int, place: str
) -> None:
    """A report may rely on counts and sequences that are not below zero."""
    changed = with_value(json.loads(CONTENT), path, value)

    with pytest.raises(SavedFileError, match=f"^has a field {place} that is not in range$"):
        read_plan_file(resealed(changed))


def test_a_field_that_nobody_knows_is_refused() -> None:
    """What a later version means by it is not known here."""
    fields = json.loads(CONTENT)
    for path in [(), ("changes", 0), ("changes", 1, "held"), ("changes", 0, "resource")]:
        changed = copy.deepcopy(fields)
        inner = changed
        for key in path:
            inner = inner[key]
        inner["surprise"] = 1
        with pytest.raises(SavedFileError, match="surprise"):
            read_plan_file(resealed(changed))


def test_changes_that_are_not_those_of_the_digest_are_refused() -> None:
    """Shown is only what the digest stands for."""
    fields = json.loads(CONTENT)
    fields["changes"].pop()

    with pytest.raises(SavedFileError, match="digest"):
        read_plan_file(resealed(fields))


def test_a_plan_against_a_snapshot_says_so() -> None:
    """It is shown with the snapshot's date, and never applied."""
    file = replace(FILE, against=Snapshot(1_700_000_000, "sha256:" + "b" * 64))

    assert read_plan_file(plan_file_content(file)).against == file.against


def test_a_plan_file_is_known_by_its_beginning() -> None:
    """Also in a file that ends like one of manifests."""
    assert looks_like_plan_file(CONTENT)
    assert not looks_like_plan_file(b"kind: Action\nmetadata:\n  name: reconciler-plan\n")


def test_no_secret_can_be_in_a_plan_file() -> None:
    """Objects are kept without what proves who they are."""
    text = CONTENT.decode()

    assert "secret_hash" not in text
    assert "client_secret" not in text
    assert str(ACME) not in text


def test_a_plan_of_an_environment_names_it() -> None:
    """The name is no part of the digest."""
    scope = replace(PLAN.scope, environment="staging")
    file = replace(FILE, plan=replace(PLAN, scope=scope))

    assert read_plan_file(plan_file_content(file)).plan.scope == scope
    assert plan_digest(file.plan) == plan_digest(PLAN)


def test_a_project_is_read_with_and_without_the_flags_that_it_leaves_out() -> None:
    """None that is at its default changes a digest."""
    on = {"projectRoleCheck": True}
    found = held(SHOP, {"hasProjectCheck": True})
    plan = a_plan(
        Create(declared(a_ref(Kind.PROJECT, "blog"))),
        Update(completed(declared(SHOP, on), found), found),
    )
    without = a_plan(Update(declared(SHOP, critical=True), replace(held(SHOP), spec={})))

    for each in (plan, without):
        read = read_plan_file(plan_file_content(replace(FILE, plan=each))).plan
        assert [(ref_of(change), essence(change)) for change in read.changes] == [
            (ref_of(change), essence(change)) for change in each.changes
        ]
        assert plan_digest(read) == plan_digest(each)


def test_a_file_in_other_words_is_refused() -> None:
    """There is one form of a plan: two that mean the same would have two digests."""
    fields = json.loads(CONTENT)
    del fields["changes"][0]["kept"]  # which is its default

    with pytest.raises(SavedFileError, match=r"^is not as this version writes it$"):
        read_plan_file(resealed(fields))
