"""The rules of projects."""

from __future__ import annotations

from reconciler.rules.form import KindRules
from reconciler.rules.risks import Rule, role_assertion_off, turned_off, turned_on

_CHECKS = ("projectRoleCheck", "hasProjectCheck")

RULES = KindRules(
    guarded=frozenset(_CHECKS),
    risks=(
        Rule(
            "access-unchecked", 820, _CHECKS, turned_off,
            "users whom the project refused before may sign in to its applications",
        ),
        Rule(
            "access-checked", 470, _CHECKS, turned_on,
            "users without a role in the project, or of an organization without it, are locked out",
        ),
        role_assertion_off("projectRoleAssertion"),
    ),
)  # fmt: skip
