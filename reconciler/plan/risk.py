"""Dangers of a change, as classes with stable names: a reviewer reads them first.

A risk is no verdict: it says what may become weaker, go elsewhere or stop. Problems that the
service itself will report are here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from reconciler.kinds.rules import RULES
from reconciler.plan.diff import (
    ACTIVE,
    CREDENTIAL,
    CRITICAL,
    IGNORE,
    PREVENT_DELETE,
    FieldChange,
    metadata_of,
    spec_after,
)
from reconciler.plan.model import Change, Create, Delete, Rewrite, lacks_secret
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import Kind
from reconciler.rules.risks import SEVERE, Rule
from reconciler.state import Resource


class Risk(NamedTuple):
    """One risk of one change: its stable name, the field it comes from, what it means."""

    name: str
    field: str
    sentence: str


LIFTED = Risk("protection-lifted", "", "a protection that was asked for is taken away")
UNWATCHED = Risk(
    "field-unwatched",
    IGNORE,
    "a field that decides who gets in is left to others: its changes are no longer shown or undone",
)
REPLACED = Risk(
    "secret-replaced",
    CREDENTIAL,
    "the present secret ends at once: what is deployed with it is refused",
)
REACTIVATED = Risk(
    "reactivated", ACTIVE, "what was switched off, perhaps for a reason, works again"
)
DEACTIVATED = Risk(
    "deactivated",
    ACTIVE,
    "what relies on it stops until it is reactivated: sign-ins fail, scripts do not run",
)

OF_EVERY_KIND = {950: LIFTED, 940: REPLACED, 930: REACTIVATED, 920: DEACTIVATED, 900: UNWATCHED}
"""The classes of marks and secrets, by their danger: no rule of a kind finds them."""

_KNOWN: Mapping[str, tuple[int, str]] = {
    **{risk.name: (danger, risk.sentence) for danger, risk in OF_EVERY_KIND.items()},
    **{
        each.name: (each.danger, each.sentence)
        for row in RULES.values()
        for each in (*row.risks, row.removal)
        if each is not None
    },
}

MEANINGS: Mapping[str, str] = {
    name: _KNOWN[name][1] for name in sorted(_KNOWN, key=lambda name: -_KNOWN[name][0])
}
"""The meaning of each risk class there is, most dangerous first."""


PROBLEMS: Mapping[str, str] = {
    key: text for row in RULES.values() for key, text in row.problem_texts.items()
}
"""Keys under which the service reports problems of an object, and what each means."""


def is_severe(name: str) -> bool:
    """Return whether a class loses something, weakens a protection, or switches an object.

    The others change or stop what is deployed.
    """
    return _KNOWN[name][0] >= SEVERE


# Each field of a rule, as the risk that it finds.
_BY_KIND: Mapping[Kind, list[tuple[Risk, Rule]]] = {
    kind: [
        (Risk(rule.name, name, rule.sentence), rule)
        for rule in sorted(row.risks, key=lambda rule: -rule.danger)
        for name in rule.fields
    ]
    for kind, row in RULES.items()
}
_BEFORE_NEW: Mapping[Kind, Spec] = {
    kind: {**DEFAULTS[kind], **row.new_against} for kind, row in RULES.items()
}


def risks_of(change: Change) -> tuple[Risk, ...]:
    """Return the risks of a change, most dangerous first."""
    if isinstance(change, Delete):
        return removal_risk(change.held.ref.kind)
    kind, after = change.resource.ref.kind, spec_after(change)
    if isinstance(change, Create):
        asked, before = [each for each in _BY_KIND[kind] if each[1].also_new], _BEFORE_NEW[kind]
        beside = _unwatched(change.resource, frozenset())
    else:
        asked, before, beside = _BY_KIND[kind], change.held.spec, _beside_the_spec(change)
    found = (
        risk
        for risk, rule in asked
        # A field that is not declared stays as it is held.
        if risk.field in after and rule.test(before.get(risk.field), after[risk.field])
    )
    return (*beside, *found)


def risks_of_fields(kind: Kind, fields: Iterable[FieldChange]) -> tuple[Risk, ...]:
    """Return the risks of fields that changed on the service, most dangerous first."""
    changed = {each.name: each for each in fields}
    state = [
        REACTIVATED if changed[name].after else DEACTIVATED for name in changed if name == ACTIVE
    ]
    found = (
        risk
        for risk, rule in _BY_KIND[kind]
        if (each := changed.get(risk.field)) and rule.test(each.before, each.after)
    )
    return (*state, *found)


def removal_risk(kind: Kind) -> tuple[Risk, ...]:
    """Return what is lost with an object of a kind."""
    lost = RULES[kind].removal
    return (Risk(lost.name, "", lost.sentence),) if lost else ()


def _beside_the_spec(change: Rewrite) -> Iterator[Risk]:
    resource, held = change.resource, change.held
    before, after = metadata_of(held), metadata_of(resource)
    for name in (PREVENT_DELETE, CRITICAL):
        if before[name] and not after[name]:
            yield LIFTED._replace(field=name)
    yield from _unwatched(resource, held.ignored or frozenset())
    if change.new_secret and not lacks_secret(resource, held):
        yield REPLACED
    if resource.active not in {None, held.active}:  # a state that no manifest says stays
        yield REACTIVATED if resource.active else DEACTIVATED


def _unwatched(resource: Resource, before: frozenset[str]) -> Iterator[Risk]:
    """Yield that fields which decide who gets in are ignored, and were not before."""
    if (resource.ignored - before) & RULES[resource.ref.kind].guarded:
        yield UNWATCHED


def names_of(risks: Iterable[Risk]) -> str:
    """Return the classes of some risks, each once."""
    return ", ".join(dict.fromkeys(risk.name for risk in risks))


def by_danger(risks: Iterable[Risk]) -> tuple[int, ...]:
    """Return the key that sorts changes by their risks, the most dangerous first.

    It has the dangers of their classes, each below 0. Changes with the same worst class are sorted
    by the next one: what most of them have hides nothing that only one of them has.
    """
    return (*sorted({-_KNOWN[risk.name][0] for risk in risks}), 0)


def expected_problems(change: Change) -> tuple[str, ...]:
    """Return the keys of the problems that the service will report of an object."""
    if isinstance(change, Delete):
        return ()
    return RULES[change.resource.ref.kind].problems(change.resource.spec)
