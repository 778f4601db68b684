"""The fields that a change alters, for showing. The only module that imports deepdiff.

``==`` on normal forms has already decided that something differs; this says what.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from reconciler.plan.model import Adopt, Change, Create, Delete, Update, lacks_secret
from reconciler.resources.fields import SpecValue
from reconciler.resources.normal import TYPES
from reconciler.resources.oidc import has_client_secret

NAME = "metadata.name"
PREVENT_DELETE = "metadata.preventDelete"
CRITICAL = "metadata.critical"
ACTIVE = "metadata.active"
CREDENTIAL = "clientSecret"
OWNER = "owner"


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
        said = [name for name in names if name in change.resource.written]
        marks = {
            PREVENT_DELETE: change.resource.prevent_delete,
            CRITICAL: change.resource.critical,
        }
        return (
            *(FieldChange(name, None, after=True) for name, is_set in marks.items() if is_set),
            *([FieldChange(ACTIVE, None, after=False)] if change.resource.active is False else ()),
            *(FieldChange(name, None, after[name]) for name in said),
        )
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
        *_metadata_changes(change.resource.ref.name, change),
        *fields,
        *_secret_change(change),
    )


def carried_fields(change: Change) -> tuple[str, ...]:
    """Return the fields that an update sends back as they are: this version does not know them."""
    if isinstance(change, Create | Delete):
        return ()
    return tuple(sorted(change.held.carried))


def _metadata_changes(name: str, change: Change) -> list[FieldChange]:
    if isinstance(change, Create | Delete):
        return []
    found = []
    if change.held.ref.name != name:
        found.append(FieldChange(NAME, change.held.ref.name, name))
    marks = (
        (PREVENT_DELETE, change.held.prevent_delete, change.resource.prevent_delete),
        (CRITICAL, change.held.critical, change.resource.critical),
    )
    found += [
        FieldChange(name, held, wanted)
        for name, held, wanted in marks
        if held is not None and held != wanted
    ]
    active = change.resource.active
    if active not in {None, change.held.active}:
        found.append(FieldChange(ACTIVE, change.held.active, active))
    if change.new_owner:
        found.append(FieldChange(OWNER, change.held.owner or None, change.new_owner))
    return found


def _secret_change(change: Update | Adopt) -> tuple[FieldChange, ...]:
    """Return that an application gets a new secret: before and after are whether it has one.

    Where it moves to a client secret, ``authMethodType`` says so already.
    """
    is_lacking = lacks_secret(change.resource, change.held) and has_client_secret(change.held.spec)
    if not change.new_secret and not is_lacking:
        return ()
    return (FieldChange(CREDENTIAL, not is_lacking, after=True),)
