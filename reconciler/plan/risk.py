"""Dangers of a change, as classes with stable names: a reviewer reads them first.

A risk is no verdict. It says of a change that is about to be made what may become weaker, go
elsewhere or stop. The rules are a table, most dangerous first, and each is a pure question about
a spec before and after. The names are part of the interface: policies and labels rely on them.
Problems that the service itself will report of an application are here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from reconciler.plan.diff import spec_after
from reconciler.plan.model import Adopt, Change, Create, Delete, Update, lacks_secret
from reconciler.plan.risk_rules import APP, IDP, RULES, Rule
from reconciler.resources.fields import Spec
from reconciler.resources.normal import DEFAULTS
from reconciler.resources.oidc import compliance_problems
from reconciler.resources.ref import ACTION, ACTION_FLOW, Kind


class Risk(NamedTuple):
    """One risk of one change: its stable name, the field it comes from, what it means."""

    name: str
    field: str
    sentence: str


PROTECTION_LIFTED = "protection-lifted"
CREDENTIAL_REPLACED = "secret-replaced"
REACTIVATED = "reactivated"
DEACTIVATED = "deactivated"
SWITCHED = (REACTIVATED, DEACTIVATED)
_LIFTED = "a protection that was asked for is taken away"
_REPLACED = "the present secret ends at once: what is deployed with it is refused"
_REACTIVATED = "what was switched off, perhaps for a reason, works again"
_DEACTIVATED = "what relies on it stops until it is reactivated: sign-ins fail, scripts do not run"

DELETED: Mapping[Kind, Risk] = {
    APP: Risk("client-id-lost", "", "its client id and secret end for good"),
    IDP: Risk("provider-removed", "", "users who sign in through it are locked out"),
    ACTION: Risk("action-removed", "", "what it enforced is no longer enforced"),
    ACTION_FLOW: Risk(
        "flow-cleared", "", "no action runs in it any more: nothing of it is enforced"
    ),
}

MEANINGS: Mapping[str, str] = {
    **{risk.name: risk.sentence for risk in DELETED.values()},
    PROTECTION_LIFTED: _LIFTED,
    CREDENTIAL_REPLACED: _REPLACED,
    REACTIVATED: _REACTIVATED,
    DEACTIVATED: _DEACTIVATED,
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
        *_lifted(change),
        *_replaced(change),
        *_switched(change),
        *_found(_BY_KIND[kind], change.held.spec, after),
    )


def _found(rules: Iterable[Rule], before: Spec, after: Spec) -> tuple[Risk, ...]:
    return tuple(
        Risk(rule.name, rule.field, rule.sentence)
        for rule in rules
        # A field that is not declared stays as it is held.
        if rule.field in after and rule.test(before.get(rule.field), after[rule.field])
    )


def _lifted(change: Change) -> tuple[Risk, ...]:
    if isinstance(change, Create | Delete):
        return ()
    marks = (
        ("metadata.preventDelete", change.held.prevent_delete, change.resource.prevent_delete),
        ("metadata.critical", change.held.critical, change.resource.critical),
    )
    return tuple(
        Risk(PROTECTION_LIFTED, name, _LIFTED)
        for name, held, wanted in marks
        if held and not wanted
    )


def _replaced(change: Change) -> tuple[Risk, ...]:
    if isinstance(change, Create | Delete) or not change.new_secret:
        return ()
    if lacks_secret(change.resource, change.held):
        return ()
    return (Risk(CREDENTIAL_REPLACED, "clientSecret", _REPLACED),)


def _switched(change: Update | Adopt) -> tuple[Risk, ...]:
    """Return the risk of another state; one that no manifest says is left as it is."""
    wanted = change.resource.active
    if wanted in {None, change.held.active}:
        return ()
    name, meaning = (REACTIVATED, _REACTIVATED) if wanted else (DEACTIVATED, _DEACTIVATED)
    return (Risk(name, "metadata.active", meaning),)


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
