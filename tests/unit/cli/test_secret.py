"""Secrets: which application is meant, and what is owed to whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.cli import secret
from reconciler.errors import (
    ObjectNotFoundError,
    ReconcilerError,
    UnseenOrganizationError,
    UsageError,
)
from reconciler.plan.model import Scope
from reconciler.state import ObservedState
from tests.builders import WEB, a_ref, an_owed_secret, held, observed

OTHER = a_ref(name="other")
OWED = replace(
    observed(held(WEB), held(OTHER)),
    custody=True,
    owed=(an_owed_secret(WEB), an_owed_secret(OTHER)),
)
HIDDEN = replace(observed(held(OTHER)), unseen=("globex",), missing_role="Ask for a role.")


def test_the_application_that_is_named_is_found() -> None:
    assert secret._application(observed(held(WEB)), WEB).ref == WEB


@pytest.mark.parametrize(
    ("state", "failure"),
    [
        (observed(), ObjectNotFoundError),
        (HIDDEN, UnseenOrganizationError),
        (replace(observed(held(WEB)), name_clashes=(held(WEB, object_id="8"),)), UsageError),
    ],
    ids=["missing", "perhaps unseen", "several"],
)
def test_another_one_never_loses_its_secret(
    state: ObservedState, failure: type[ReconcilerError]
) -> None:
    with pytest.raises(failure):
        secret._application(state, WEB)


def test_an_application_that_is_perhaps_unseen_is_not_said_to_be_missing() -> None:
    """By each command: that of a ZITADEL which only another role shows may be there."""
    secret._check_named(HIDDEN, {OTHER.key})
    with pytest.raises(UnseenOrganizationError, match="whether globex exists"):
        secret._check_named(HIDDEN, {WEB.key, OTHER.key})


def test_all_that_is_owed_is_meant_unless_applications_are_named() -> None:
    assert secret._of_named(OWED, ()) == OWED
    assert [each.ref for each in secret._of_named(OWED, {WEB.key}).owed] == [WEB]


def test_what_is_owed_to_other_trees_is_counted() -> None:
    """Of the applications named alone, where some are: others may be owed to this tree."""
    tree, only_web = OWED.owed[0].tree, secret._of_named(OWED, {WEB.key})
    other = secret._of_named(replace(OWED, owed=OWED.owed[:1]), {OTHER.key})

    assert secret._nothing_owed(observed(), Scope("mine"), ()) == "No client secret is owed."
    assert secret._nothing_owed(OWED, Scope("mine"), ()) == (
        "No client secret is owed to tree mine; 2 to other trees."
    )
    assert secret._nothing_owed(only_web, Scope("mine"), {WEB.key}) == (
        "No client secret of the applications named is owed to tree mine; 1 to other trees."
    )
    assert secret._nothing_owed(other, Scope(tree), {OTHER.key}) == (
        "No client secret of the applications named is owed."
    )
