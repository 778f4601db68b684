"""Snapshots: what a service held, without a secret, and what they do not cover is told."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from reconciler.plan.integrity import SavedFileError, sealed
from reconciler.plan.snapshot import (
    FORMAT,
    FORMAT_VERSION,
    SnapshotFile,
    read_snapshot,
    snapshot_content,
)
from reconciler.resources.normal import LEFT_AS_HELD
from reconciler.resources.ref import Kind
from reconciler.state import ObservedState
from tests.builders import ACME, GREET, HOUSE, SHOP, WEB, held, observed
from tests.rows import each_row

STATE = replace(
    observed(*HOUSE, held(WEB), held(GREET)),
    unexpressed=("An API application.",),
    name_clashes=(held(WEB, object_id="2"), held(WEB, object_id="3")),
    elsewhere={"globex": frozenset({"b", "a"})},
    caller_objects=frozenset({"9"}),
)
FILE = SnapshotFile(STATE, "1.2.3", "sqlite:a.db", 1_800_000_000, None)
CONTENT = snapshot_content(FILE)


def test_what_was_held_is_read_back() -> None:
    """A plan against it is the plan against the service."""
    assert read_snapshot(CONTENT) == FILE


def test_the_order_of_objects_does_not_show() -> None:
    """Two snapshots of the same state are the same file but for the date."""
    turned = replace(STATE, objects=dict(reversed(list(STATE.objects.items()))))

    assert snapshot_content(replace(FILE, state=turned)) == CONTENT


def test_every_flipped_bit_is_noticed() -> None:
    """A plan against a changed snapshot would deceive its reader."""
    dice = random.Random(2)
    accepted = []
    for _ in range(300):
        flipped = bytearray(CONTENT)
        position, bit = dice.randrange(len(CONTENT)), dice.randrange(8)
        flipped[position] ^= 1 << bit
        try:
            read_snapshot(bytes(flipped))
        except SavedFileError:
            continue
        accepted.append((position, bit))

    assert accepted == []


def test_only_the_organizations_asked_for_are_observed() -> None:
    """The scope of a run is that of its manifests, here as well."""
    other = held(ACME._replace(organization="other", name="other"))
    file = replace(FILE, state=observed(*HOUSE, other))

    assert set(file.observe(["ACME"]).objects) == {found.ref.key for found in HOUSE}


def test_an_organization_that_was_not_looked_at_blocks_the_plan() -> None:
    """That it is not in the file does not mean that it is not there."""
    file = replace(FILE, organizations=("acme",))

    assert file.observe(["acme"]).incomplete == ()
    assert file.observe(["acme", "Globex"]).incomplete == (
        "The snapshot does not cover organization globex.",
    )
    assert FILE.observe(["globex"]) == ObservedState(
        "instance-1",
        {},
        unexpressed=STATE.unexpressed,
        elsewhere={"acme": frozenset({"default"})},
        caller_objects=STATE.caller_objects,
    )


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("taken_at", {}, "taken_at"),
        ("objects", {"sequence": -1}, r"objects\[0\].sequence"),
        ("doubles", {"sequence": -1}, r"doubles\[0\].sequence"),
    ],
)
def test_a_number_out_of_range_is_refused(name: str, change: dict[str, int], place: str) -> None:
    """Its integrity digest may be right even so: a person can make it again."""
    fields = json.loads(CONTENT)
    fields[name] = [fields[name][0] | change, *fields[name][1:]] if change else 10**16

    with pytest.raises(SavedFileError, match=f"^has a field {place} that is not in range$"):
        read_snapshot(sealed(FORMAT, FORMAT_VERSION, fields))


@each_row("knows_audience", [True, False, None])
@each_row("keeps_history", [True, False])
def test_the_abilities_of_the_service_are_read_back(
    *, keeps_history: bool, knows_audience: bool | None
) -> None:
    """The advice of a plan depends on them."""
    state = replace(
        STATE,
        keeps_history=keeps_history,
        knows_audience=knows_audience,
        generation=4,
        own_project="277",
        unidentified="It refused: no.",
    )

    assert read_snapshot(snapshot_content(replace(FILE, state=state))).state == state


def test_no_object_has_the_time_of_its_creation() -> None:
    """So no object is taken for a new one."""
    new = [replace(each, created_at="2026-01-01T00:00:00Z") for each in HOUSE]
    content = snapshot_content(replace(FILE, state=observed(*new)))

    assert content == snapshot_content(replace(FILE, state=observed(*HOUSE)))


def test_flags_of_a_project_are_read_back() -> None:
    """Those at their default, too."""
    flags = {**LEFT_AS_HELD[Kind.PROJECT], "projectRoleCheck": True}
    state = observed(held(ACME), held(SHOP, flags))

    assert read_snapshot(snapshot_content(replace(FILE, state=state))).state == state


@pytest.mark.parametrize("content", [b"", b"{}", CONTENT[:-5], CONTENT + b"\n"])
def test_what_is_no_snapshot_is_refused(content: bytes) -> None:
    """Nothing is guessed."""
    with pytest.raises(SavedFileError):
        read_snapshot(content)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"organizations": ["acme"]}, "is not as this version writes it"),
        ({"elsewhere": [[]]}, "has invalid trees of an organization"),
        ({"capabilities": "x"}, "is of a service with capabilities that are not known here"),
    ],
)
def test_a_snapshot_in_another_form_is_refused(changed: dict[str, object], problem: str) -> None:
    with pytest.raises(SavedFileError, match=f"^{problem}$"):
        read_snapshot(sealed(FORMAT, FORMAT_VERSION, {**json.loads(CONTENT), **changed}))


@each_row("name", sorted(json.loads(CONTENT).keys() - {"format", "format_version", "integrity"}))
def test_a_snapshot_without_one_of_its_fields_is_refused(name: str) -> None:
    """There is one form; a field that is missing is not taken to be at a default."""
    fields = json.loads(CONTENT)
    del fields[name]

    with pytest.raises(SavedFileError, match=name):
        read_snapshot(sealed(FORMAT, FORMAT_VERSION, fields))
