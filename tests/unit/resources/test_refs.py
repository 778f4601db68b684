"""What makes a declared resource and a held object the same thing."""

from __future__ import annotations

import pytest

from reconciler.resources.kinds import KINDS, model_of
from reconciler.resources.ref import (
    Kind,
    ResourceRef,
    fold,
    organization_ref,
    owner_of,
    project_ref,
)

STOREFRONT = ResourceRef(Kind.OIDC_APPLICATION, "Acme", "Shop", "Storefront")
GREET = ResourceRef(Kind.ACTION, "Acme", "", "Greet")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Shop", "SHOP", True),
        ("straße", "STRASSE", True),
        ("Σ", "ς", True),
        ("shop", "shop ", False),
        ("Caf\u00e9", "Cafe\u0301", False),
    ],
)
def test_names_are_compared_ignoring_case_alone(one: str, other: str, *, same: bool) -> None:
    assert (fold(one) == fold(other)) is same


def test_a_key_is_the_same_for_every_spelling() -> None:
    again = ResourceRef(Kind.OIDC_APPLICATION, "ACME", "SHOP", "STOREFRONT")

    assert again != STOREFRONT
    assert again.key == STOREFRONT.key
    assert again.key.key == again.key


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (STOREFRONT, "OidcApplication Acme/Shop/Storefront"),
        (GREET, "Action Acme/Greet"),
        (project_ref("acme", "shop"), "Project acme/shop"),
        (organization_ref("acme"), "Organization acme"),
    ],
)
def test_a_ref_reads_like_a_path(ref: ResourceRef, text: str) -> None:
    assert str(ref) == text


@pytest.mark.parametrize(
    ("ref", "owner"),
    [
        (STOREFRONT, project_ref("Acme", "Shop")),
        (GREET, organization_ref("Acme")),
        (project_ref("acme", "shop"), organization_ref("acme")),
        (organization_ref("acme"), None),
    ],
)
def test_everything_but_an_organization_has_an_owner(
    ref: ResourceRef, owner: ResourceRef | None
) -> None:
    assert owner_of(ref) == owner


def test_owners_are_made_before_what_they_own() -> None:
    for kind in Kind:
        ref = ResourceRef(kind, "o", "p" if kind is Kind.OIDC_APPLICATION else "", "n")
        owner = owner_of(ref)
        assert owner is None or KINDS[owner.kind].rank < KINDS[kind].rank


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_its_row_and_its_model(kind: Kind) -> None:
    assert model_of(kind).kind is kind
    assert KINDS[kind].schema
