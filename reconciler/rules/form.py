"""The form of a kind's rules: what judging manifests and plans may ask of a kind.

Rules see plain values: specs, resources, observed objects. They know no plan and no manifest.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from reconciler.diagnostics import Diagnostic
from reconciler.resources.fields import Spec
from reconciler.resources.ref import ResourceRef
from reconciler.rules.risks import Removal, Rule
from reconciler.state import DesiredState, ObjectEvent, ObservedObject, ObservedState, Resource


class CompileError(NamedTuple):
    """Reason why a script does not compile, with its line and column, from 1."""

    message: str
    line: int
    column: int


Compile: TypeAlias = Callable[[str, str], CompileError | bool]
"""Return whether a script defines a function of a name, or why it does not compile."""


class Found(NamedTuple):
    """A finding about a manifest, and the path of the value that it is about.

    Attributes:
        line: Line within that value, from 1; 0 for the value as a whole.
        column: Likewise.
    """

    problem: Diagnostic
    path: tuple[str | int, ...]
    line: int = 0
    column: int = 0


class Planned(NamedTuple):
    """What a plan does to the objects of one kind, in its order.

    Attributes:
        written: What is created, without an object, and what is updated; not what sends nothing.
        deleted: What is deleted.
        environment: The one that is planned; empty for none.
    """

    written: list[tuple[Resource, ObservedObject | None]]
    deleted: list[ObservedObject]
    environment: str = ""

    @property
    def updated(self) -> Sequence[tuple[Resource, ObservedObject]]:
        """Return what is updated."""
        return [(resource, held) for resource, held in self.written if held is not None]


def _nothing(*_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class KindRules:
    """The rules of one kind; a kind that has nothing of its own has the defaults.

    Attributes:
        risks: The changes of its fields that are risks, in any order.
        guarded: Fields that decide who gets in: to ignore one is a risk.
        removal: The risk of deleting an object.
        new_against: Values that a new object is held against, where those are not the defaults.
        problems: Returns the keys of problems that a service will report of a spec.
        problem_texts: What each means, by its key.
        findings: Returns what is wrong or dangerous about one resource, beside its spec as it is
            written.
        guards: Returns why a plan must not be applied. What is among the folded addresses is let
            through by ``--break-glass``.
        advice: Returns what a reader of a plan should know.
        kept_lists: The lists that a ZITADEL from 4.0 on keeps where an update leaves them empty.
        stays_active: Why a service may be unable to deactivate an object.
        console: Fields that a ZITADEL has and no manifest declares, and that updates send back.
        ids_named: Returns the ids of other objects that events name.
        with_specs: Returns events of an object with its whole spec; names of others are by id.
    """

    risks: Sequence[Rule] = ()
    guarded: frozenset[str] = frozenset()
    removal: Removal | None = None
    new_against: Spec = field(default_factory=dict)
    problems: Callable[[Spec], tuple[str, ...]] = _nothing
    problem_texts: Mapping[str, str] = field(default_factory=dict)
    findings: Callable[[Resource, Spec, Compile], Iterable[Found]] = _nothing
    guards: Callable[[Planned, ObservedState, Collection[str]], Iterable[Diagnostic]] = _nothing
    advice: Callable[[Planned, DesiredState, ObservedState], Iterable[Diagnostic]] = _nothing
    kept_lists: Sequence[str] = ()
    stays_active: str = ""
    console: frozenset[str] = frozenset()
    ids_named: Callable[[Sequence[ObjectEvent]], Iterable[str]] = _nothing
    with_specs: Callable[[Sequence[ObjectEvent], Mapping[str, str]], Sequence[ObjectEvent]] = (
        lambda events, _: events
    )


def break_glass(ref: ResourceRef) -> str:
    """Return the sentence that names the flag which lets one object pass."""
    return (
        f"If that is meant, allow just that: --break-glass {shlex.quote(f'{ref.address}=REASON')}."
    )


def place_of_id(environment: str) -> str:
    """Return where metadata.id is written, for a sentence."""
    if not environment:
        return "the manifest"
    return f"the overlay of environment {environment}, because each environment has ids of its own"


def place_of(resource: Resource) -> str:
    """Return a resource with its place, for a sentence."""
    return f"{resource.ref} ({resource.source.place('metadata', 'name')})"
