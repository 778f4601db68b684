"""Snapshots: what a service held, without a secret, and what they do not cover is told."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.plan.integrity import SavedFileError, sealed
from reconciler.plan.snapshot import (
    FORMAT,
    FORMAT_VERSION,
    SnapshotFile,
    read_snapshot,
    snapshot_content,
)
from reconciler.resources.normal import LATER
from reconciler.resources.ref import Kind
from reconciler.state import ObservedObject, ObservedState
from tests.builders import ACME, GREET, HOUSE, PARTNER, SHOP, WEB, held, observed
from tests.rows import each_row

OLDER = Path(__file__).parent / "older"

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


def without_audience(found: ObservedObject) -> ObservedObject:
    """Return an object as versions from before this field wrote it."""
    return replace(found, spec={k: v for k, v in found.spec.items() if k != "audience"})


def test_a_snapshot_of_an_older_version_gets_the_defaults_of_later_fields() -> None:
    """A field that was not known then is not a change of today."""
    clash = held(PARTNER, object_id="2")
    today = replace(observed(*HOUSE, held(PARTNER)), name_clashes=(clash,))
    older = replace(
        observed(*HOUSE, without_audience(held(PARTNER))), name_clashes=(without_audience(clash),)
    )
    content = snapshot_content(replace(FILE, state=older))

    assert b"audience" not in content
    assert read_snapshot(content).state == today


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


def test_a_service_of_ours_has_a_snapshot_that_older_versions_read() -> None:
    """They refuse a field that they do not know."""
    later = {"keeps_history", "knows_audience", "own_project", "unidentified"}
    written = json.loads(CONTENT)
    assert not later & written.keys()
    (project,) = [each for each in written["objects"] if each["ref"][0] == "Project"]
    assert project["spec"] == {}


def test_no_object_has_the_time_of_its_creation() -> None:
    """Older versions refuse it. Without it no object is taken for a new one."""
    new = [replace(each, created_at="2026-01-01T00:00:00Z") for each in HOUSE]
    content = snapshot_content(replace(FILE, state=observed(*new)))

    assert content == snapshot_content(replace(FILE, state=observed(*HOUSE)))


def test_a_file_of_an_older_version_is_read() -> None:
    """Version 0.1.0 wrote it; its objects get the fields that are known today."""
    state = read_snapshot((OLDER / "snapshot-0.1.0.json").read_bytes()).state

    specs = [found.spec for found in state.objects.values() if found.ref.kind is Kind.PROJECT]
    assert specs == [LATER[Kind.PROJECT]]


def test_flags_of_a_project_are_read_back() -> None:
    """Those that are set are written."""
    flags = {**LATER[Kind.PROJECT], "projectRoleCheck": True}
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
        ({"own_project": ""}, "is not as this version writes it"),
        ({"elsewhere": [[]]}, "has invalid trees of an organization"),
        ({"capabilities": "x"}, "is of a service with capabilities that are not known here"),
    ],
)
def test_a_snapshot_in_another_form_is_refused(changed: dict[str, object], problem: str) -> None:
    with pytest.raises(SavedFileError, match=f"^{problem}$"):
        read_snapshot(sealed(FORMAT, FORMAT_VERSION, {**json.loads(CONTENT), **changed}))
