"""The fields that a change alters, for showing, and the lists that a server keeps all the same.

``==`` on normal forms has already decided that something differs; this says what. It is the only
module that imports deepdiff.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from reconciler.diagnostics import Diagnostic, warning
from reconciler.kinds.rules import RULES
from reconciler.plan.model import (
    Change,
    Create,
    Delete,
    Pair,
    Rewrite,
    gives_back,
    lacks_secret,
    makes_secret,
    signs_in_with_secret,
)
from reconciler.resources.fields import Spec, SpecValue
from reconciler.resources.normal import TYPES
from reconciler.state import ObservedObject, Resource, is_in_step

NAME = "metadata.name"
PREVENT_DELETE = "metadata.preventDelete"
CRITICAL = "metadata.critical"
IGNORE = "metadata.ignore"
ACTIVE = "metadata.active"
CREDENTIAL = "clientSecret"
OWNER = "owner"
NEW: Spec = {PREVENT_DELETE: False, CRITICAL: False, IGNORE: [], ACTIVE: True}
"""The metadata of an object when it is made, by the names that reports give it."""


class ItemChange(NamedTuple):
    """One item that a list lost or gained.

    Attributes:
        position: From 0, in the old list for an item it lost, in the new list for one it gained.
    """

    position: int
    value: object
    added: bool


@dataclass(frozen=True)
class FieldChange:
    """One field, by the name its manifest uses, before and after.

    Attributes:
        reset: The manifest does not say the field, and the full update takes it back to its
            default.
        kept: This server does not empty the list: it stays as it is.
    """

    name: str
    before: SpecValue
    after: SpecValue
    reset: bool = False
    kept: bool = False

    @cached_property
    def items(self) -> tuple[ItemChange, ...]:
        """Return the items that a list lost and gained, by position; none for other values."""
        if not isinstance(self.before, list) or not isinstance(self.after, list):
            return ()
        from deepdiff import DeepDiff

        found: list[ItemChange] = []
        for kind, levels in DeepDiff(self.before, self.after, view="tree").items():
            for level in levels:
                before_at, after_at = (
                    int(level.path(output_format="list", use_t2=is_after)[-1])
                    for is_after in (False, True)
                )
                if kind != "iterable_item_added":
                    found.append(ItemChange(before_at, level.t1, added=False))
                if kind != "iterable_item_removed":
                    found.append(ItemChange(after_at, level.t2, added=True))
        return tuple(sorted(found, key=lambda item: (item.position, item.added)))


def field_changes(change: Change) -> tuple[FieldChange, ...]:
    """Return the fields that a change alters, in the order of their kind.

    A create shows what the manifest says; a delete shows nothing but what is lost. They are
    computed once and kept by the change, because causes, guards and reports ask for them.
    """
    kept = vars(change)
    if "fields" not in kept:
        kept["fields"] = _computed(change)
    fields: tuple[FieldChange, ...] = kept["fields"]
    return fields


def _computed(change: Change) -> tuple[FieldChange, ...]:
    if isinstance(change, Delete):
        return ()
    after, names = change.resource.spec, TYPES[change.resource.ref.kind]
    if isinstance(change, Create):
        metadata = metadata_of(change.resource)
        said = {name: metadata[name] for name in NEW if metadata[name] not in (None, NEW[name])}
        said |= {name: after[name] for name in names if name in change.resource.written}
        return tuple(FieldChange(name, None, value) for name, value in said.items())
    before = change.held.spec
    fields = [
        FieldChange(
            name,
            before.get(name),
            after.get(name),
            reset=name not in change.resource.written,
            kept=name in change.kept,
        )
        for name in names
        if before.get(name) != after.get(name)
    ]
    return (
        *_metadata_changes(change),
        *fields,
        *_secret_change(change),
    )


OPTIONS = frozenset[str]().union(*(row.console for row in RULES.values()))
"""Carried fields that a ZITADEL has and no manifest declares."""

OPTIONS_IN_WORDS = "options set in the console"


def carried_fields(change: Change) -> tuple[str, ...]:
    """Return the fields that no manifest declares and an update sends back as they are."""
    if isinstance(change, Create | Delete):
        return ()
    return tuple(sorted(change.held.carried))


def metadata_of(one: Resource | ObservedObject) -> Spec:
    """Return the metadata that something has.

    None stands for a mark that a service does not record, and a state that no manifest says.
    """
    return {
        NAME: one.ref.name,
        PREVENT_DELETE: one.prevent_delete,
        CRITICAL: one.critical,
        IGNORE: None if one.ignored is None else sorted(one.ignored),
        ACTIVE: one.active,
    }


def _metadata_changes(change: Rewrite) -> Iterator[FieldChange]:
    resource, held = change.resource, change.held
    after = metadata_of(resource)
    for name, before in metadata_of(held).items():
        if None not in (before, after[name]) and before != after[name]:
            yield FieldChange(name, before, after[name])
    if gives_back(resource, held):
        yield FieldChange(OWNER, held.owner or None, resource.owner or None)
    elif change.new_owner:
        yield FieldChange(OWNER, held.owner or None, change.new_owner)


def _secret_change(change: Rewrite) -> Iterator[FieldChange]:
    """Yield that an object gets a new secret: before and after are whether it has one.

    Where it moves to a client secret, its fields say so already.
    """
    is_lacking = lacks_secret(change.resource, change.held) and signs_in_with_secret(change.held)
    if change.new_secret or is_lacking:
        yield FieldChange(CREDENTIAL, not is_lacking, after=True)


# From 4.0 on, a ZITADEL keeps a list that an update leaves out; before, it was emptied. Only
# the generation of the server shows which it is, so it is asked for only where a plan empties a
# list.
KEPT_FROM = 4
"""The first generation that keeps such lists."""

REMEDY = (
    "ZITADEL from 4.0 on keeps a list that an update leaves empty. Write at least one entry in "
    "the manifest (a new entry replaces the held ones), or remove the application and create it "
    "again, which gives it a new client id and secret."
)


def empties_a_list(pairs: Iterable[Pair]) -> bool:
    """Return whether a plan empties a list that a ZITADEL might keep."""
    return any(held is not None and emptied(resource, held) for resource, held in pairs)


def emptied(resource: Resource, held: ObservedObject) -> frozenset[str]:
    """Return the lists that hold something and are declared empty."""
    lists = RULES[resource.ref.kind].kept_lists
    return frozenset(name for name in lists if held.spec.get(name) and not resource.spec.get(name))


def kept_lists(resource: Resource, held: ObservedObject, generation: int | None) -> frozenset[str]:
    """Return the lists that are declared empty, and that a server will not empty.

    ``generation`` is 0 or None where it is not known or the service is no ZITADEL: then none is.
    """
    return emptied(resource, held) if (generation or 0) >= KEPT_FROM else frozenset()


def is_not_sent(change: Change) -> bool:
    """Return whether everything that a change would do is to empty lists that are kept."""
    if not isinstance(change, Rewrite) or not change.kept:
        return False
    if change.new_owner or makes_secret(change):
        return False
    return is_in_step(replace(change.resource, spec=spec_after(change)), change.held)


def spec_after(change: Create | Rewrite) -> Spec:
    """Return the fields that an object has after a change: those declared, and kept lists."""
    spec = change.resource.spec
    if isinstance(change, Create) or not change.kept:
        return spec
    return {**spec, **{name: change.held.spec[name] for name in change.kept}}


def kept_notes(changes: Sequence[Change], code: str) -> Iterator[Diagnostic]:
    """Yield a warning with this code for each change with lists that the server keeps."""
    for change in changes:
        if isinstance(change, Rewrite) and change.kept:
            names = ", ".join(sorted(change.kept))
            sends = "; nothing else differs, so nothing is sent" if is_not_sent(change) else ""
            yield warning(
                code,
                f"this server will not empty {names}{sends}",
                f"{change.resource.ref}: {REMEDY}",
                change.resource.source.place("spec", min(change.kept)),
                change.resource.ref,
            )
