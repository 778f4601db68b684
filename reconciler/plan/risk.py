"""Dangers of a change, as classes with stable names: a reviewer reads them first.

A risk is no verdict: it says what may become weaker, go elsewhere or stop. Problems that the
service itself will report of an application are here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.kinds.oidc_application.compliance import compliance_problems
from reconciler.plan.diff import ACTIVE, CREDENTIAL, CRITICAL, PREVENT_DELETE, spec_after
from reconciler.plan.model import Adopt, Change, Create, Delete, Update, lacks_secret
from reconciler.plan.risk_rules import APP, IDP, RULES, Rule
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.ref import ACTION, ACTION_FLOW, Kind


class Risk(NamedTuple):
    """One risk of one change: its stable name, the field it comes from, what it means."""

    name: str
    field: str
    sentence: str


DELETED: Mapping[Kind, Risk] = {
    APP: Risk("client-id-lost", "", "its client id and secret end for good"),
    IDP: Risk("provider-removed", "", "users who sign in through it are locked out"),
    ACTION: Risk("action-removed", "", "what it enforced is no longer enforced"),
    ACTION_FLOW: Risk(
        "flow-cleared", "", "no action runs in it any more: nothing of it is enforced"
    ),
}
LIFTED = Risk("protection-lifted", "", "a protection that was asked for is taken away")
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

MEANINGS: Mapping[str, str] = {
    **{risk.name: risk.sentence for risk in DELETED.values()},
    **{risk.name: risk.sentence for risk in (LIFTED, REPLACED, REACTIVATED, DEACTIVATED)},
    **{rule.name: rule.sentence for rule in RULES},
}
"""The meaning of each risk class."""

CLASSES: tuple[str, ...] = tuple(MEANINGS)
"""Every risk class there is, most dangerous first."""

_LAST_SEVERE = "failure-allowed"


def is_severe(name: str) -> bool:
    """Return whether a class loses something, weakens a protection, or switches an object.

    The others change or stop what is deployed.
    """
    return CLASSES.index(name) <= CLASSES.index(_LAST_SEVERE)


_BY_KIND: Mapping[Kind, tuple[Rule, ...]] = {
    kind: tuple(rule for rule in RULES if rule.kind is kind) for kind in Kind
}


# A new object is held against its defaults, but for a check that is off by default.
_BEFORE_NEW: Mapping[Kind, Spec] = {**DEFAULTS, IDP: {**DEFAULTS[IDP], "audience": "checked"}}


def risks_of(change: Change) -> tuple[Risk, ...]:
    """Return the risks of a change, most dangerous first."""
    if isinstance(change, Delete):
        lost = DELETED.get(change.held.ref.kind)
        return (lost,) if lost else ()
    kind, after = change.resource.ref.kind, spec_after(change)
    if isinstance(change, Create):
        rules: Iterable[Rule] = (rule for rule in _BY_KIND[kind] if rule.also_new)
        return _found(rules, _BEFORE_NEW[kind], after)
    return (
        *_beside_the_spec(change),
        *_found(_BY_KIND[kind], change.held.spec, after),
    )


def _found(rules: Iterable[Rule], before: Spec, after: Spec) -> tuple[Risk, ...]:
    return tuple(
        Risk(rule.name, rule.field, rule.sentence)
        for rule in rules
        # A field that is not declared stays as it is held.
        if rule.field in after and rule.test(before.get(rule.field), after[rule.field])
    )


def _beside_the_spec(change: Update | Adopt) -> Iterator[Risk]:
    resource, held = change.resource, change.held
    marks = (
        (PREVENT_DELETE, held.prevent_delete, resource.prevent_delete),
        (CRITICAL, held.critical, resource.critical),
    )
    for name, was_set, is_set in marks:
        if was_set and not is_set:
            yield LIFTED._replace(field=name)
    if change.new_secret and not lacks_secret(resource, held):
        yield REPLACED
    if resource.active not in {None, held.active}:  # a state that no manifest says stays
        yield REACTIVATED if resource.active else DEACTIVATED


def names_of(risks: Iterable[Risk]) -> str:
    """Return the classes of some risks, each once."""
    return ", ".join(dict.fromkeys(risk.name for risk in risks))


def most_dangerous(risks: Sequence[Risk]) -> int:
    """Return the place of the worst of some risks among all classes; where none is, the last."""
    return min((CLASSES.index(risk.name) for risk in risks), default=len(CLASSES))


def expected_problems(change: Change) -> tuple[str, ...]:
    """Return the compliance keys that the service will report for an application."""
    if isinstance(change, Delete) or change.resource.ref.kind is not Kind.OIDC_APPLICATION:
        return ()
    return compliance_problems(change.resource.spec)
