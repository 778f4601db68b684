"""Where an exported manifest stands, and under which name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.manifests.export import file_name, manifest_of
from reconciler.resources.ref import Kind, fold
from tests.builders import ACME, GREET, PARTNER, SHOP, WEB, a_ref, an_action, held


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        (ACME, "acme/organization.yaml"),
        (SHOP, "acme/projects/shop/project.yaml"),
        (WEB, "acme/projects/shop/applications/storefront.yaml"),
        (PARTNER, "acme/identity-providers/partner.yaml"),
        (GREET, "acme/actions/greet.yaml"),
    ],
)
def test_files_stand_where_those_of_the_example_do(ref: object, path: str) -> None:
    """Who knows the example finds everything."""
    by_path = {manifest_of(held(each)).path for each in (ACME, SHOP, WEB, PARTNER, GREET)}

    assert path in by_path
    assert len(by_path) == 5


def test_defaults_are_left_unsaid() -> None:
    """A manifest says what is special about its object."""
    document = manifest_of(held(WEB, {"redirectUris": [], "devMode": True})).document

    assert document["spec"] == {"devMode": True}
    assert "spec" not in manifest_of(held(WEB, {})).document
    assert "preventDelete" not in document["metadata"]
    assert manifest_of(held(WEB, prevent_delete=True)).document["metadata"]["preventDelete"] is True


def test_a_long_script_goes_into_a_file_and_a_short_one_does_not() -> None:
    """A diff of a script is read as a script."""
    short = manifest_of(held(GREET, an_action(script="1\n2\n3\n4\n5\n")))
    long = manifest_of(held(GREET, an_action(script="1\n2\n3\n4\n5\n6\n")))

    assert short.script_path == ""
    assert long.script_path == "acme/actions/scripts/greet.js"
    assert long.with_script_file()["spec"] == {"scriptFile": "scripts/greet.js"}


@pytest.mark.parametrize(
    "name",
    ["a/b", "..", ".", "", "con", "naïve", "x" * 61, "a b", "-a", "a.b", "\n", "日本", "a\0"],
)
def test_a_name_that_is_no_file_name_gets_one(name: str) -> None:
    """Nothing leads out of the folder, and nothing is reserved anywhere."""
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}-[0-9a-f]{16}", file_name(name))


def test_a_name_that_looks_made_gets_one_of_its_own() -> None:
    """Otherwise an object could be given the file of another."""
    made = file_name("a b")

    assert file_name(made) != made


@given(st.text(max_size=12), st.text(max_size=12))
def test_different_names_have_different_files(one: str, other: str) -> None:
    """Also on a disk that ignores case, as names do."""
    same = fold(one) == fold(other)

    assert (file_name(one).lower() == file_name(other).lower()) >= same
    if not same:
        assert file_name(one).lower() != file_name(other).lower()


def test_projects_of_one_name_in_two_organizations_do_not_meet() -> None:
    """The organization is the first folder."""
    paths = {manifest_of(held(a_ref(Kind.ACTION, organization=o))).path for o in ("a", "b")}

    assert len(paths) == 2
