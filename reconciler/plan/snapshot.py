"""Snapshots: what a service held at one moment, in a file, for plans without credentials.

A pull request from a fork gets no token. It can be planned against a snapshot, which holds what
is observed and no secret. Such a plan says how old the snapshot is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.plan.integrity import SavedFileError, sealed, unsealed
from reconciler.plan.saved import object_as_json, read_object_held
from reconciler.resources.ref import ResourceRef, fold
from reconciler.resources.strict_json import Fields, JsonError
from reconciler.state import ObservedObject, ObservedState

FORMAT = "reconciler-snapshot"
FORMAT_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """The state of a service at one moment.

    Attributes:
        service: Its address, for the reader only.
        taken_at: Seconds since the epoch.
        organizations: Folded names of the organizations looked at, or None for all there were.
    """

    state: ObservedState
    tool_version: str
    service: str
    taken_at: int
    organizations: tuple[str, ...] | None

    def observe(self, organizations: Collection[str]) -> ObservedState:
        """Return what was held in these organizations; one that was not looked at is told."""
        names = {fold(name) for name in organizations}
        missing = names.difference(self.organizations) if self.organizations is not None else ()
        state = self.state
        return replace(
            state,
            objects={key: held for key, held in state.objects.items() if key.organization in names},
            incomplete=(
                *state.incomplete,
                *(f"The snapshot does not cover organization {name}." for name in sorted(missing)),
            ),
            doubles=tuple(each for each in state.doubles if each.ref.key.organization in names),
            elsewhere=self._elsewhere(names),
        )

    def _elsewhere(self, names: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return the trees that applied something to organizations of other names."""
        found = {
            name: trees for name, trees in self.state.elsewhere.items() if fold(name) not in names
        }
        for key, held in self.state.objects.items():
            if key.organization not in names and held.trees:
                name = held.ref.organization
                found[name] = found.get(name, frozenset()) | held.trees
        return found


def snapshot_content(file: SnapshotFile) -> bytes:
    """Return the content of a snapshot: the same for the same state, to the byte."""
    state = file.state
    return sealed(
        FORMAT,
        FORMAT_VERSION,
        {
            "tool_version": file.tool_version,
            "taken_at": file.taken_at,
            "instance": state.instance,
            "service": file.service,
            "all": file.organizations is None,
            "organizations": sorted(file.organizations or ()),
            "incomplete": list(state.incomplete),
            "unexpressed": list(state.unexpressed),
            "elsewhere": [
                [name, *sorted(trees)] for name, trees in sorted(state.elsewhere.items())
            ],
            "caller_objects": sorted(state.caller_objects),
            "doubles": [object_as_json(held) for held in sorted(state.doubles, key=_place)],
            "objects": [object_as_json(state.objects[key]) for key in sorted(state.objects)],
        },
    )


def read_snapshot(content: bytes) -> SnapshotFile:
    """Return the snapshot of a content.

    Raises:
        SavedFileError: it is none, of another version, cut short, or not as it was written.
    """
    fields = unsealed(content, FORMAT, FORMAT_VERSION)
    try:
        file = _read(fields)
    except JsonError as fault:
        raise SavedFileError(str(fault)) from None
    if content != snapshot_content(file):
        raise SavedFileError("is not as this version writes it")
    return file


def _read(value: dict[str, Any]) -> SnapshotFile:
    fields = Fields(value)
    is_all, organizations = fields.flag("all"), fields.texts("organizations")
    elsewhere = fields.each("elsewhere", _read_elsewhere)
    callers, doubles = fields.texts("caller_objects"), fields.each("doubles", read_object_held)
    held = fields.each("objects", read_object_held)
    file = SnapshotFile(
        ObservedState(
            fields.text("instance"),
            {each.ref.key: each for each in held},
            fields.texts("incomplete"),
            fields.texts("unexpressed"),
            doubles,
            dict(elsewhere),
            frozenset(callers),
        ),
        fields.text("tool_version"),
        fields.text("service"),
        fields.number("taken_at"),
        None if is_all else organizations,
    )
    fields.end()
    return file


def _read_elsewhere(value: Any) -> tuple[str, frozenset[str]]:
    if isinstance(value, list) and value and all(type(each) is str for each in value):
        return value[0], frozenset(value[1:])
    raise JsonError("has invalid trees of an organization")


def _place(held: ObservedObject) -> tuple[ResourceRef, str]:
    return held.ref.key, held.id
