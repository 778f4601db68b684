"""Snapshots: what a service held at one moment, in a file, for plans without credentials.

A pull request from a fork gets no token, and is planned against a snapshot. It holds no secret.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.plan.integrity import Document, SavedFileError, check_spec, like, sealed, unsealed
from reconciler.resources.capabilities import CAPABILITIES
from reconciler.resources.ref import Kind, fold
from reconciler.resources.strict_json import Count, Seconds
from reconciler.state import ObjectEvent, ObservedObject, ObservedState, Removal

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

    def observe(self, organizations: Collection[str], *, flows: bool = True) -> ObservedState:
        """Return what was held in these organizations; one that was not read is reported."""
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
            name_clashes=tuple(
                each for each in state.name_clashes if each.ref.key.organization in names
            ),
            elsewhere=self._elsewhere(names),
        )

    def generation(self) -> int | None:
        """Return the generation of the service when the snapshot was taken."""
        return self.state.generation

    def histories(self, _: Sequence[str]) -> Iterator[tuple[str, Sequence[ObjectEvent]]]:
        """Yield nothing: no history is in the file."""
        return iter(())

    def removals(self, _: str) -> Sequence[Removal]:
        """Return nothing, likewise."""
        return ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _SnapshotDocument(Document):
    """The fields of a snapshot in the order of the file; ``elsewhere`` has a name, then trees."""

    tool_version: str
    taken_at: Seconds
    instance: str
    service: str
    all: bool
    organizations: tuple[str, ...]
    incomplete: tuple[str, ...]
    unexpressed: tuple[str, ...]
    elsewhere: tuple[tuple[str, ...], ...]
    caller_objects: frozenset[str]
    doubles: tuple[ObservedObject, ...]
    objects: tuple[ObservedObject, ...]
    keeps_history: bool
    knows_audience: bool | None
    capabilities: str
    generation: Count | None
    own_project: str
    unidentified: str
    only_active: frozenset[str]


def snapshot_content(file: SnapshotFile) -> bytes:
    """Return the content of a snapshot: the same for the same state, to the byte."""
    state = file.state
    doubles = sorted(state.name_clashes, key=lambda held: (held.ref.key, held.id))
    document = like(
        _SnapshotDocument,
        file,
        state,
        all=file.organizations is None,
        organizations=tuple(sorted(file.organizations or ())),
        elsewhere=tuple((name, *sorted(state.elsewhere[name])) for name in sorted(state.elsewhere)),
        doubles=tuple(map(_undated, doubles)),
        objects=tuple(_undated(state.objects[key]) for key in sorted(state.objects)),
        only_active=frozenset(state.only_active),
    )
    return sealed(FORMAT, FORMAT_VERSION, document)


def read_snapshot(content: bytes) -> SnapshotFile:
    """Return the snapshot of a content.

    Raises:
        SavedFileError: it is something else, of another version, cut short, or changed.
    """
    document = unsealed(content, FORMAT, FORMAT_VERSION, _SnapshotDocument)
    for held in (*document.objects, *document.doubles):
        check_spec(held.ref.kind, held.spec, whole=False)
    if not all(document.elsewhere):
        raise SavedFileError("has invalid trees of an organization")
    if document.capabilities not in CAPABILITIES:
        raise SavedFileError("is of a service with capabilities that are not known here")
    state = like(
        ObservedState,
        document,
        objects={held.ref.key: held for held in document.objects},
        name_clashes=document.doubles,
        elsewhere={name: frozenset(trees) for name, *trees in document.elsewhere},
        only_active=frozenset(kind for kind in Kind if kind in document.only_active),
    )
    organizations = None if document.all else document.organizations
    file = like(SnapshotFile, document, state=state, organizations=organizations)
    if content != snapshot_content(file):
        raise SavedFileError("is not as this version writes it")
    return file


def _undated(held: ObservedObject) -> ObservedObject:
    """Return an object without the time of its creation: none is to be taken for a new one."""
    return replace(held, created_at="")
