"""Guards against locking people out: what must not be lost or weakened unless it is named."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from reconciler.diagnostics import Diagnostic, error
from reconciler.plan.model import Change, Create, Delete, held_of, ref_of
from reconciler.plan.risk import risks_of
from reconciler.resources.ref import Kind, ResourceRef, fold, owner_of
from reconciler.state import ObservedObject, Resource


def lockouts(
    changes: Sequence[Change], own: Collection[str], broken: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield why changes may lock people out.

    ``own`` are the ids of what the caller signs in with; ``broken`` are the folded addresses of
    the objects for which the glass was broken.
    """
    for change in changes:
        held = held_of(change)
        if held is None or _is_named(change, broken):
            continue
        if held.id in own:
            yield from _own_access(change, held)
        elif held.critical or (not isinstance(change, Delete) and change.resource.critical):
            yield from _critical(change)
    yield from _made_anew(changes, broken)


def _is_named(change: Change, broken: Collection[str]) -> bool:
    """Return whether the glass was broken for an object, by its old name or by its new one."""
    return any(address in broken for address in addresses_of(change))


def addresses_of(change: Change) -> tuple[str, ...]:
    """Return the folded addresses of an object: after a change, and before it."""
    held = held_of(change)
    refs = [ref_of(change), *([held.ref] if held else [])]
    return tuple(fold(ref.address) for ref in refs)


def _critical(change: Change) -> Iterator[Diagnostic]:
    why = _harm(change)
    if why:
        done = "removed" if isinstance(change, Delete) else "weakened"
        yield error(
            "GUARD-CRITICAL",
            f"a critical object would be {done}",
            f"{ref_of(change)} was declared with metadata.critical; its risks here: {why}. "
            f"{_break_glass(ref_of(change))}",
            ref=ref_of(change),
        )


def _own_access(change: Change, held: ObservedObject) -> Iterator[Diagnostic]:
    why = _harm(change)
    if why:
        yield error(
            "GUARD-OWN-ACCESS",
            "the plan touches what its own caller signs in with",
            f"{ref_of(change)} (id {held.id}) is what this run signs in with; its risks here: "
            f"{why}. "
            f"{_break_glass(ref_of(change))}",
            ref=ref_of(change),
        )


def _harm(change: Change) -> str:
    return ", ".join(dict.fromkeys(risk.name for risk in risks_of(change)))


def _break_glass(ref: ResourceRef) -> str:
    return (
        f"If that is meant, allow just that: --break-glass {shlex.quote(f'{ref.address}=REASON')}."
    )


def _made_anew(changes: Sequence[Change], broken: Collection[str]) -> Iterator[Diagnostic]:
    """Yield applications that are deleted while another, much alike, is created."""
    made = [
        change.resource
        for change in changes
        if isinstance(change, Create) and change.resource.ref.kind is Kind.OIDC_APPLICATION
    ]
    if not made:
        return
    alike: dict[tuple[object, ...], Resource] = {}
    for resource in made:
        for mark in _marks(resource.ref, resource.spec["redirectUris"]):
            alike.setdefault(mark, resource)
    for change in changes:
        if not isinstance(change, Delete) or change.held.ref.kind is not Kind.OIDC_APPLICATION:
            continue
        held = change.held
        marks = _marks(held.ref, held.spec.get("redirectUris", ()))
        twin = next((alike[mark] for mark in marks if mark in alike), None)
        twin = twin or next((one for one in made if is_same_content(one, held)), None)
        if twin and not {fold(held.ref.address), fold(twin.ref.address)} & set(broken):
            yield _recreated(held, twin)


def _marks(ref: ResourceRef, uris: Iterable[str]) -> Iterator[tuple[object, ...]]:
    """Yield what two applications do not share by chance: the name; in one project, a URI."""
    yield ("name", ref.key.name)
    for uri in uris:
        yield ("uri", owner_of(ref.key), uri)


def is_same_content(made: Resource, held: ObservedObject) -> bool:
    """Return whether two names of one project or organization stand for the same fields."""
    return made.spec == held.spec and owner_of(made.ref.key) == owner_of(held.ref.key)


def _recreated(held: ObservedObject, twin: Resource) -> Diagnostic:
    moved = owner_of(held.ref.key) != owner_of(twin.ref.key)
    instead = (
        "An application cannot move to another project and keep it."
        if moved
        else f"To rename it and keep both, write metadata.id: {held.id!r} in the manifest."
    )
    return error(
        "GUARD-MADE-ANEW",
        "an application would be deleted and created again",
        f"{held.ref} would be deleted and {twin.ref} created in its place: its client id "
        f"{held.client_id} and its secret would end, and whatever is deployed with them could no "
        f"longer sign in. {instead} {_break_glass(held.ref)}",
        twin.source.place("metadata", "name"),
        held.ref,
    )
