"""Overlays: what they change, add and take out, and where a finding about it leads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.diagnostics import Diagnostic, SourceLocation
from reconciler.manifests.loader import load
from reconciler.manifests.manifest import Loaded
from reconciler.manifests.placeholders import Layers, VariableValue
from reconciler.resources.nearest import MOST_HINTS
from reconciler.resources.ref import Shard, shard_of
from reconciler.validation.desired import judge
from tests.unit.manifests.trees import codes, write_tree

OVER = Layers("staging", overlay="over", root="tree")
HEAD = "apiVersion: reconciler/v1\nkind: {}\nmetadata: {{organization: acme, {}}}\n"
SHOP = (
    HEAD.format("OidcApplication", "project: p, name: shop")
    + "spec:\n  redirectUris: ['https://a.test/', 'https://b.test/']\n  devMode: true\n"
)
GREET = HEAD.format("Action", "name: greet") + "spec: {script: 'function greet() {}'}\n"
DEFAULTS = "apiVersion: reconciler/v1\nkind: Defaults\nmetadata: {}\nspec: {}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shop(spec: str = "", metadata: str = "") -> str:
    names = f"project: p, name: shop{metadata}"
    return HEAD.format("OidcApplication", names) + (f"spec: {{{spec}}}\n" if spec else "")


def read(over: dict[str, str], base: dict[str, str] | None = None, *paths: str) -> Loaded:
    write_tree(Path("tree"), {"shop.yaml": SHOP, "greet.yaml": GREET, **(base or {})})
    write_tree(Path("over"), over)
    return load(paths or ("tree",), None, OVER)


def spec_of(loaded: Loaded, name: str = "shop") -> Any:
    [found] = [m for m in loaded.manifests if m.document["metadata"]["name"] == name]
    return found.document.get("spec")


def told(loaded: Loaded) -> list[tuple[str, str]]:
    found = [(each.code, str(each.location)) for each in judge(loaded).diagnostics]
    return [each for each in found if each[0] != "OIDC-DEV-MODE"]


def errors(found: tuple[Diagnostic, ...]) -> list[tuple[str, str]]:
    return [(each.code, str(each.location)) for each in found if each.is_error]


def test_a_patch_changes_just_the_fields_it_names() -> None:
    loaded = read({"x/y.yaml": shop("redirectUris: [c], clockSkew: 1s")})

    assert spec_of(loaded) == {"redirectUris": ["c"], "devMode": True, "clockSkew": "1s"}
    assert spec_of(loaded, "greet") == {"script": "function greet() {}"}
    assert [m.file.name for m in loaded.manifests] == ["tree/greet.yaml", "tree/shop.yaml"]


def test_refs_are_compared_once_variables_are_replaced_and_without_case() -> None:
    over = Layers(
        "staging",
        {"name": VariableValue("Shop", SourceLocation("reconciler.yaml", 2, 2))},
        overlay="over",
        root="tree",
    )
    write_tree(Path("tree"), {"shop.yaml": SHOP})
    write_tree(Path("over"), {"a.yaml": shop("devMode: false").replace("shop", '"${name}"')})

    [manifest] = load(["tree"], None, over).manifests

    assert manifest.document["metadata"]["name"] == "shop"
    assert manifest.document["spec"]["devMode"] is False


def test_metadata_merges_and_the_names_stay() -> None:
    loaded = read({"a.yaml": shop(metadata=", id: '7', preventDelete: true, patch: true")})

    [manifest] = [m for m in loaded.manifests if m.file.name == "tree/shop.yaml"]
    assert manifest.document["metadata"] == {
        "organization": "acme",
        "project": "p",
        "name": "shop",
        "id": "7",
        "preventDelete": True,
    }
    assert loaded.diagnostics == ()


@pytest.mark.parametrize(
    ("defaults", "value"),
    [
        pytest.param("", "unset", id="the default of the schema"),
        pytest.param("{OidcApplication: {devMode: false}}", False, id="the nearest Defaults"),
    ],
)
def test_null_is_as_if_the_base_had_not_written_it(defaults: str, value: object) -> None:
    base = {"d.yaml": DEFAULTS.replace("spec: {}", f"spec: {defaults or '{}'}")}

    loaded = read({"a.yaml": shop("devMode: null")}, base)

    assert spec_of(loaded).get("devMode", "unset") == value
    assert told(loaded) == []


@pytest.mark.parametrize(
    ("base", "patch"),
    [
        pytest.param("script: 'function greet() {}'", "scriptFile: js/greet.js", id="a file"),
        pytest.param("scriptFile: none.js", "script: 'function greet(a) {}'", id="a text"),
    ],
)
def test_a_script_takes_out_its_file_and_the_reverse(base: str, patch: str) -> None:
    head = HEAD.format("Action", "name: greet")
    over = {"o/a.yaml": f"{head}spec: {{{patch}}}\n", "o/js/greet.js": "function greet(a) {}"}

    loaded = read(over, {"greet.yaml": f"{head}spec: {{{base}}}\n"})

    assert told(loaded) == []
    assert spec_of(loaded, "greet") == {"script": "function greet(a) {}"}


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        pytest.param("templated: null", "{script: 'function greet(a) {}'}", id="templated"),
        pytest.param("patch: true", "{script: null, scriptFile: s.js}", id="a script for its file"),
        pytest.param("preventDelete: true", "null", id="the whole spec"),
    ],
)
def test_null_stands_for_every_field_of_a_patch(metadata: str, spec: str) -> None:
    head = HEAD.format("Action", "name: greet, templated: false")
    base = {
        "greet.yaml": f"{head}spec: {{script: 'function greet() {{}}', timeout: 1s}}\n",
        "d.yaml": DEFAULTS.replace("spec: {}", "spec: {Action: {script: 'function greet(b) {}'}}"),
    }
    patch = HEAD.format("Action", f"name: greet, {metadata}") + f"spec: {spec}\n"

    loaded = read({"a.yaml": patch, "s.js": "function greet(a) {}"}, base)

    assert told(loaded) == []
    own = {"script": "function greet(a) {}", "timeout": "1s"}
    assert spec_of(loaded, "greet") == (
        {"script": "function greet(b) {}"} if spec == "null" else own
    )


def test_a_script_file_stays_beneath_the_folder_of_its_own_document() -> None:
    head = HEAD.format("Action", "name: greet")

    loaded = read({"a.yaml": f"{head}spec: {{scriptFile: ../tree/x.js}}\n"}, {"x.js": "x"})

    assert errors(loaded.diagnostics) == [("SCRIPT-OUTSIDE", "over/a.yaml:4:20")]


def test_another_document_is_added_and_one_that_says_so_is_taken_out() -> None:
    over = {
        "new.yaml": GREET.replace("greet", "fresh"),
        "gone.yaml": HEAD.format("Action", "name: greet, absent: true"),
    }

    loaded = read(over)

    assert [m.document["metadata"]["name"] for m in loaded.manifests] == ["shop", "fresh"]
    assert told(loaded) == []


def test_defaults_of_an_overlay_are_for_what_it_adds() -> None:
    """They name the owner of every document there; a patch takes no field from them."""
    spec = "{OidcApplication: {devMode: true, clockSkew: 3s}}"
    defaults = DEFAULTS.replace("metadata: {}", "metadata: {organization: acme}")
    patch = shop("redirectUris: [c]").replace("organization: acme, ", "")
    over = {
        "d.yaml": defaults.replace("spec: {}", f"spec: {spec}"),
        "a.yaml": patch,
        "b.yaml": patch.replace("shop", "other"),
    }

    loaded = read(over)

    assert spec_of(loaded) == {"redirectUris": ["c"], "devMode": True}
    assert spec_of(loaded, "other") == {
        "redirectUris": ["c"],
        "devMode": True,
        "clockSkew": "3s",
    }
    assert [m.organization for m in loaded.manifests] == ["acme"] * 3


def test_not_every_name_of_a_renamed_tree_is_compared_with_all_others() -> None:
    """Patches of 1,000 applications beside 1,000 others took a minute; the first get a hint."""
    patch = shop("devMode: false", ", patch: true")
    patches = [patch.replace("name: shop", f"name: shop{at}") for at in range(MOST_HINTS + 5)]

    loaded = read({"a.yaml": "---\n".join(patches)})

    hints = [each.remedy.startswith("Did you mean shop?") for each in loaded.diagnostics]
    assert hints == [True] * MOST_HINTS + [False] * 5


@pytest.mark.parametrize(
    ("over", "finding"),
    [
        pytest.param(shop("devMode: true"), ("OVERLAY-UNCHANGED", "over/a.yaml:1:1"), id="same"),
        pytest.param(shop("devMode: 1"), ("SCHEMA-TYPE", "over/a.yaml:4:17"), id="1 is not true"),
        pytest.param(shop(), ("OVERLAY-UNCHANGED", "over/a.yaml:1:1"), id="no field"),
        pytest.param(
            shop("clockSkew: null"), ("OVERLAY-UNCHANGED", "over/a.yaml:1:1"), id="null for nothing"
        ),
        pytest.param(
            shop("devMode: false", ", patch: true").replace("shop", "shpo"),
            ("OVERLAY-NO-BASE", "over/a.yaml:3:50"),
            id="a patch of nothing",
        ),
        pytest.param(
            shop(metadata=", absent: true").replace("shop", "shpo"),
            ("OVERLAY-NO-BASE", "over/a.yaml:3:50"),
            id="nothing to take out",
        ),
        pytest.param(
            shop("devMode: false") + "---\n" + shop("devMode: null").replace("shop", "SHOP"),
            ("OVERLAY-TWICE", "over/a.yaml:8:50"),
            id="two for one ref",
        ),
        pytest.param(
            shop("devMod: false"), ("SCHEMA-UNKNOWN-FIELD", "over/a.yaml:4:8"), id="a field"
        ),
        pytest.param(
            shop("devMode: x"), ("SCHEMA-TYPE", "over/a.yaml:4:17"), id="a value of a type"
        ),
        pytest.param(
            shop("redirectUris: ['https://a.test/', 'x y']"),
            ("URI-CHARACTER", "over/a.yaml:4:42"),
            id="an item of a list",
        ),
        pytest.param(
            shop("devMode: false").replace("reconciler/v1", "v2"),
            ("MANIFEST-API-VERSION", "over/a.yaml:1:13"),
            id="the version of a patch",
        ),
        pytest.param(
            shop("devMode: false", ", patch: maybe"),
            ("SCHEMA-TYPE", "over/a.yaml:3:63"),
            id="a flag of another type",
        ),
        pytest.param(
            GREET + "---\n" + shop("devMode: false"),
            ("OVERLAY-UNCHANGED", "over/a.yaml:1:1"),
            id="one of two",
        ),
    ],
)
def test_what_is_wrong_with_an_overlay_is_told_once_at_its_place(
    over: str, finding: tuple[str, str]
) -> None:
    assert told(read({"a.yaml": over})) == [finding]


def test_the_same_words_in_another_spelling_change_nothing() -> None:
    words = "appType: WEB, grantTypes: [AUTHORIZATION_CODE, OIDC_GRANT_TYPE_REFRESH_TOKEN]"
    base = "appType: OIDC_APP_TYPE_WEB, "
    base += "grantTypes: [OIDC_GRANT_TYPE_AUTHORIZATION_CODE, REFRESH_TOKEN]"

    loaded = read({"a.yaml": shop(words)}, {"shop.yaml": shop(base)})

    assert codes(loaded.diagnostics) == ["OVERLAY-UNCHANGED"]


def test_a_patch_of_nothing_names_what_was_meant() -> None:
    over = shop("devMode: false", ", patch: true").replace("shop", "shpo")

    [found] = read({"a.yaml": over}).diagnostics

    assert found.remedy.startswith("Did you mean shop? ")


def test_a_patch_in_another_project_names_the_owners_that_were_meant() -> None:
    over = shop("devMode: false", ", patch: true").replace("organization: acme", "organization: ac")

    [found] = read({"a.yaml": over}).diagnostics

    assert found.remedy.startswith("Did you mean OidcApplication acme/p/shop? ")


def test_flags_of_an_overlay_mean_nothing_in_the_base() -> None:
    loaded = read(
        {"a.yaml": shop("devMode: false")},
        {"greet.yaml": GREET.replace("greet}", "greet, absent: true}")},
    )

    assert told(loaded) == [("SCHEMA-UNKNOWN-FIELD", "tree/greet.yaml:3:45")]


def test_values_of_an_overlay_name_the_source_of_their_variables() -> None:
    over = Layers(
        "staging",
        {"host": VariableValue("a b", SourceLocation("reconciler.yaml", 9, 5))},
        overlay="over",
        root="tree",
    )
    write_tree(Path("tree"), {"shop.yaml": SHOP})
    write_tree(Path("over"), {"a.yaml": shop("redirectUris: ['https://${host}/']")})

    [found] = [each for each in judge(load(["tree"], None, over)).diagnostics if each.is_error]

    assert found.location == SourceLocation("over/a.yaml", 4, 23, "host from reconciler.yaml:9:5")


def test_over_a_part_of_the_tree_an_overlay_only_changes() -> None:
    over = {
        "a.yaml": shop("devMode: false"),
        "b.yaml": GREET.replace("greet", "fresh"),
        "c.yaml": HEAD.format("Action", "name: greet, patch: true") + "spec: {timeout: 1s}\n",
    }

    loaded = read(over, None, "tree/shop.yaml")

    assert loaded.diagnostics == ()
    assert [m.document["metadata"]["name"] for m in loaded.manifests] == ["shop"]
    assert spec_of(loaded)["devMode"] is False


def test_an_overlay_keeps_to_the_shard() -> None:
    write_tree(Path("tree"), {"shop.yaml": SHOP})
    write_tree(Path("over"), {"a.yaml": shop("devMode: false", ", patch: true")})
    own = shard_of("acme", 4)

    [manifest] = load(["tree"], Shard(own, 4), OVER).manifests
    other = load(["tree"], Shard(own % 4 + 1, 4), OVER)

    assert manifest.document["spec"]["devMode"] is False
    assert (other.manifests, other.diagnostics) == ((), ())


def test_an_overlay_that_is_not_there_is_told() -> None:
    write_tree(Path("tree"), {"shop.yaml": SHOP})

    assert codes(load(["tree"], None, OVER).diagnostics) == ["FILE-MISSING"]


@pytest.mark.parametrize(("path", "whole"), [("tree", True), (".", True), ("tree/acme", False)])
def test_what_an_overlay_adds_is_missing_from_a_part_of_the_tree(path: str, *, whole: bool) -> None:
    """Its absence means nothing there: to prune by it would delete what the overlay adds."""
    write_tree(Path("tree/acme"), {"shop.yaml": SHOP, "greet.yaml": GREET})
    write_tree(Path("over"), {"new.yaml": GREET.replace("greet", "fresh")})

    loaded = load([path], None, OVER)

    assert loaded.whole is whole
    assert len(loaded.manifests) == (3 if whole else 2)


def test_files_of_an_overlay_are_never_manifests_of_the_base() -> None:
    """Neither those of another environment, which may be protected."""
    write_tree(Path("tree"), {"shop.yaml": SHOP})
    write_tree(Path("over"), {"new.yaml": GREET})
    write_tree(Path("others/x"), {"other.yaml": GREET.replace("greet", "other")})
    plain = Layers("plain", other_overlays=("others/x", "over"), root="tree")

    assert [m.file.name for m in load(["."], None, plain).manifests] == ["tree/shop.yaml"]
    own = load(["."], None, replace(OVER, other_overlays=("others/x",)))
    assert [m.file.name for m in own.manifests] == ["tree/shop.yaml", "over/new.yaml"]


@pytest.mark.parametrize("path", ["others", "./others/", "others/p", "others/p/a.yaml", "link/p"])
def test_a_path_in_an_overlay_is_refused(path: str) -> None:
    write_tree(Path("tree"), {"shop.yaml": SHOP})
    write_tree(Path("others/p"), {"a.yaml": GREET})
    Path("link").symlink_to("others")
    layers = Layers("staging", overlay="tree2", other_overlays=("others",), root="tree")
    write_tree(Path("tree2"), {"b.yaml": shop("devMode: false")})

    loaded = load(["tree", path], None, layers)

    assert [m.file.name for m in loaded.manifests] == ["tree/shop.yaml"]
    assert codes(loaded.diagnostics) == ["OVERLAY-PATH"]
