"""Where an exported manifest stands, and under which name."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.manifests.export import emit, file_name, manifest_of, manifest_resolved
from reconciler.manifests.text import decode
from reconciler.manifests.yaml_source import read_documents
from reconciler.resources.ref import Kind, fold
from tests.builders import ACME, GREET, PARTNER, SHOP, WEB, a_ref, an_action, declared, held
from tests.effort import cases
from tests.rows import each_row


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


def test_a_resolved_manifest_says_what_was_written_in_the_long_spelling() -> None:
    """A default that is written stays: a plan tells a field that is reset from one that is not."""
    said = {"appType": "WEB", "grantTypes": ["AUTHORIZATION_CODE"], "devMode": False}
    document = manifest_resolved(declared(WEB, said, pinned_id="7", critical=True)).document

    assert document["metadata"] == {
        "organization": "acme",
        "project": "shop",
        "name": "storefront",
        "critical": True,
        "id": "7",
    }
    assert document["spec"] == {
        "grantTypes": ["OIDC_GRANT_TYPE_AUTHORIZATION_CODE"],
        "appType": "OIDC_APP_TYPE_WEB",
        "devMode": False,
    }
    assert "spec" not in manifest_resolved(declared(SHOP)).document


def test_what_looks_like_a_variable_is_escaped_in_all_but_scripts() -> None:
    ref = a_ref(Kind.ACTION, "${greet}")
    written = manifest_of(held(ref, an_action(script="`${a}`")))

    (read,) = read_documents(written.text()).documents

    assert read["metadata"]["name"] == "$${greet}"
    assert read["spec"]["script"] == "`${a}`"
    assert written.document["metadata"]["name"] == "${greet}"


def test_a_long_script_goes_into_a_file_and_a_short_one_does_not() -> None:
    """A diff of a script is read as a script."""
    short = manifest_of(held(GREET, an_action(script="1\n2\n3\n4\n5\n")))
    long = manifest_of(held(GREET, an_action(script="1\n2\n3\n4\n5\n6\n")))

    assert short.scripts == {}
    assert long.scripts == {"script": "scripts/greet.js"}
    assert long.with_script_files()["spec"] == {"scriptFile": "scripts/greet.js"}


@each_row(
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


NAMES = (
    *(
        "",
        "a",
        "A",
        "b",
        "a b",
        "A B",
        "a/b",
        "a.b",
        "a-b",
        "a--b",
        "-",
        "..",
        "con",
        "CON",
        "con-",
    ),
    *("é", "É", "e\u0301", "ß", "ss", "SS", "日本", "a\nb", "a\0b", "x" * 60, "x" * 61, "X" * 61),
)


@each_row("one", NAMES)
def test_different_names_have_different_files(one: str) -> None:
    """Also on a disk that ignores case, as names do."""
    for other in (*NAMES, *map(file_name, NAMES)):
        same_file = file_name(one).lower() == file_name(other).lower()

        if fold(one) != fold(other):
            assert not same_file, other
        elif one == other:
            assert same_file


def test_projects_of_one_name_in_two_organizations_do_not_meet() -> None:
    """The organization is the first folder."""
    paths = {manifest_of(held(a_ref(Kind.ACTION, organization=o))).path for o in ("a", "b")}

    assert len(paths) == 2


CHARACTERS = st.characters(exclude_categories=["Cs"])
ODD = st.sampled_from(
    [
        "", " ", "no", "on", "Yes", "null", "~", "true", "010", "1_000", "12:30:00", "0x1f", "1e3",
        "2024-01-01", "-", "- a", "a: b", "a:", "a #b", "#", "&a", "*a", "!t", "%x", "@x", "`x",
        "|", ">", "'", '"', "{", "[", "a,b", "?", "? a", "---", "...", "<<", "=", "\\", "\t", "\n",
        "a\n", "a\nb", "a\n\n", "\na", " a\nb\n", "a\n b\n", "a\r\nb\n", "a\n\tb\n", "\ta\nb\n",
        "a\n   \nb\n", "a \nb\n", "a\nb", "a\n\nb\n", "a\n#b\n", "a\n---\nb\n", "a\x85b",
        "a\u2028b\n", "\ufeff", "\u202e", "\x00"[1:], "\x7f", "\U0001f600", "x" * 5000,
        "5s", "1.5s", "function f() {\n  return 'x';\n}\n", "1.", "+1", ".5", ".inf", "0o7",
        "a b  c", "trailing ",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(CHARACTERS), ODD, st.text("ab \n\t#:-'\"|", max_size=12))
KEYS = TEXTS.filter(lambda text: len(text) < 100)  # YAML has no long keys
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, st.booleans(), st.none(), st.integers(-(10**18), 10**18)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=cases(150), deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4))
def test_what_is_written_is_read_back(document: dict[str, Any]) -> None:
    """Whatever a service holds survives the way into a file and back."""
    text = emit(document)

    assert read_documents(decode(text.encode())).documents == [document]


@pytest.mark.slow
@settings(max_examples=cases(100), deadline=None)
@given(st.lists(st.dictionaries(KEYS, VALUES, min_size=1, max_size=2), min_size=2, max_size=4))
def test_a_stream_of_documents_is_read_back(documents: list[dict[str, Any]]) -> None:
    """Nothing in a document ends it."""
    stream = "---\n".join(map(emit, documents))

    assert read_documents(decode(stream.encode())).documents == documents


@each_row(
    ("value", "written"),
    [
        ("https://shop.example.com/cb?x=1", "https://shop.example.com/cb?x=1"),
        ("OIDC_APP_TYPE_WEB", "OIDC_APP_TYPE_WEB"),
        ("1.5s", "1.5s"),
        ("no", '"no"'),
        ("010", '"010"'),
        ("12:30:00", '"12:30:00"'),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("a\u202eb", '"a\\u202eb"'),
        (True, "true"),
        ([], "[]"),
        (["a", "no"], '\n  - a\n  - "no"'),
        ("a\nb\n", "|\n  a\n  b"),
        ("a\nb", "|-\n  a\n  b"),
    ],
)
def test_values_look_as_a_person_would_write_them(value: Any, written: str) -> None:
    """Quotes only where another reader could be misled."""
    gap = "" if written.startswith("\n") else " "

    assert emit({"key": value}) == f"key:{gap}{written}\n"
