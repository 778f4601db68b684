"""What makes a declared resource and a held object the same thing, and which shard holds it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.kinds.fields import KINDS
from reconciler.resources.ref import (
    ESCAPES_IN_WORDS,
    IN_PROJECT,
    MAX_SHARDS,
    Kind,
    RefError,
    RefSet,
    ResourceRef,
    Shard,
    fold,
    organization_ref,
    owner_of,
    parse_pattern,
    parse_ref,
    project_ref,
    read_shard,
    shard_of,
)
from tests.effort import cases
from tests.program import environment
from tests.rows import each_row

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


def app(organization: str, project: str, name: str) -> ResourceRef:
    return ResourceRef(Kind.OIDC_APPLICATION, organization, project, name)


def action(organization: str, name: str) -> ResourceRef:
    return ResourceRef(Kind.ACTION, organization, "", name)


@each_row(
    ("ref", "address"),
    [
        (app("acme", "shop", "web"), "OidcApplication/acme/shop/web"),
        (app("acme", "shop", "a/b"), "OidcApplication/acme/shop/a%2Fb"),
        (app("acme", "shop/a", "b"), "OidcApplication/acme/shop%2Fa/b"),
        (action("acme", "100%"), "Action/acme/100%25"),
        (action("acme", "a%2Fb"), "Action/acme/a%252Fb"),
        (action("acme", "a=b"), "Action/acme/a%3Db"),
        (action("acme", "a*b"), "Action/acme/a%2Ab"),
        (action("Action", "Action"), "Action/Action/Action"),
        (action("my org", " /"), "Action/my org/ %2F"),
        (project_ref("OidcApplication", "x/y"), "Project/OidcApplication/x%2Fy"),
        (organization_ref("a/b"), "Organization/a%2Fb"),
    ],
)
def test_an_address_is_read_back_as_the_ref_it_was_printed_for(
    ref: ResourceRef, address: str
) -> None:
    """Whatever is in a name, one spelling has one meaning, with a slash or a blank."""
    assert ref.address == address
    assert parse_ref(address) == ref
    assert parse_ref(str(ref)) == ref
    assert parse_ref(address, ref.kind) == ref
    assert parse_ref(ref.path, ref.kind) == ref


@each_row(
    ("text", "kind", "ref"),
    [
        ("oidcapplication/ACME/shop/Web", None, app("ACME", "shop", "Web")),
        ("action acme/greet", None, action("acme", "greet")),
        ("Action/acme/a%2fb", None, action("acme", "a/b")),
        ("Action/acme/50% off %41", None, action("acme", "50% off %41")),
        ("Organization/a/b", None, organization_ref("a/b")),
        ("acme/shop/web", Kind.OIDC_APPLICATION, app("acme", "shop", "web")),
        ("Action/shop/web", Kind.OIDC_APPLICATION, app("Action", "shop", "web")),
        ("Action corp/shop/web", Kind.OIDC_APPLICATION, app("Action corp", "shop", "web")),
        ("OidcApplication/a/b", Kind.OIDC_APPLICATION, app("OidcApplication", "a", "b")),
        ("OidcApplication a/b/c", Kind.OIDC_APPLICATION, app("a", "b", "c")),
    ],
)
def test_a_ref_may_be_spelt_in_other_ways(text: str, kind: Kind | None, ref: ResourceRef) -> None:
    assert parse_ref(text, kind) == ref


@pytest.mark.parametrize(
    ("text", "kind", "candidates"),
    [
        ("Action/acme/a/b", None, ["Action/acme/a%2Fb", "Action/acme%2Fa/b"]),
        (
            "acme/shop/a/b",
            Kind.OIDC_APPLICATION,
            [
                "OidcApplication/acme/shop/a%2Fb",
                "OidcApplication/acme/shop%2Fa/b",
                "OidcApplication/acme%2Fshop/a/b",
            ],
        ),
    ],
)
def test_a_text_that_could_name_several_objects_lists_them(
    text: str, kind: Kind | None, candidates: list[str]
) -> None:
    """Nothing is done to whichever comes first."""
    with pytest.raises(RefError, match="could name several objects") as caught:
        parse_ref(text, kind)

    assert f"It could be {' or '.join(candidates)}." in caught.value.remedy
    assert len({parse_ref(candidate, kind) for candidate in candidates}) == len(candidates)


def test_a_text_of_many_slashes_is_answered_at_once() -> None:
    with pytest.raises(RefError) as caught:
        parse_ref("OidcApplication" + "/a" * 5000)

    assert caught.value.remedy.count("OidcApplication/") == 8


@each_row(
    ("text", "kind"),
    [
        ("", None),
        ("web", None),
        ("Action", None),
        ("Action/", None),
        ("Action/acme", None),
        ("Action/acme/", None),
        ("/acme/greet", None),
        ("Application/acme/web", None),
        ("OidcApplication//shop/web", None),
        ("acme", Kind.OIDC_APPLICATION),
        ("acme//web", Kind.OIDC_APPLICATION),
        ("Action acme/greet", Kind.OIDC_APPLICATION),
    ],
)
def test_a_text_that_names_no_object_is_refused(text: str, kind: Kind | None) -> None:
    with pytest.raises(RefError, match="names no") as caught:
        parse_ref(text, kind)

    assert caught.value.remedy.startswith("Write ")


@pytest.mark.parametrize(
    ("kind", "found", "form"),
    [
        (
            None,
            "object",
            "Kind/organization[/project]/name, such as OidcApplication/acme/shop/storefront",
        ),
        (
            Kind.OIDC_APPLICATION,
            "OidcApplication",
            "[OidcApplication/]organization/project/name",
        ),
        (Kind.ACTION, "Action", "[Action/]organization/name"),
    ],
)
def test_a_refusal_says_the_text_and_the_form(kind: Kind | None, found: str, form: str) -> None:
    with pytest.raises(RefError) as caught:
        parse_ref("web", kind)

    assert str(caught.value) == f"'web' names no {found}"
    assert caught.value.remedy == f"Write {form}; {ESCAPES_IN_WORDS}."


def test_an_ambiguous_text_is_shown() -> None:
    with pytest.raises(RefError, match=r"^'a/b/c' could name"):
        parse_ref("a/b/c", Kind.ACTION)


@each_row(
    ("text", "address", "named", "others"),
    [
        ("Action/acme/greet", "Action/acme/greet", "Action/Acme/Greet", "Action/acme/greets"),
        ("action acme/GREET", "Action/acme/greet", "Action/acme/greet", "Action/acme2/greet"),
        ("Action/acme/*", "Action/acme/*", "Action/acme/a%2Fb", "IdpJwtConfig/acme/greet"),
        ("Action/ACME/G*t", "Action/acme/g*t", "Action/acme/GREET", "Action/acme/greets"),
        ("Action/*/*e*e*", "Action/*/*e*e*", "Action/x/greet", "Action/x/gret"),
        ("Action/acme/a%2ab", "Action/acme/a%2Ab", "Action/acme/A%2AB", "Action/acme/axb"),
        ("Action/acme/a*%2A", "Action/acme/a*%2A", "Action/acme/axx%2A", "Action/acme/ab"),
        ("Action/acme/*5", "Action/acme/*5", "Action/acme/v5", "Action/acme/50%25"),
        ("Organization/a*/b", "Organization/a*%2Fb", "Organization/ax%2Fb", "Organization/ab"),
        ("Organization/a*", "Organization/a*", "Organization/acme", "Project/acme/a"),
        ("*/acme", "*/acme", "Organization/acme", "Organization/acme2"),
        ("*/acme/*", "*/acme/*", "Project/acme/shop", "OidcApplication/acme/shop/web"),
        ("*/acme/shop/*", "*/acme/shop/*", "ProjectRole/acme/shop/Admin", "Project/acme/shop"),
        ("Pro*/acme/shop/*", "pro*/acme/shop/*", "ProjectRole/acme/shop/x",
         "OidcApplication/acme/shop/x"),
        ("ProjectRole/ACME/Shop/Ad*", "ProjectRole/acme/shop/Ad*", "ProjectRole/acme/shop/Admin",
         "ProjectRole/acme/shop/admin"),
        ("*/ACME/Shop/Admin", "*/acme/shop/Admin", "OidcApplication/acme/shop/admin",
         "ProjectRole/acme/shop/admin"),
    ],
)  # fmt: skip
def test_a_star_stands_for_any_part_of_one_name(
    text: str, address: str, named: str, others: str
) -> None:
    """The address is the same for every spelling, and is itself read back."""
    assert parse_pattern(text) == parse_pattern(address) == address
    found = RefSet([address])
    assert parse_ref(named) in found
    assert parse_ref(others) not in found
    assert found.without([parse_ref(others)]) == [address]
    assert found.without([parse_ref(others), parse_ref(named)]) == []


@each_row(
    "text", ["", "*", "Action", "Action/*", "*/", "*//x", "*/a/b/c/d", "Nothing*/a/b", "*.*/a/b"]
)
def test_a_pattern_that_names_no_object_is_refused(text: str) -> None:
    """Too few names, too many, or no kind: nothing is guessed."""
    with pytest.raises(RefError) as caught:
        parse_pattern(text)
    assert str(caught.value) == f"{text!r} names no object"
    assert ESCAPES_IN_WORDS in caught.value.remedy


def test_a_pattern_of_several_owners_lists_them_with_its_stars() -> None:
    """A slash inside a name is written as a code there, too."""
    with pytest.raises(RefError) as caught:
        parse_pattern("Action/a*/b/c")
    assert "Action/a*/b%2Fc or Action/a*%2Fb/c." in caught.value.remedy


def _fits(pattern: str, name: str) -> bool:
    """Return whether a glob fits a name, letter by letter."""
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_fits(pattern[1:], name[at:]) for at in range(len(name) + 1))
    return bool(name) and name[0] == pattern[0] and _fits(pattern[1:], name[1:])


@settings(max_examples=cases(300), deadline=None)
@given(st.text("a25*", max_size=6), st.text("a25%/", min_size=1, max_size=8))
def test_stars_fit_as_if_tried_letter_by_letter(pattern: str, name: str) -> None:
    """Whatever their number and place."""
    if pattern:
        ref = ResourceRef(Kind.ACTION, "acme", "", name)
        assert (ref in RefSet([parse_pattern(f"Action/acme/{pattern}")])) == _fits(pattern, name)


def test_many_stars_are_answered_at_once() -> None:
    """Each of them would try every place again otherwise."""
    ref = ResourceRef(Kind.ACTION, "acme", "", "a" * 200)

    assert ref not in RefSet([parse_pattern(f"Action/acme/{'a*' * 90}b")])


@settings(max_examples=cases(100), deadline=None)
@given(
    st.sampled_from([*Kind]),
    st.lists(st.text("aB*%/= é", min_size=1, max_size=5), min_size=3, max_size=3),
)
def test_a_printed_address_names_that_object_alone(kind: Kind, names: list[str]) -> None:
    """Also where its names have stars, slashes and codes in them."""
    organization, project, name = names
    ref = ResourceRef(kind, organization, project if kind in IN_PROJECT else "", name)
    if kind is Kind.ORGANIZATION:
        ref = organization_ref(organization)
    other = ref._replace(name=f"{ref.name}x")
    if kind is Kind.ORGANIZATION:
        other = organization_ref(f"{organization}x")

    found = RefSet([parse_pattern(ref.address)])

    assert ref in found
    assert other not in found


def test_refs_of_a_kind_have_its_names_alone() -> None:
    assert project_ref("acme", "shop") == ResourceRef(Kind.PROJECT, "acme", "", "shop")


def test_the_shard_of_what_no_text_can_hold_is_found() -> None:
    """Half a character may come from a service; it must not end a run."""
    assert shard_of("\ud800", 1000) == 788


def test_the_greatest_number_of_shards_is_allowed() -> None:
    assert read_shard(f"{MAX_SHARDS}/{MAX_SHARDS}") == Shard(MAX_SHARDS, MAX_SHARDS)


COUNTS = st.integers(1, MAX_SHARDS)


@settings(max_examples=cases(30))
@given(st.text(), st.integers(1, 50))
def test_every_organization_is_in_exactly_one_shard(name: str, count: int) -> None:
    """Whatever a name is made of, half a character included."""
    holders = [index for index in range(1, count + 1) if Shard(index, count).holds(name)]

    assert holders == [shard_of(name, count)]


@each_row(
    ("name", "count", "index"),
    [("acme", 1, 1), ("acme", 2, 2), ("acme", 3, 3), ("acme", 7, 3), ("Büro", 3, 2),
     ("Büro", 4, 1), ("org-00001", 6, 3), ("日本", 10_000, 3587)],
)  # fmt: skip
def test_the_shard_of_an_organization_never_changes(name: str, count: int, index: int) -> None:
    """Two jobs may run different versions; these values change with a major version only."""
    assert shard_of(name, count) == index


@pytest.mark.slow
def test_the_shard_does_not_depend_on_the_process() -> None:
    """Python's own hash does, and is another one on every start."""
    code = "from reconciler.resources.ref import shard_of; print(shard_of('Büro', 10000))"
    told = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment(PYTHONHASHSEED=seed),
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    ]  # fmt: skip

    assert told == [str(shard_of("Büro", 10_000))] * 2


@pytest.mark.parametrize(("one", "other"), [("acme", "ACME"), ("STRASSE", "straße"), ("Σ", "ς")])
def test_spellings_of_one_organization_are_in_one_shard(one: str, other: str) -> None:
    """Names are unique ignoring case, so both are the same organization."""
    assert [shard_of(one, n) for n in range(1, 100)] == [shard_of(other, n) for n in range(1, 100)]


def test_organizations_are_dealt_evenly() -> None:
    """No shard has half as much again as its share: of 1,000 organizations over 8 shards."""
    sizes = Counter(shard_of(f"org-{number:05d}", 8) for number in range(1000))

    assert sorted(sizes) == list(range(1, 9))
    assert max(sizes.values()) < 1.5 * 1000 / 8


@settings(max_examples=cases(30))
@given(COUNTS.flatmap(lambda count: st.tuples(st.integers(1, count), st.just(count))))
def test_what_a_shard_is_called_names_it(numbers: tuple[int, int]) -> None:
    """What a plan file says can be given on the command line."""
    assert read_shard(str(Shard(*numbers))) == Shard(*numbers)


@each_row(
    ("text", "why"),
    [
        ("0/4", "names a shard that is not from 1 to 4"),
        ("5/4", "names a shard that is not from 1 to 4"),
        ("1/0", "has a number of shards that is not from 1 to 10000"),
        ("0/0", "has a number of shards that is not from 1 to 10000"),
        ("1/10001", "has a number of shards that is not from 1 to 10000"),
        *(
            (text, "is not of the form I/N")
            for text in ("", "a/b", "1", "1/", "/4", "1/4/2", "-1/4", "+1/4", "1.5/4", " 1/4",
                         "1/4\n", "1 / 4", "1/999999", "\u0661/\u0664")
        ),
    ],
)  # fmt: skip
def test_what_names_no_shard_is_refused(text: str, why: str) -> None:
    """A slip must not look after the wrong part, or after none."""
    with pytest.raises(ValueError, match=f"^{why}$"):
        read_shard(text)
